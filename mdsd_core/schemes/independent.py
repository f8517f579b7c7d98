"""Drafts drawn independently, with replacement."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mdsd_core._powers import power_steps
from mdsd_core.distributions import draw_tokens
from mdsd_core.schemes.base import Kind, check_enumerable
from mdsd_core.schemes.inner import InnerLaw


@dataclass(frozen=True)
class WithReplacement(InnerLaw):
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
    kind: ClassVar[Kind] = "independent"

    def inclusion(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """``1 - (1 - q)^n`` without cancellation; see :meth:`Scheme.inclusion`."""
        with np.errstate(divide="ignore"):  # log1p(-1) for the only token
            return -np.expm1(self.n * np.log1p(-np.minimum(w / w.sum(), 1.0)))

    def prefix_steps(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """``t^n - s^n`` as ``(t - s)`` times a sum of positive terms; see :meth:`Scheme.prefix_steps`. O(m n).

        >>> WithReplacement(2).prefix_steps(np.array([1e-30, 1.0]))
        array([1.e-60, 1.e+00])
        """
        return power_steps(w, self.n) if w.any() else np.zeros(w.size)

    def enumerate_by(self, w: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """All tuples over the support; see :meth:`Scheme.enumerate`."""
        support = np.flatnonzero(w)
        check_enumerable(support.size**self.n, w.size, self.n, support.size)
        grid = np.stack(np.meshgrid(*[support] * self.n, indexing="ij"), axis=-1).reshape(-1, self.n)
        probability = (w / w.sum())[grid].prod(axis=1)
        positive = probability > 0
        return grid[positive].astype(np.int64), probability[positive]

    def draw_by(self, w: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.int64]:
        """Inverse of the distribution function, one uniform a draft; O(V + n log V) a draw."""
        return draw_tokens(w, u)
