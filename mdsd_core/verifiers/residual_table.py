"""Residual masses ``Z(l) = sum_x (p_x - l w_x)_+`` in O(log V) each: one sort by p/w and suffix sums."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdsd_core._jit import kernel
from mdsd_core.transport.order import RatioOrder, ratio_order


class ResidualTable(NamedTuple):
    """Tokens of positive weight in ascending order of p/w, with the sums that give Z at any level.

    Attributes
    ----------
    p, w, ratio : ndarray of float64, shape [m]
        Target probability, draft weight (any scale) and their ratio, of the m tokens with ``w > 0``, sorted by ratio.
    above_p, above_w : ndarray of float64, shape [m + 1]
        Sums of p and w over the tokens from a rank on; those of p include all tokens with ``w = 0``, which no draft can
        ever reject. Summed from the top, so that no sum is a difference of larger ones.
    """

    p: NDArray[np.float64]
    w: NDArray[np.float64]
    ratio: NDArray[np.float64]
    above_p: NDArray[np.float64]
    above_w: NDArray[np.float64]

    @classmethod
    def of(cls, p: NDArray[np.float64], w: NDArray[np.float64]) -> "ResidualTable":
        """Sort, in O(V log V)."""
        return cls.of_order(ratio_order(p, w), p[w == 0.0].sum())

    @classmethod
    def of_order(cls, order: RatioOrder, never: float) -> "ResidualTable":
        """From tokens sorted already and the target mass of those with ``w = 0``, in O(V)."""
        _, p, w = order
        with np.errstate(over="ignore"):  # p over a subnormal w: infinity is in its place
            ratio = p / w
        above_p = np.cumsum(np.concatenate(([never], p[::-1])))[::-1]
        above_w = np.cumsum(np.concatenate(([0.0], w[::-1])))[::-1]
        return cls(p, w, ratio, np.ascontiguousarray(above_p), np.ascontiguousarray(above_w))


@kernel
def rank_above(ratio, level, guess):
    """The first rank with ``ratio > level``, by galloping from a guess: O(log distance)."""
    # double the distance from the guess until the rank is passed, then halve it
    low, high, step = guess, guess, 1
    while low > 0 and ratio[low - 1] > level:
        high, low = low - 1, max(low - 1 - step, 0)
        step *= 2
    while high < ratio.size and ratio[high] <= level:
        low, high = high + 1, min(high + 1 + step, ratio.size)
        step *= 2
    while low < high:
        middle = (low + high) // 2
        if ratio[middle] > level:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def mass_at(level, guess, ratio, above_p, above_w):
    """The first rank with ``ratio > level``, searched from a guess, and ``Z(level)``."""
    rank = rank_above(ratio, level, guess)
    # one expression: with an `if` around an assignment, Numba makes code four times as slow
    return rank, max(above_p[rank] - level * above_w[rank], 0.0) if above_w[rank] > 0.0 else above_p[rank]
