"""Drafts drawn independently, with replacement."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core._powers import power_steps
from mdsd_core.distributions import check_distribution
from mdsd_core.schemes.base import Scheme, check_count, check_enumerable, rows_of


@dataclass(frozen=True)
class WithReplacement(Scheme):
    """`n` independent drafts from `q`: ``Q(H) = q(H)^n``.

    Parameters
    ----------
    n : int
        The number of drafts, >= 1.

    Examples
    --------
    >>> WithReplacement(2).prefix_mass(np.array([0.25, 0.75]))
    array([0.    , 0.0625, 1.    ])
    """

    n: int

    def __post_init__(self) -> None:
        check_count("n", self.n)

    @property
    def drafts(self) -> int:
        """The number n of drafts."""
        return self.n

    @property
    def distinct(self) -> bool:
        """False: a token may be drawn more than once."""
        return False

    def prefix_steps(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """``t^n - s^n`` as ``(t - s)`` times a sum of positive terms; see :meth:`Scheme.prefix_steps`. O(m n).

        >>> WithReplacement(2).prefix_steps(np.array([1e-30, 1.0]))
        array([1.e-60, 1.e+00])
        """
        return power_steps(w, self.n) if w.any() else np.zeros(w.size)

    def enumerate(self, q: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """All tuples over the support; see :meth:`Scheme.enumerate`."""
        q = check_distribution(q, "q")
        return enumerate_independent(q, self.n)

    def draw(self, q: ArrayLike, u: ArrayLike) -> NDArray[np.int64]:
        """Inverse of the distribution function, one uniform a draft; O(V + n log V) a draw."""
        q = check_distribution(q, "q")
        drafts = draw_independent(q, rows_of(u, self.uniforms))
        return drafts if np.ndim(u) == 2 else drafts[0]


def draw_independent(w: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.int64]:
    """Independent tokens of law w / sum(w), one for every entry of u."""
    support = np.flatnonzero(w)
    cumulative = np.cumsum(w[support])
    place = np.searchsorted(cumulative, u * cumulative[-1], side="right")
    return support[np.minimum(place, support.size - 1)].astype(np.int64)


def enumerate_independent(w: NDArray[np.float64], n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All n-tuples over the support of w and their probabilities."""
    support = np.flatnonzero(w)
    check_enumerable(support.size**n, w.size, n, support.size)
    grid = np.stack(np.meshgrid(*[support] * n, indexing="ij"), axis=-1).reshape(-1, n)
    probability = (w / w.sum())[grid].prod(axis=1)
    positive = probability > 0
    return grid[positive].astype(np.int64), probability[positive]
