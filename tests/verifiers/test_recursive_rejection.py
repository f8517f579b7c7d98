import numpy as np
import pytest

from mdsd_core.schemes import WithReplacement
from mdsd_core.verifiers import verifier
from tests.instances import adversarial_pairs, random_pairs, softmax_pair, total_variation
from tests.verifiers.decision_tree import decision_law

PAIRS = [*adversarial_pairs().values(), *random_pairs(4, 280, range(1, 6))]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_output_law_is_lossless_and_acceptance_exact(n):
    rule, scheme = verifier("rrs"), WithReplacement(n)
    for p, q in PAIRS:
        tuples, weights = scheme.enumerate(q)
        plan = rule.prepare(p, q, scheme)
        law, accepted = np.zeros_like(p), 0.0
        for drafts, weight in zip(tuples, weights):
            one = plan.output_law(drafts)
            law += weight * one
            accepted += weight * one[np.unique(drafts)].sum()
        assert total_variation(law, p) <= 1e-12
        assert rule.acceptance(p, q, scheme) == pytest.approx(accepted, abs=1e-12)


def test_verify_follows_output_law():
    rng = np.random.default_rng(5)
    for p, q in PAIRS[::2]:
        scheme = WithReplacement(int(rng.integers(1, 4)))
        plan = verifier("rrs").prepare(p, q, scheme)
        drafts = scheme.sample(q, rng)
        law = decision_law(plan, drafts, p.size)
        assert total_variation(law, plan.output_law(drafts)) <= 1e-12


def test_one_draft_is_leviathans_rule():
    p, q = softmax_pair(np.random.default_rng(0), 1000)
    rate = verifier("rrs").acceptance(p, q, WithReplacement(1))
    assert rate == pytest.approx(np.minimum(p, q).sum(), abs=1e-13)
