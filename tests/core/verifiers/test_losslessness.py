"""Every rule with every scheme it supports: lossless by enumeration, acceptance equal to it, verify as the law says."""

import numpy as np
import pytest

from mdsd_core.schemes import DistinctConditioned, TopThenSampled, WithoutReplacement
from mdsd_core.verifiers import Estimate, Optimal
from tests.core.verifiers.cases import PAIRS, combinations, enumerated, label
from tests.core.verifiers.decision_tree import decision_law
from tests.instances import steep_pairs, total_variation


@pytest.mark.large
def test_there_are_enough_instances():
    assert len(PAIRS) >= 300
    assert {p.size for p, _ in PAIRS} == set(range(1, 7))


@pytest.mark.parametrize(("rule", "scheme"), combinations(), ids=label)
def test_output_law_is_lossless_and_acceptance_exact(rule, scheme):
    for p, q in PAIRS:
        law, accepted = enumerated(rule.prepare(p, q, scheme), scheme, q)
        assert total_variation(law, p) <= 1e-12
        assert not law[p == 0].any()
        acceptance = rule.acceptance(p, q, scheme)
        if isinstance(acceptance, Estimate):
            assert rule.name == "optimal"
            check_bracket(acceptance, accepted, 1e-6)
        else:
            assert abs(acceptance - accepted) <= 1e-12


def check_bracket(acceptance, accepted, width):
    """The optimal verifier's acceptance where a tolerance costs some: a rigorous bracket."""
    assert acceptance.level == 1.0
    assert acceptance.low == acceptance.value
    assert acceptance.low - 1e-12 <= accepted <= acceptance.high + 1e-12
    assert 1e-12 < acceptance.high - acceptance.low <= width


@pytest.mark.parametrize("scheme", [WithoutReplacement(3), DistinctConditioned(2), TopThenSampled(1, 3)], ids=label)
def test_a_coarse_tolerance_leaves_the_law_as_it_is(scheme):
    rule, brackets = Optimal(tolerance=1e-2), 0
    for p, q in [*PAIRS[::5], *steep_pairs(8, 30)]:
        law, accepted = enumerated(rule.prepare(p, q, scheme), scheme, q)
        assert total_variation(law, p) <= 1e-12
        acceptance = rule.acceptance(p, q, scheme)
        if isinstance(acceptance, Estimate):
            check_bracket(acceptance, accepted, 0.1)
            brackets += 1
        else:
            assert abs(acceptance - accepted) <= 1e-12
    assert brackets > 0


@pytest.mark.parametrize(("rule", "scheme"), combinations(), ids=label)
def test_verify_follows_output_law(rule, scheme):
    rng = np.random.default_rng(scheme.drafts)
    chosen = rng.permutation(len(PAIRS))[:50]
    for p, q in [PAIRS[i] for i in chosen]:
        plan = rule.prepare(p, q, scheme)
        drafts = scheme.sample(q, rng)
        assert total_variation(decision_law(plan, drafts, p.size), plan.output_law(drafts)) <= 1e-12
