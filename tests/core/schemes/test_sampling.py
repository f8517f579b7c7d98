"""Samplers: their law by exact integration over the uniforms, and by chi-square where that is out of reach."""

from collections import defaultdict

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

from mdsd_core.schemes import (
    Deterministic,
    DistinctConditioned,
    SpecHubPairs,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    greedy,
    odds,
)
from tests.instances import adversarial_pairs, softmax_pair
from tests.laws import all_schemes

SCHEMES = [
    WithReplacement(2),
    WithReplacement(3),
    WithoutReplacement(2),
    WithoutReplacement(3),
    DistinctConditioned(2),
    DistinctConditioned(3),
    DistinctConditioned(2, odds),
    TopThenSampled(1, 2),
    TopThenSampled(1, 2, True),
    greedy(3),
    SpecHubPairs(),
    Deterministic(2),
]


def pieces(function, low, high, at_low, at_high, out):
    """Cut [low, high] where a function constant on intervals changes its value, to the last bit."""
    if at_low == at_high or high - low <= 2.0**-53:
        out.append((high if at_low == at_high else 0.5 * (low + high), at_low))
        if at_low != at_high:
            out.append((high, at_high))
        return
    middle = 0.5 * (low + high)
    at_middle = function(middle)
    pieces(function, low, middle, at_low, at_middle, out)
    pieces(function, middle, high, at_middle, at_high, out)


def integrated_law(scheme, q):
    """The law of ``scheme.draw(q, u)`` for uniform u, by exact integration over one uniform after the other."""
    law = defaultdict(float)

    def integrate(chosen, mass):
        if len(chosen) == scheme.uniforms:
            law[tuple(scheme.draw(q, np.array(chosen)).tolist())] += mass
            return

        def drafts(u):
            row = [*chosen, u, *[0.5] * (scheme.uniforms - len(chosen) - 1)]
            return tuple(scheme.draw(q, np.array(row)).tolist())

        top = np.nextafter(1.0, 0)
        cuts = []
        pieces(drafts, 0.0, 1.0, drafts(0.0), drafts(top), cuts)
        merged = []
        for end, value in cuts:
            if merged and merged[-1][1] == value:
                merged[-1] = (end, value)
            else:
                merged.append((end, value))
        start = 0.0
        for end, _ in merged:
            if end > start:
                integrate([*chosen, min(0.5 * (start + end), top)], mass * (end - start))
            start = end

    integrate([], 1.0)
    return law


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("q", [[0.2, 0.5, 0.3], [0.1, 0.0, 0.6, 0.3], [0.25, 0.25, 0.25, 0.25]], ids=str)
def test_law_of_the_algorithm_is_the_law_of_the_scheme(scheme, q):
    integrated = integrated_law(scheme, np.array(q))
    tuples, probability = scheme.enumerate(q)
    exact = {tuple(row): mass for row, mass in zip(tuples.tolist(), probability)}
    assert set(integrated) == set(exact)
    for row, mass in exact.items():
        assert abs(integrated[row] - mass) < 1e-14, row


def test_later_drafts_keep_their_proportions_behind_a_nearly_certain_token():
    """What is left after the largest token is 1e-13; the second draft still has the law q renormalised."""
    q = np.array([1e-13, 1 - 4e-13, 3e-13])
    rows = WithoutReplacement(2).draw(q, np.stack((np.full(1000, 0.3), (np.arange(1000) + 0.5) / 1000), axis=1))
    assert (rows[:, 0] == 1).all()
    assert abs((rows[:, 1] == 2).mean() - 0.75) < 2e-3
    u = np.stack((np.full(1000, 0.3), (np.arange(1000) + 0.5) / 1000, np.full(1000, 0.1)), axis=1)
    rows = DistinctConditioned(2).draw(q, u)
    assert abs((rows == 2).any(axis=1).mean() - 0.75) < 2e-3


CELLS = 250
DRAWS = 600_000


def cells_of(tuples, V):
    """A fixed, random-looking partition of all tuples into cells."""
    index = np.zeros(len(tuples), dtype=np.uint64)
    for column in tuples.T:
        index = index * np.uint64(V + 1) + column.astype(np.uint64) + np.uint64(1)
    return (((index * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)) % np.uint64(CELLS)).astype(np.int64)


def chi_square(counts, probability, draws):
    """Statistic and threshold at level 1e-6, and the power against a law at total variation 0.01 on the cells."""
    assert draws * probability.min() >= 5
    statistic = ((counts - draws * probability) ** 2 / (draws * probability)).sum()
    threshold = chi2.isf(1e-6, counts.size - 1)
    # sum of (p' - p)^2 / p is at least (2 TV)^2
    power = ncx2.sf(threshold, counts.size - 1, draws * (2 * 0.01) ** 2)
    return statistic, threshold, power


