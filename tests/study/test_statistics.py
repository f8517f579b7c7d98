"""Bootstrap over prompts, paired tests, Holm: against enumeration, closed forms and coverage."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from mdsd_study.statistics import (
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_ratio,
    bootstrap_ratio_difference,
    holm,
    paired_p_value,
)


def clustered(rng, prompts=12, positions=20, between=1.0, within=1.0):
    names = [f"p{i}" for i in range(prompts) for _ in range(positions)]
    values = np.repeat(rng.normal(0, between, prompts), positions) + rng.normal(0, within, prompts * positions)
    return values, names


def test_point_and_ends_by_enumeration_of_all_resamples():
    """Three prompts of unequal length: all 27 resamples, and the quantiles of their exact law."""
    values, names = [1.0, 2.0, 6.0, 0.0, 0.0, 3.0], ["a", "a", "b", "c", "c", "c"]
    sums, counts = {"a": 3.0, "b": 6.0, "c": 3.0}, {"a": 2, "b": 1, "c": 3}
    means = sorted(
        sum(sums[x] for x in pick) / sum(counts[x] for x in pick) for pick in itertools.product("abc", repeat=3)
    )
    level = 0.5
    tail = stats.norm.cdf(-math.sqrt(3 / 2) * stats.t.ppf((1 + level) / 2, 2))
    found = bootstrap_mean(values, names, seed=1, level=level, resamples=200_000)
    assert found.mean == 2.0
    assert (found.prompts, found.positions) == (3, 6)
    for end, at in ((found.low, tail), (found.high, 1 - tail)):
        expected = means[math.ceil(at * 27) - 1]
        assert end == pytest.approx(expected, abs=1e-12)
    assert found.low < found.mean < found.high


def test_width_is_that_of_a_t_interval():
    """For equal prompts and normal means the expanded percentile interval is about the t interval."""
    rng = np.random.default_rng(0)
    values, names = clustered(rng, prompts=40, positions=3)
    found = bootstrap_mean(values, names, seed=0, resamples=100_000)
    means = values.reshape(40, 3).mean(axis=1)
    half = stats.t.ppf(0.975, 39) * means.std(ddof=1) / math.sqrt(40)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.03)


def test_coverage_with_a_dozen_prompts():
    """95 % intervals over 12 prompts cover the truth in about 95 of 100 experiments; resampling positions would not."""
    rng = np.random.default_rng(5)
    trials, covered, naive = 400, 0, 0
    for trial in range(trials):
        values, names = clustered(rng, positions=10)
        found = bootstrap_mean(values, names, seed=trial, resamples=1000)
        covered += found.low <= 0 <= found.high
        each = bootstrap_mean(values, [str(i) for i in range(values.size)], seed=trial, resamples=200)
        naive += each.low <= 0 <= each.high
    assert 0.92 <= covered / trials <= 0.98  # 95 % up to 2.5 standard errors
    assert naive / trials < 0.75


def test_order_of_rows_is_free_and_seed_counts():
    rng = np.random.default_rng(3)
    values, names = clustered(rng)
    mixed = rng.permutation(values.size)
    a = bootstrap_mean(values, names, seed=7)
    assert bootstrap_mean(values[mixed], [names[i] for i in mixed], seed=7) == a
    assert bootstrap_mean(values, names, seed=8) != a
    assert a.enough
    assert not bootstrap_mean(values[:220], names[:220], seed=7).enough


def test_interval_contains_the_mean_and_collapses_for_equal_values():
    found = bootstrap_mean([0.1] * 7, list("aabbccc"), seed=0)
    assert found.low <= found.mean <= found.high
    assert found.high - found.low < 1e-15
    alone = bootstrap_mean([0.1, 0.2], ["a", "a"], seed=0)
    assert alone.mean == pytest.approx(0.15)
    assert math.isnan(alone.low)
    assert math.isnan(alone.high)


def test_pairing_cancels_what_two_columns_share():
    rng = np.random.default_rng(2)
    shared, names = clustered(rng, between=10.0)
    a = shared + 0.2 + rng.normal(0, 0.01, shared.size)
    found = bootstrap_difference(a, shared, names, seed=0)
    assert found.mean == pytest.approx(0.2, abs=0.01)
    assert found.high - found.low < 0.01
    assert bootstrap_mean(a, names, seed=0).high - bootstrap_mean(a, names, seed=0).low > 5


def test_p_value_by_hand():
    # sums of the differences per prompt: 1, 2, 3; |total| 6 is reached by 2 of 8 sign patterns
    assert paired_p_value([1.0, 2.0, 3.0], [0.0] * 3, list("abc"), seed=0) == 0.25
    # 1 + 1 = 2 in one prompt and -1 in another: totals 1, 3, -3, -1, so |total| >= 1 always
    assert paired_p_value([1.0, 1.0, 0.0], [0.0, 0.0, 1.0], list("aab"), seed=0) == 1.0
    assert paired_p_value([0.3, 0.3], [0.3, 0.3], list("ab"), seed=0) == 1.0


def test_p_value_of_many_prompts_agrees_with_the_exact_one():
    rng = np.random.default_rng(4)
    differences, names = clustered(rng, prompts=13, positions=2)
    exact = paired_p_value(differences, 0 * differences, names, seed=0)
    sums = differences.reshape(13, 2).sum(axis=1)
    signs = np.array(list(itertools.product((-1, 1), repeat=13)))
    assert exact == np.mean(np.abs(signs @ sums) >= abs(sums.sum()) - 1e-9)
    # a fourteenth prompt without difference changes nothing but the way of computing
    values = np.concatenate([differences, [0.0]])
    drawn = paired_p_value(values, 0 * values, [*names, "zz"], seed=1, resamples=40_000)
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 40_000) + 1e-4)
    assert paired_p_value(np.arange(1.0, 21), np.zeros(20), [str(i) for i in range(20)], seed=0, resamples=99) == 0.01


def test_p_values_keep_their_level():
    rng = np.random.default_rng(6)
    small = 0
    for trial in range(300):
        values, names = clustered(rng, prompts=12, positions=3)
        small += paired_p_value(values, np.zeros_like(values), names, seed=trial) <= 0.05
    assert small / 300 < 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / 300)


def test_holm_by_hand_and_against_its_definition():
    assert holm([0.01, 0.04, 0.03]).tolist() == [0.03, 0.06, 0.06]
    assert holm([0.5, 0.9]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = np.round(rng.random(6) ** 3, 3)
        for alpha in (0.01, 0.05, 0.2):
            order, rejected = np.argsort(p, kind="stable"), set()
            for rank, i in enumerate(order):  # step down until the first that is too large
                if p[i] > alpha / (6 - rank):
                    break
                rejected.add(int(i))
            assert set(np.flatnonzero(holm(p) <= alpha + 1e-15).tolist()) == rejected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap_mean([], [], seed=0), "values must be as many as prompts and at least one"),
        (lambda: bootstrap_mean([1.0], ["a", "b"], seed=0), "values must be as many as prompts"),
        (lambda: bootstrap_mean([[1.0]], ["a"], seed=0), "values must be as many as prompts"),
        (lambda: bootstrap_mean([1.0, np.nan], ["a", "b"], seed=0), r"got values\[1\] = nan"),
        (lambda: bootstrap_mean([1.0], ["a"], seed=0, level=1.0), r"level must lie in \(0, 1\), got 1.0"),
        (lambda: bootstrap_mean([1.0], ["a"], seed=0, resamples=10), "resamples must be at least 100, got 10"),
        (lambda: bootstrap_difference([1.0], [1.0, 2.0], ["a"], seed=0), "a and b must have one shape"),
        (lambda: paired_p_value([1.0], [1.0, 2.0], ["a"], seed=0), "a and b must have one shape"),
        (lambda: holm([0.5, 1.5]), r"p_values must be one list of numbers in \[0, 1\]"),
        (lambda: holm([np.nan]), "p_values must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_ratio_of_sums_by_enumeration_of_all_resamples():
    top, bottom = {"a": 2.0, "b": 9.0, "c": 1.0}, {"a": 1.0, "b": 3.0, "c": 2.0}
    ratios = sorted(
        sum(top[x] for x in pick) / sum(bottom[x] for x in pick) for pick in itertools.product("abc", repeat=3)
    )
    level = 0.5
    tail = stats.norm.cdf(-math.sqrt(3 / 2) * stats.t.ppf((1 + level) / 2, 2))
    found = bootstrap_ratio(
        list(top.values()), list(bottom.values()), list("abc"), seed=1, level=level, resamples=200_000
    )
    assert (found.mean, found.prompts) == (2.0, 3)
    for end, at in ((found.low, tail), (found.high, 1 - tail)):
        assert end == pytest.approx(ratios[math.ceil(at * 27) - 1], abs=1e-12)
    with pytest.raises(ValueError, match="denominator must be > 0"):
        bootstrap_ratio([1.0, 1.0], [1.0, 0.0], ["a", "b"], seed=0)


def test_the_prompts_drawn_are_those_of_scipy():
    rng = np.random.default_rng(3)
    tops, bottoms, names = rng.normal(size=15), rng.random(15) + 0.1, [f"p{i:02d}" for i in range(15)]
    theirs = stats.bootstrap(
        (tops, bottoms),
        lambda top, bottom, axis: top.sum(axis) / bottom.sum(axis),
        paired=True,
        n_resamples=4000,
        method="percentile",
        random_state=np.random.default_rng(7),
    ).bootstrap_distribution
    tail = stats.norm.cdf(-math.sqrt(15 / 14) * stats.t.ppf(0.975, 14))
    found = bootstrap_ratio(tops, bottoms, names, seed=7)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(theirs, [tail, 1 - tail])), abs=1e-12)


def test_difference_of_ratios_by_enumeration_and_pairing():
    a, b = ([2.0, 9.0, 1.0], [1.0, 3.0, 2.0]), ([1.0, 4.0, 1.0], [1.0, 2.0, 1.0])

    def ratio(part, pick):
        return sum(part[0][x] for x in pick) / sum(part[1][x] for x in pick)

    values = sorted(ratio(a, pick) - ratio(b, pick) for pick in itertools.product(range(3), repeat=3))
    level = 0.5
    tail = stats.norm.cdf(-math.sqrt(3 / 2) * stats.t.ppf((1 + level) / 2, 2))
    found = bootstrap_ratio_difference(a, b, list("abc"), seed=1, level=level, resamples=200_000)
    assert found.mean == pytest.approx(2.0 - 1.5, abs=1e-12)
    for end, at in ((found.low, tail), (found.high, 1 - tail)):
        assert end == pytest.approx(values[math.ceil(at * 27) - 1], abs=1e-12)
    same = bootstrap_ratio_difference(a, a, list("abc"), seed=1)
    assert (same.low, same.mean, same.high) == (0.0, 0.0, 0.0)
