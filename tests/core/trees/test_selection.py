"""Selection on the whole vocabulary: realised exactly, in the polytope, optimal at every scale."""

import numpy as np
import pytest

from mdsd_core.schemes import (
    NO_DRAFT,
    Deterministic,
    DistinctConditioned,
    Scheme,
    SpecHubPairs,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    greedy,
)
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_core.trees.selection import OptimalSelection, selects
from mdsd_core.verifiers import UnsupportedScheme
from tests.instances import adversarial_pairs, fewer, random_pairs

SCHEMES = [
    WithReplacement(1),
    WithReplacement(2),
    WithReplacement(3),
    WithoutReplacement(1),
    WithoutReplacement(2),
    WithoutReplacement(3),
    DistinctConditioned(2),
    DistinctConditioned(3),
    TopThenSampled(1, 2),
    TopThenSampled(2, 2),
    greedy(2),
    greedy(3),
    TopThenSampled(1, 2, True),
    TopThenSampled(2, 2, True),
    TopThenSampled(0, 2, True),
    SpecHubPairs(),
    Deterministic(1),
    Deterministic(2),
]
PAIRS = [*adversarial_pairs().values(), *fewer(random_pairs(7, 60, (1, 2, 3, 4, 5)), 10)]


def subsets(V):
    return [np.array([i for i in range(V) if bits >> i & 1], dtype=int) for bits in range(2**V)]


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_the_marginal_is_realised_and_optimal_at_every_scale(scheme):
    for p, q in PAIRS:
        plan = OptimalSelection(p, q, scheme, 1e-12)
        tuples, weights = scheme.enumerate(q)
        law = np.zeros(p.size)
        for drafts, weight in zip(tuples, weights):
            row = drafts[drafts >= 0]
            share = plan.selection_law(row)
            assert share.sum() == pytest.approx(1.0, abs=1e-12)
            np.add.at(law, row, weight * share)
        np.testing.assert_allclose(law, plan.marginal, rtol=0, atol=1e-12)
        assert np.minimum(p, plan.marginal).sum() == pytest.approx(optimal_acceptance(p, q, scheme).rate, abs=1e-9)
        for scale in (0.05, 0.3, 0.7, 1.0):
            best = min(scale * p[H].sum() + 1 - scheme.set_mass(q, H) for H in subsets(p.size))
            assert np.minimum(scale * p, plan.marginal).sum() == pytest.approx(min(best, scale), abs=1e-9)


def test_select_follows_its_law():
    p, q = np.array([0.1, 0.5, 0.25, 0.15]), np.array([0.4, 0.3, 0.2, 0.1])
    rng = np.random.default_rng(0)
    count = 4000
    for scheme, drafts in ((TopThenSampled(1, 2, True), [0, 2, 3]), (greedy(2), [0, 3]), (Deterministic(2), [0, 1])):
        plan = OptimalSelection(p, q, scheme)
        drafts = np.array(drafts)
        want = plan.selection_law(drafts)
        got = np.bincount([plan.select(drafts, rng) for _ in range(count)], minlength=drafts.size) / count
        assert (np.abs(got - want) <= 5 * np.sqrt(want * (1 - want) / count)).all()  # 5 sigma


def test_the_mark_of_a_missing_draft_is_never_selected_and_takes_no_uniform():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])
    plan = OptimalSelection(p, q, greedy(4))  # more drafts than tokens: nothing is sampled
    drafts, rng, same = np.array([1, 2, 0, NO_DRAFT]), np.random.default_rng(0), np.random.default_rng(0)
    assert [plan.select(drafts, rng) for _ in range(8)] == [plan.select(drafts[:3], same) for _ in range(8)]
    assert rng.random() == same.random()
    assert plan.selection_law(drafts)[3] == 0.0


def test_a_coarse_tolerance_is_realised_exactly_all_the_same():
    for scheme in (WithoutReplacement(3), DistinctConditioned(2), TopThenSampled(1, 2)):
        for p, q in PAIRS[::2]:
            plan = OptimalSelection(p, q, scheme, 1e-2)
            tuples, weights = scheme.enumerate(q)
            law = np.zeros(p.size)
            for drafts, weight in zip(tuples, weights):
                row = drafts[drafts >= 0]
                np.add.at(law, row, weight * plan.selection_law(row))
            np.testing.assert_allclose(law, plan.marginal, rtol=0, atol=1e-12)


def test_schemes_without_a_plan_are_refused():
    class Unknown(WithoutReplacement):
        kind = "by a law of its own"

    class Other(Scheme):
        inner = Unknown(2)

    assert selects(WithoutReplacement(5))
    assert not selects(Other())
    with pytest.raises(UnsupportedScheme, match="no optimal selection plan"):
        OptimalSelection([0.5, 0.5], [0.5, 0.5], Other())
