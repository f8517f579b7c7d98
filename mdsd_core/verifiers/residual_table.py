"""Residual masses ``Z(l) = sum_x (p_x - l w_x)_+`` in O(log V) each: one sort by p/w and suffix sums."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdsd_core._jit import inline_kernel, kernel
from mdsd_core.transport.order import RatioOrder, ratio_order


@dataclass(frozen=True, eq=False)
class ResidualTable:
    """Tokens of positive weight in ascending order of p/w, with what is needed to evaluate Z at any level.

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
    low, high, step = 0, ratio.size, 1
    if guess < high and ratio[guess] <= level:
        low = guess + 1
        while low + step <= ratio.size:
            probe = low + step - 1
            if ratio[probe] > level:
                high = probe
                break
            low = probe + 1
            step *= 2
    else:
        high = guess
        while high - step >= 0:
            probe = high - step
            if ratio[probe] <= level:
                low = probe + 1
                break
            high = probe
            step *= 2
    while low < high:
        middle = (low + high) // 2
        if ratio[middle] > level:
            high = middle
        else:
            low = middle + 1
    return low


@inline_kernel
def mass_at(rank, level, above_p, above_w):
    """``Z(level)``, where `rank` is the first rank with ``ratio > level``."""
    return max(above_p[rank] - level * above_w[rank], 0.0) if above_w[rank] > 0.0 else above_p[rank]
