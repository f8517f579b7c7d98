"""The rules on tensors: equal to the verifiers row by row, and of the law that the verifier's plan states."""

import numpy as np
import pytest
import torch

from mdsd_core.decoding import tensor_rules
from mdsd_core.decoding.tensor_rules import interface
from mdsd_core.distributions import check_distribution
from mdsd_core.schemes import DistinctConditioned, WithoutReplacement, WithReplacement, odds
from mdsd_core.verifiers import Verdict, verifier
from tests.core.verifiers.cases import ALL_PAIRS, label
from tests.core.verifiers.decision_tree import LAST, decision_law
from tests.decoding.tensor_rules.cases import (
    ON_TENSORS,
    as_rows,
    everything,
    random_batch,
    row_by_row,
    sized,
)
from tests.instances import softmax_pair, total_variation

RULES = sorted({name for name, _ in ON_TENSORS})
EACH = pytest.mark.parametrize(("name", "scheme"), ON_TENSORS, ids=label)


def schemes_of(name):
    return [scheme for rule, scheme in ON_TENSORS if rule == name]


def test_all_rules_but_those_that_sort_run_on_tensors():
    assert set(RULES) == {"rrs", "rrs_without", "greedy", "kseq", "spechub", "deterministic", "token_matching"}


@pytest.mark.parametrize("name", RULES)
def test_verify_of_mixed_rows_is_that_of_the_verifier(name):
    rng = np.random.default_rng(6)
    for V in range(1, 7):
        for _ in range(3):
            order = rng.permutation(len(sized(V)))
            batch = random_batch(rng, [sized(V)[i] for i in order], schemes_of(name))
            assert as_rows(tensor_rules.verify(name, *batch)) == row_by_row(name, *batch)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("V", [512, 1000, 1537])
def test_verify_of_larger_vocabularies_is_that_of_the_verifier(name, V):
    rng = np.random.default_rng(V)
    pairs = [softmax_pair(rng, V, temperature=t, noise=1.5) for t in (0.1, 0.7, 1.5) for _ in range(8)]
    for _ in range(3):
        batch = random_batch(rng, pairs, schemes_of(name))
        answers = row_by_row(name, *batch)
        assert as_rows(tensor_rules.verify(name, *batch)) == answers
    assert len({used for _, _, used in answers}) > (name != "token_matching")


@pytest.mark.large
@pytest.mark.parametrize("name", RULES)
def test_real_vocabulary_and_float32_rows(name):
    rng = np.random.default_rng(9)
    pairs = [softmax_pair(rng, 49_152) for _ in range(6)]
    p, q, drafts, schemes, uniforms = random_batch(rng, pairs, schemes_of(name))
    for dtype in (torch.float64, torch.float32):
        batch = p.to(dtype), q.to(dtype), drafts, schemes, uniforms
        assert as_rows(tensor_rules.verify(name, *batch)) == row_by_row(name, *batch)


class _OneRow:
    """The batched rule as a plan of one node, so that its decisions can be integrated over the uniforms."""

    def __init__(self, name, p, q, scheme):
        self.name, self.scheme = name, scheme
        self.p, self.q = torch.from_numpy(p)[None], torch.from_numpy(q)[None]

    def verify(self, drafts, source):
        values = source.values[source.used : source.used + tensor_rules.uniforms_for(self.scheme)]
        u = torch.tensor([values], dtype=torch.float64)
        rows = torch.from_numpy(drafts)[None]
        verdict = tensor_rules.verify(self.name, self.p, self.q, rows, self.scheme, u, check=False)
        ((token, index, used),) = as_rows(verdict)
        source.used += used
        return Verdict(token, index)


@pytest.mark.parametrize("name", RULES)
def test_verify_has_the_law_of_the_verifiers_plan(name):
    rng = np.random.default_rng(3)
    scheme = next(scheme for scheme in schemes_of(name) if scheme.drafts == 2)
    for p, q in [ALL_PAIRS[i] for i in rng.permutation(len(ALL_PAIRS))[: 1 if name == "kseq" else 3]]:
        drafts = scheme.sample(q, rng)
        law = verifier(name).prepare(p, q, scheme).output_law(drafts)
        assert total_variation(decision_law(_OneRow(name, p, q, scheme), drafts, p.size), law) <= 1e-12


@EACH
def test_extreme_uniforms_give_possible_tokens(name, scheme):
    for V in (1, 2, 3, 5):
        p, q, drafts = everything(scheme, V)
        for u in (0.0, LAST, 1.0 - 2.0**-24):
            uniforms = torch.full((len(p), tensor_rules.uniforms_for(scheme)), u, dtype=torch.float64)
            tokens = tensor_rules.verify(name, p, q, drafts, scheme, uniforms).tokens
            assert ((tokens >= 0) & (tokens < V)).all()
            assert (p.gather(1, tokens[:, None]) > 0.0).all()


@pytest.mark.parametrize("name", ["token_matching", "optimal"])
def test_rules_that_sort_run_row_by_row(name):
    rng = np.random.default_rng(4)
    schemes = [WithReplacement(2), WithReplacement(3), WithoutReplacement(2), DistinctConditioned(2, odds)]
    assert not tensor_rules.runs_on_tensors(name, schemes)
    for V in (1, 3, 5):
        batch = random_batch(rng, sized(V), schemes)
        assert as_rows(tensor_rules.verify(name, *batch)) == row_by_row(name, *batch)


@pytest.mark.parametrize("name", RULES)
def test_on_the_host_every_rule_runs_row_by_row(name, monkeypatch):
    monkeypatch.setattr(interface, "ROW_BY_ROW", ("cpu",))
    monkeypatch.setattr(interface, "RULES", dict.fromkeys(interface.RULES))  # none of them can be called
    batch = random_batch(np.random.default_rng(6), sized(4), schemes_of(name))
    assert as_rows(tensor_rules.verify(name, *batch)) == row_by_row(name, *batch)


@pytest.mark.parametrize("name", [*RULES, "optimal"])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("wide", [False, True])
def test_a_softmax_of_a_coarser_type_passes_as_in_its_own(name, kind, wide):
    rng = np.random.default_rng(7)
    pairs = [softmax_pair(rng, V=40) for _ in range(5)]
    p, q = (torch.from_numpy(np.stack(x)).to(kind) for x in zip(*pairs))
    assert ((p.double().sum(dim=1) - 1.0).abs() > 1e-9).any()
    if wide:
        p, q = p.double(), q.double()
    scheme = WithReplacement(2) if name == "optimal" else schemes_of(name)[0]
    drafts = torch.from_numpy(np.stack([scheme.sample(row, rng) for row in q]))
    u = torch.from_numpy(rng.random((5, tensor_rules.uniforms_for(scheme))))
    rows = check_distribution(p, ndim=2), check_distribution(q, ndim=2)
    want = tensor_rules.verify(name, *map(torch.from_numpy, rows), drafts, scheme, u)
    assert as_rows(tensor_rules.verify(name, p, q, drafts, scheme, u)) == as_rows(want)
    p[3, 0] += 0.25
    with pytest.raises(ValueError, match=r"row 3: p must sum to 1 \(tolerance"):
        tensor_rules.verify(name, p, q, drafts, scheme, u)
