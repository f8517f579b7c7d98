"""The draw that every rule ends with, and the sums that the acceptances are made of."""

import numpy as np
import pytest

from mdsd_core.verifiers.recursive_rejection.exact import rejection_exact
from mdsd_core.verifiers.residual import draw, residual, residual_mass, rest_mass
from mdsd_core.verifiers.residual_table import ResidualTable, mass_at
from tests.core.verifiers.cases import PAIRS
from tests.core.verifiers.decision_tree import LAST
from tests.instances import dirichlet_pair, softmax_pair


def test_draw_is_the_inverse_of_the_cumulative_weights():
    rng = np.random.default_rng(0)
    for size in (1, 5, 511, 512, 513, 1500):
        weights = rng.random(size) * (rng.random(size) < 0.5)
        weights[rng.integers(size)] = 1.0
        reached = np.cumsum(weights)
        for token in np.flatnonzero(weights)[:: max(1, size // 40)]:
            middle = (reached[token] - 0.5 * weights[token]) / reached[-1]
            assert draw(weights, middle) == token


def test_draw_never_returns_a_token_without_weight():
    tail = np.zeros(2000)
    tail[[3, 700, 900]] = 0.1, 0.2, 0.7
    assert draw(tail, 0.0) == 3
    assert draw(tail, LAST) == 900
    assert draw(np.zeros(5), 0.5) == -1
    assert draw(np.array([0.0, 5e-324, 0.0]), LAST) == 1  # the point sought rounds to the end of the sum
    assert draw(np.array([1.0, 1e-17, 0.0, 0.0]), LAST) in (0, 1)


def test_residual_and_its_mass():
    p, q = softmax_pair(np.random.default_rng(1), 700)
    for level in (0.0, 0.7, 1.0, 3.0):
        expected = np.maximum(p - level * q, 0)
        np.testing.assert_array_equal(residual(p, q, level), expected)
        assert residual_mass(p, q, level) == pytest.approx(expected.sum(), rel=1e-14)


def test_rest_is_summed_without_what_is_gone():
    w = np.array([1.0, 1e-30, 3e-30, 2e-30])
    assert rest_mass(w, np.array([0])) == pytest.approx(6e-30, rel=1e-15)
    assert rest_mass(w, np.array([2, 0])) == pytest.approx(3e-30, rel=1e-15)
    assert rest_mass(w, np.array([3, 0, 2, 1])) == 0.0


def test_table_gives_the_mass_at_any_level():
    rng = np.random.default_rng(2)
    for p, q in [*PAIRS[:60], softmax_pair(rng, 300)]:
        table = ResidualTable.of(p, q)
        for level in [0.0, 1.0, *rng.uniform(0, 4, 20), *table.ratio[np.isfinite(table.ratio)][:5]]:
            expected = np.maximum(p - level * q, 0).sum()
            for guess in (0, table.ratio.size, int(rng.integers(table.ratio.size + 1))):
                rank, mass = mass_at(level, guess, table.ratio, table.above_p, table.above_w)
                assert rank == np.searchsorted(table.ratio, level, side="right")
                assert mass == pytest.approx(expected, abs=1e-14)


def rejection_by_vectors(r, w, draws):
    """P(all drafts without replacement are rejected), by the textbook recursion on whole vectors."""
    drawn = w / w.sum()
    left = np.maximum(r - drawn, 0.0)
    if draws == 1 or not left.any():
        return left.sum()
    rejected, tokens = np.maximum(drawn - r, 0.0), np.arange(w.size)
    after = [
        rejected[x] * rejection_by_vectors(left / left.sum(), np.where(tokens == x, 0.0, w), draws - 1)
        for x in np.flatnonzero(rejected)
    ]
    return sum(after)


@pytest.mark.parametrize("draws", [1, 2, 3])
def test_rejection_by_levels_is_the_recursion_on_vectors(draws):
    rng = np.random.default_rng(3)
    larger = [softmax_pair(rng, 30), dirichlet_pair(rng, 35), softmax_pair(rng, 25, temperature=0.05)]
    for p, q in [*PAIRS[::3], *larger]:
        if np.count_nonzero(q) >= draws:
            found = rejection_exact(ResidualTable.of(p, q * 2.0**64), draws)
            assert found == pytest.approx(rejection_by_vectors(p, q, draws), abs=1e-13)
