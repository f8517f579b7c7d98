"""A scheme that only this file knows, a fixed set and a known law: all the rest follows, in every room."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from mdsd_core.decoding.tensor_rules import runs_on_tensors, verify
from mdsd_core.schemes import (
    DistinctConditioned,
    InnerLaw,
    Scheme,
    SpecHubPairs,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    odds,
)
from mdsd_core.schemes.names import FAMILIES, scheme_family, scheme_of
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_core.verifiers import Estimate, verifier, verifiers_for
from mdsd_study.analysis.acceptance_given_token import accepted_share
from mdsd_study.analysis.draft_design import inclusion_probabilities
from tests.core.schemes.test_sampling import test_law_of_the_algorithm_is_the_law_of_the_scheme as check_sampler
from tests.core.verifiers.test_losslessness import test_output_law_is_lossless_and_acceptance_exact as check_lossless
from tests.core.verifiers.test_losslessness import test_verify_follows_output_law as check_verify
from tests.decoding.test_losslessness import TREES, check_law
from tests.instances import adversarial_pairs, random_pairs
from tests.laws import all_schemes
from tests.transport_oracles import flow_rate, lp_rate, search_rate


@dataclass(frozen=True)
class LowestIds(Scheme):
    """The `m` tokens of the lowest ids that can be drafted, always, and more by a known law off them."""

    m: int
    law: InnerLaw

    @property
    def fixed_drafts(self):
        return self.m

    @property
    def inner(self):
        return self.law

    def fixed_set(self, q):
        return np.flatnonzero(q)[: self.m]


#: Scheme -> the rules beside token matching and the optimal one that follow from its facts.
PLANTED = {
    LowestIds(1, WithReplacement(2)): {"rrs", "kseq"},
    LowestIds(1, WithoutReplacement(2)): {"rrs_without"},
    LowestIds(2, WithReplacement(1)): {"rrs", "kseq", "rrs_without", "greedy"},
    LowestIds(1, DistinctConditioned(2)): set(),
    LowestIds(1, DistinctConditioned(2, odds)): set(),
}
RULES = [(name, scheme) for scheme in PLANTED for name in verifiers_for(scheme)]


@pytest.mark.parametrize("scheme", PLANTED, ids=str)
def test_the_sampler_follows_the_law(scheme):
    for q in ([0.2, 0.5, 0.3], [0.1, 0.0, 0.6, 0.3], [0.25, 0.25, 0.25, 0.25], [0.0, 1.0]):
        check_sampler(scheme, q)
        for row in scheme.enumerate(q)[0]:
            np.testing.assert_array_equal(scheme.check_drafts(q, row), row[row >= 0])


@pytest.mark.parametrize("scheme", PLANTED, ids=str)
def test_the_bound_is_the_optimum(scheme):
    for p, q in [*adversarial_pairs().values(), *random_pairs(3, 40, (2, 3, 4, 5))]:
        rate = optimal_acceptance(p, q, scheme).rate
        for exact in (lp_rate, flow_rate, search_rate):
            assert rate == pytest.approx(exact(p, q, scheme), abs=1e-9)


@pytest.mark.parametrize("scheme", PLANTED, ids=str)
def test_inclusion_follows(scheme):
    for _, q in random_pairs(4, 20, (2, 3, 4, 5)):
        tuples, weights = scheme.enumerate(q)
        drafted = [weights[(tuples == x).any(axis=1)].sum() for x in range(q.size)]
        np.testing.assert_allclose(inclusion_probabilities(q, scheme), drafted, atol=1e-12)


@pytest.mark.parametrize("scheme", PLANTED, ids=str)
def test_the_rules_follow(scheme):
    assert set(verifiers_for(scheme)) == PLANTED[scheme] | {"optimal", "token_matching"}


@pytest.mark.parametrize(("name", "scheme"), RULES, ids=str)
def test_rules_are_lossless_by_enumeration(name, scheme):
    check_lossless(verifier(name), scheme)
    check_verify(verifier(name), scheme)


@pytest.mark.parametrize(("name", "scheme"), RULES, ids=str)
def test_shares_add_up_to_the_acceptance(name, scheme):
    for p, q in random_pairs(5, 5, (4, 5)):
        a = verifier(name).acceptance(p, q, scheme)
        shares = [accepted_share(name, p, q, scheme, y) if p[y] > 0 else 0.0 for y in range(p.size)]
        slack = 1e-6 if name == "optimal" else 1e-12  # what the tolerance of a plan costs
        assert float(p @ shares) == pytest.approx(a.value if isinstance(a, Estimate) else a, abs=slack)


@pytest.mark.parametrize(("name", "scheme"), RULES, ids=str)
def test_batches_are_judged_row_by_row(name, scheme):
    p, q = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.1, 0.2, 0.3])
    drafts = scheme.sample(q, np.random.default_rng(0))
    assert not runs_on_tensors(name, scheme)
    verdict = verify(name, *(torch.from_numpy(x)[None] for x in (p, q, drafts)), scheme, [np.random.default_rng(1)])
    token = verifier(name).prepare(p, q, scheme).verify(drafts, np.random.default_rng(1)).token
    assert verdict.tokens.tolist() == [token]


@pytest.mark.parametrize("law", [WithReplacement(1), WithoutReplacement(1), DistinctConditioned(1, odds)], ids=str)
def test_the_loop_draws_it(law):
    scheme = LowestIds(1, law)
    for name in verifiers_for(scheme):
        check_law(TREES["2"], scheme, name, "node", 1, 0.0, 0.0)
    check_law(TREES["2"], scheme, "selecting", "path", 2, 0.35, 0.35)


def test_names_and_the_grammar_are_inverse():
    for n in (1, 2, 3, 4):
        for scheme in (*all_schemes(n), TopThenSampled(2, n, True)):
            if scheme.name == repr(scheme):  # weights of its own: no name
                assert not scheme.by_rank
            else:
                again = scheme_family(scheme.name)(scheme.drafts)
                assert again.name == scheme.name
                assert (again.fixed_drafts, again.inner) == (scheme.fixed_drafts, scheme.inner)
        for name in FAMILIES:
            scheme = scheme_of(name, n)
            assert (scheme is None) == (name == "spechub" and n != 2)
            assert scheme is None or scheme.drafts == n
    assert scheme_of("top3_replacement", 5) == TopThenSampled(3, 2, True)
    assert scheme_of("top3_sampled", 3) is None
    assert SpecHubPairs().name == "spechub"
    assert LowestIds(1, WithReplacement(1)).name.startswith("LowestIds(m=1")
    with pytest.raises(ValueError, match="topM_sampled, topM_replacement, got 'top2'"):
        scheme_family("top2")