@pytest.mark.large
@pytest.mark.parametrize("scheme", [s for s in SCHEMES if (s.uniforms and s.drafts == 2) or s == greedy(3)], ids=str)
def test_chi_square_at_large_vocabulary(scheme):
    """V = 1000: a sampler off by total variation 0.01 (on the cells) would be caught with probability 0.999."""
    q = softmax_pair(np.random.default_rng(1), 1000, temperature=1.5)[1]
    tuples, probability = scheme.enumerate(q)
    law = np.bincount(cells_of(tuples, q.size), probability, CELLS)
    drawn = scheme.sample(q, np.random.default_rng(2), DRAWS)
    used = law * DRAWS >= 5  # cells are all used but for laws with few tuples
    counts = np.bincount(cells_of(drawn, q.size), minlength=CELLS)
    law, counts = np.append(law[used], law[~used].sum() + 1e-300), np.append(counts[used], counts[~used].sum())
    if law[-1] * DRAWS < 5:
        assert counts[-1] <= 30
        law, counts = law[:-1], counts[:-1]
    statistic, threshold, power = chi_square(counts, law / law.sum(), counts.sum())
    assert power >= 0.999
    assert statistic < threshold


@pytest.mark.large
@pytest.mark.parametrize("scheme", [s for s in SCHEMES if s.uniforms], ids=str)
def test_chi_square_at_six_tokens(scheme):
    """V = 6, every tuple a cell: total variation 0.01 would be caught with probability 0.999."""
    q = np.array([0.3, 0.05, 0.25, 0.1, 0.2, 0.1])
    tuples, probability = scheme.enumerate(q)
    drawn = scheme.sample(q, np.random.default_rng(3), DRAWS)
    rows, counts = np.unique(np.concatenate((tuples, drawn)), axis=0, return_counts=True)
    assert len(rows) == len(tuples)
    order = np.lexsort(tuples.T[::-1])
    statistic, threshold, power = chi_square(counts - 1, probability[order], DRAWS)
    assert power >= 0.999
    assert statistic < threshold


@pytest.mark.large
def test_chi_square_bites():
    """Drafts of another law, as near as the two laws without replacement are, do not pass."""
    q = np.array([0.3, 0.05, 0.25, 0.1, 0.2, 0.1])
    tuples, probability = WithoutReplacement(2).enumerate(q)
    drawn = DistinctConditioned(2).sample(q, np.random.default_rng(3), DRAWS)
    _, counts = np.unique(np.concatenate((tuples, drawn)), axis=0, return_counts=True)
    statistic, threshold, _ = chi_square(counts - 1, probability[np.lexsort(tuples.T[::-1])], DRAWS)
    assert statistic > threshold


def test_extreme_uniforms_never_draw_a_token_of_probability_zero():
    top = np.nextafter(1.0, 0)
    for _, q in adversarial_pairs().values():
        for n in (1, 2, 3, 4):
            for scheme in all_schemes(n):
                for row in ([0.0] * scheme.uniforms, [top] * scheme.uniforms, [top, 0.0] * scheme.uniforms):
                    scheme.check_drafts(q, scheme.draw(q, row[: scheme.uniforms]))


def test_shapes_and_streams():
    q = np.array([0.2, 0.5, 0.3])
    for n in (1, 2, 4):
        for scheme in all_schemes(n):
            one = scheme.sample(q, np.random.default_rng(5))
            assert one.shape == (scheme.drafts,)
            assert one.dtype == np.int64
            many = scheme.sample(q, np.random.default_rng(5), 7)
            assert many.shape == (7, scheme.drafts)
            np.testing.assert_array_equal(many[0], one)
            assert scheme.sample(q, np.random.default_rng(5), 0).shape == (0, scheme.drafts)
            # the number of uniforms used does not depend on q
            rngs = np.random.default_rng(6), np.random.default_rng(6)
            scheme.sample(q, rngs[0])
            scheme.sample([0.0, 1.0, 0.0], rngs[1])
            assert rngs[0].random() == rngs[1].random()


def test_uniforms_are_checked():
    with pytest.raises(ValueError, match=r"u must have shape \(2,\) or \(size, 2\)"):
        WithReplacement(2).draw([0.5, 0.5], [0.1])
    for wrong in (1.0, -0.1, np.nan):
        with pytest.raises(ValueError, match=r"u must lie in \[0, 1\)"):
            WithReplacement(1).draw([0.5, 0.5], [wrong])
    with pytest.raises(ValueError, match="size must be an integer >= 0"):
        WithReplacement(1).sample([0.5, 0.5], np.random.default_rng(0), -1)
