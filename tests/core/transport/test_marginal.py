"""The optimal marginal: in the base polytope (all subsets), optimal at every scale, exact on skewed input."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from mdsd_core.schemes import (
    NO_DRAFT,
    Deterministic,
    DistinctConditioned,
    SpecHubPairs,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    greedy,
    odds,
)
from mdsd_core.transport.marginal import majorant, optimal_marginal
from mdsd_core.transport.subset import optimal_acceptance
from tests.instances import adversarial_pairs, dirichlet_pair, fewer, normalised, random_pairs, softmax_pair

SCHEMES = {
    "with replacement": [WithReplacement(n) for n in (1, 2, 3, 4)],
    "without replacement": [WithoutReplacement(n) for n in (1, 2, 3, 4)],
    "conditioned": [DistinctConditioned(2), DistinctConditioned(3), DistinctConditioned(2, odds)],
    "top + with": [TopThenSampled(1, 1, True), TopThenSampled(1, 2, True), TopThenSampled(2, 2, True)],
    "top + without": [TopThenSampled(1, 2), TopThenSampled(2, 2), TopThenSampled(0, 3)],
    "greedy": [greedy(2), greedy(3), greedy(4), SpecHubPairs()],
    "deterministic": [Deterministic(1), Deterministic(3)],
}
SCALES = np.geomspace(0.05, 20, 11)


def set_function(scheme, q):
    """Q of all subsets, by enumeration of the draft tuples: shape [2^V], a subset as the bits of its place."""
    tuples, probability = scheme.enumerate(q)
    bits = np.where(tuples == NO_DRAFT, 0, 1 << np.maximum(tuples, 0))
    Q = np.bincount(np.bitwise_or.reduce(bits, axis=1), weights=probability, minlength=1 << q.size)
    for x in range(q.size):
        Q = Q.reshape(-1, 2, 1 << x)
        Q[:, 1] += Q[:, 0]
        Q = Q.reshape(-1)
    return Q


def masses(x):
    """The mass of all subsets, in the same order."""
    result = np.zeros(1)
    for value in x:
        result = np.concatenate((result, result + value))
    return result


def pairs(seed, count):
    return [*adversarial_pairs().values(), *fewer(random_pairs(seed, count), 10)]


@pytest.mark.parametrize("name", SCHEMES)
def test_majorant_lies_in_the_polytope_and_is_optimal_at_every_scale(name):
    for i, (p, q) in enumerate(pairs(7, 1000)):
        scheme = SCHEMES[name][i % len(SCHEMES[name])]
        marginal = optimal_marginal(p, q, scheme)
        r, off = marginal.r, marginal.off_fixed
        Q, P, R = set_function(scheme, q), masses(p), masses(r)
        assert (r >= 0).all()
        assert abs(r.sum() - 1) < 1e-13
        assert (R - Q).min() > -1e-12
        best = (SCALES[:, None] * P + 1 - Q).min(axis=1)
        assert np.abs(np.minimum(SCALES[:, None] * p, r).sum(axis=1) - best).max() < 1e-12
        # the law off T: a draft off T always wins
        fixed = scheme.fixed_set(q)
        if fixed.size == 0:
            assert r is off
        elif off.any():
            assert (off[fixed] == 0).all()
            assert (r <= off + lam_slack(p, fixed)).all()
            holds = np.bitwise_and(np.arange(Q.size), (1 << fixed).sum()) == (1 << fixed).sum()
            assert (masses(off) - Q)[holds].min() > -1e-12
            w = SCALES[SCALES <= 1]
            value = w * p[fixed].sum() + np.minimum(w[:, None] * p, off).sum(axis=1)
            assert np.abs(value - best[: w.size]).max() < 1e-12


def lam_slack(p, fixed):
    """r may exceed the law off T on T only."""
    slack = np.zeros(p.size)
    slack[fixed] = np.inf
    return slack


def test_contacts_are_prefixes_that_bind():
    for i, (p, q) in enumerate(pairs(9, 300)):
        scheme = [WithReplacement(3), WithoutReplacement(2), TopThenSampled(1, 2, True)][i % 3]
        marginal = optimal_marginal(p, q, scheme)
        if marginal.off_fixed.any():
            mass = np.concatenate(([0.0], np.cumsum(marginal.off_fixed[marginal.tokens])))
            Q = scheme.prefix_mass(scheme.weights(q)[marginal.tokens])
            np.testing.assert_allclose(mass[marginal.contacts], Q[marginal.contacts], atol=1e-13)
            assert (marginal.contacts[[0, -1]] == [0, marginal.tokens.size]).all()
            assert (np.diff(marginal.contacts) > 0).all()


@pytest.mark.large
def test_real_sizes_attain_the_rate():
    """Softmax pairs at real sizes, and schemes with a fixed set at V = 50 and 1000."""
    rng = np.random.default_rng(2)
    for V, schemes in (
        (50, [TopThenSampled(2, 2, True), TopThenSampled(1, 3), greedy(3), WithReplacement(8)]),
        (1000, [TopThenSampled(2, 2, True), TopThenSampled(1, 3), greedy(3), WithoutReplacement(4)]),
        (50_000, [WithReplacement(2), WithReplacement(8), TopThenSampled(3, 4, True), greedy(4)]),
    ):
        for scheme in schemes:
            for temperature in (0.3, 1.0):
                p, q = softmax_pair(rng, V, temperature=temperature)
                rate = optimal_acceptance(p, q, scheme).rate
                fixed = p[scheme.fixed_set(q)].sum()
                majorant = optimal_marginal(p, q, scheme)
                assert np.minimum(p, majorant.r).sum() == pytest.approx(rate, abs=1e-12)
                assert fixed + np.minimum(p, majorant.off_fixed).sum() == pytest.approx(rate, abs=1e-12)


def exact_majorant(p, w, n):
    """The majorant in rational arithmetic, for tokens in ratio order with p > 0."""
    total = sum(w)
    sums = [Fraction(0)]
    for x in w:
        sums.append(sums[-1] + x / total)
    blocks = []
    for k, x in enumerate(p):
        blocks.append([x, sums[k + 1] ** n - sums[k] ** n, [k]])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] <= blocks[-1][1] * blocks[-2][0]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last)]
    return {k: r / mass * p[k] for mass, r, ranks in blocks for k in ranks}


def test_small_probabilities_keep_their_relative_accuracy():
    rng = np.random.default_rng(3)
    for i in range(200):
        V, n = int(rng.integers(2, 7)), int(rng.integers(2, 6))
        p, q = (normalised(10.0 ** -rng.uniform(0, 40, V)) for _ in range(2))
        marginal = optimal_marginal(p, q, WithReplacement(n))
        order = marginal.tokens
        exact = exact_majorant([Fraction(x) for x in p[order]], [Fraction(x) for x in q[order]], n)
        for k, r in exact.items():
            assert marginal.r[order[k]] == pytest.approx(float(r), rel=1e-13, abs=1e-300), i


def test_the_majorant_is_the_isotonic_regression_of_scipy():
    rng = np.random.default_rng(4)
    for i in range(300):
        m = int(rng.integers(1, 200))
        p, steps = (rng.dirichlet(np.full(m, rng.choice([0.1, 1.0, 10.0]))) + 1e-12 for _ in range(2))
        fit = isotonic_regression(steps / p, weights=p, increasing=False)
        r, vertices = majorant(p, steps)
        np.testing.assert_allclose(r, fit.x * p, rtol=1e-12, atol=1e-15, err_msg=str(i))
        assert vertices.tolist() == fit.blocks.tolist(), i


def test_tokens_without_target_mass_come_first_and_keep_their_steps():
    p, q = np.array([0.0, 0.6, 0.0, 0.4]), np.array([0.25, 0.25, 0.25, 0.25])
    marginal = optimal_marginal(p, q, WithReplacement(2))
    assert marginal.tokens.tolist() == [0, 2, 3, 1]
    np.testing.assert_allclose(marginal.r[[0, 2]], [1 / 16, 3 / 16], atol=1e-16)


def test_a_target_mass_too_small_to_divide_by():
    """Subnormal p: the chord from (0, 0) would cut off half of Q."""
    p = np.array([5e-324, 5e-324, 1.0])
    q = np.array([0.5, 0.1, 0.4])
    r = optimal_marginal(p, q, WithReplacement(2)).r
    assert abs(r.sum() - 1) < 1e-15
    assert (masses(r) - set_function(WithReplacement(2), q)).min() > -1e-15


def test_relabelling_changes_nothing():
    rng = np.random.default_rng(5)
    for scheme in (WithReplacement(3), WithoutReplacement(3), TopThenSampled(1, 2, True)):
        p, q = softmax_pair(rng, 200)
        sigma = rng.permutation(200)
        r = optimal_marginal(p, q, scheme).r
        np.testing.assert_allclose(optimal_marginal(p[sigma], q[sigma], scheme).r, r[sigma], atol=1e-15)


def test_one_draft_and_equal_distributions():
    rng = np.random.default_rng(6)
    p, q = dirichlet_pair(rng, 40, 1.0)
    np.testing.assert_allclose(optimal_marginal(p, q, WithReplacement(1)).r, q, atol=1e-16)
    for scheme in (WithReplacement(4), WithoutReplacement(4), DistinctConditioned(3)):
        np.testing.assert_allclose(optimal_marginal(p, p, scheme).r, p, atol=1e-15)


def test_inputs_are_checked_and_not_changed():
    p, q = softmax_pair(np.random.default_rng(1), 20)
    p.flags.writeable = q.flags.writeable = False
    optimal_marginal(p, q, TopThenSampled(2, 2, True))
    with pytest.raises(ValueError, match="q must be finite"):
        optimal_marginal(p, np.full(20, np.nan), WithReplacement(2))
