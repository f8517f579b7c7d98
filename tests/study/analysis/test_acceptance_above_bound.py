"""The faulty rule that skips duplicates against enumeration; the exact chance of a count above the bound."""

import numpy as np
import pytest
from scipy import stats

from mdsd_core.schemes import WithoutReplacement, WithReplacement
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_core.verifiers import verifier
from mdsd_study.analysis.acceptance_above_bound import (
    chance_above,
    skipped_duplicates,
    skipping_law,
    verify_skipping,
    wilson,
)


def instances(count=60):
    rng = np.random.default_rng(4)
    for i in range(count):
        V = int(rng.integers(2, 6))
        p, q = rng.dirichlet(np.full(V, 0.5)), rng.dirichlet(np.full(V, 0.5))
        if i % 5 == 0:
            p[rng.integers(V)] = 0.0
            p /= p.sum()
        yield p, q
    for p, q in (([1.0], [1.0]), ([0.5, 0.5], [0.5, 0.5]), ([1.0, 0.0], [0.0, 1.0]), ([0.0, 1.0], [1.0, 0.0])):
        yield np.array(p), np.array(q)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_formula_is_the_sum_over_all_tuples(n):
    for p, q in instances():
        found = skipped_duplicates(p, q, n)
        tuples, weights = WithReplacement(n).enumerate(q)
        laws = [skipping_law(p, q, drawn) for drawn in tuples]
        law = sum(w * one for w, one in zip(weights, laws, strict=True))
        accepted = sum(w * one[np.unique(drawn)].sum() for w, one, drawn in zip(weights, laws, tuples, strict=True))
        assert np.abs(found.law - law).max() < 1e-14
        assert found.acceptance == pytest.approx(accepted, abs=1e-14)
        assert found.deviation == pytest.approx(0.5 * np.abs(law - p).sum(), abs=1e-14)
        assert found.law.sum() == pytest.approx(1.0, abs=1e-14)


def test_skipping_accepts_at_least_as_often_as_rrs_and_is_not_lossless():
    """The first duplicate that can matter is the second of three drafts: with two only the law is wrong."""
    more, wrong = 0, 0
    for p, q in instances():
        for n in (1, 2, 3):
            found = skipped_duplicates(p, q, n)
            proper = verifier("rrs").acceptance(p, q, WithReplacement(n))
            assert found.acceptance >= proper - 1e-13
            if n < 3:
                assert found.acceptance == pytest.approx(proper, abs=1e-13)
            more += found.acceptance > proper + 1e-3
            wrong += found.deviation > 1e-3
            if n == 1:
                assert found.deviation < 1e-14
    assert more > 10
    assert wrong > 20


def test_the_toy_of_the_book_lies_above_the_bound():
    p, q = [0.0, 0.3, 0.7], [0.7, 0.2, 0.1]
    scheme = WithReplacement(3)
    assert verifier("rrs").acceptance(p, q, scheme) == pytest.approx(0.523, abs=1e-12)
    assert optimal_acceptance(p, q, scheme).rate == pytest.approx(0.571, abs=1e-12)
    assert skipped_duplicates(p, q, 3).acceptance == pytest.approx(0.593, abs=1e-12)


def test_dropping_duplicates_is_lossless_where_the_law_is_renormalised():
    """The right way to drop them: judge the different drafts by the rule without replacement."""
    for p, q in instances(20):
        tuples, weights = WithReplacement(3).enumerate(q)
        law, accepted = np.zeros_like(p), 0.0
        for drawn, weight in zip(tuples, weights, strict=True):
            different = list(dict.fromkeys(drawn.tolist()))
            plan = verifier("rrs_without").prepare(p, q, WithoutReplacement(len(different)))
            one = plan.output_law(different)
            law += weight * one
            accepted += weight * one[different].sum()
        assert 0.5 * np.abs(law - p).sum() < 1e-12
        assert accepted <= optimal_acceptance(p, q, WithReplacement(3)).rate + 1e-12


def test_verify_follows_the_law():
    p, q = np.array([0.1, 0.25, 0.55, 0.1]), np.array([0.6, 0.2, 0.1, 0.1])
    rng = np.random.default_rng(0)
    for drawn in ([0, 0, 1], [0, 1, 0], [0, 0, 0]):
        law = skipping_law(p, q, drawn)
        verdicts = [verify_skipping(p, q, drawn, rng) for _ in range(4000)]
        seen = np.bincount([v.token for v in verdicts], minlength=4)
        possible = law > 0
        assert seen[~possible].sum() == 0
        assert stats.chisquare(seen[possible], 4000 * law[possible]).pvalue > 1e-4
        assert all(v.accepted_index == (drawn.index(v.token) if v.token in drawn else -1) for v in verdicts)


def test_inputs_are_checked_and_kept():
    p, q = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    p.flags.writeable = q.flags.writeable = False
    skipped_duplicates(p, q, 3)
    with pytest.raises(ValueError, match="n must be at most 3"):
        skipped_duplicates(p, q, 4)
    with pytest.raises(ValueError, match="one vocabulary"):
        skipped_duplicates([1.0], q, 2)
    with pytest.raises(ValueError, match="drafts must lie in"):
        verify_skipping(p, q, [0, 2], np.random.default_rng(0))


def test_chance_above_against_the_convolution():
    rng = np.random.default_rng(1)
    for size, rounds in ((1, 1), (7, 1), (5, 13), (200, 1), (30, 40)):
        a = np.concatenate((rng.random(size), [0.0, 1.0]))
        law = np.ones(1)
        for x in np.repeat(a, rounds):
            law = np.convolve(law, [1 - x, x])
        for bound in (0.0, 0.3, float(a.mean()), 0.9, 1.0):
            expected = law[np.arange(law.size) > (law.size - 1) * bound + 1e-9].sum()
            assert chance_above(a, bound, rounds=rounds) == pytest.approx(expected, abs=1e-11)


def test_chance_above_needs_more_than_the_bound():
    assert chance_above([0.5], 0.5, rounds=2) == pytest.approx(0.25, abs=1e-12)  # one of two is not above
    assert chance_above([1.0], 1.0) == 0.0
    assert chance_above([0.4], 0.4, rounds=20_000) == pytest.approx(0.5, abs=0.01)
    assert chance_above([0.4], 0.42, rounds=20_000) < 1e-7
    with pytest.raises(ValueError, match="acceptances must be probabilities"):
        chance_above([1.2], 0.5)
    with pytest.raises(ValueError, match="bound must lie in"):
        chance_above([0.2], 1.5)


def test_wilson_covers():
    """Exactly: the interval of every possible count, weighted by its chance."""
    for chance in (0.1, 0.5, 0.83):
        count = np.arange(101)
        covered = [low <= chance <= high for low, high in (wilson(int(k), 100) for k in count)]
        assert 0.93 < stats.binom.pmf(count, 100, chance)[covered].sum() < 0.975
    with pytest.raises(ValueError, match="successes must lie in"):
        wilson(11, 10)
    with pytest.raises(ValueError, match="level must lie in"):
        wilson(1, 10, level=1.0)
