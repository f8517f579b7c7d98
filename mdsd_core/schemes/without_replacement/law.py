"""Drafts drawn one after the other without replacement."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mdsd_core.schemes._tables import descending, draw_sequential, tail_sums
from mdsd_core.schemes.base import NO_DRAFT, Kind, distinct_tuples
from mdsd_core.schemes.inner import InnerLaw
from mdsd_core.schemes.without_replacement.inclusion import sequential_inclusion
from mdsd_core.schemes.without_replacement.race import race_runs, race_steps


@dataclass(frozen=True)
class WithoutReplacement(InnerLaw):
    """`n` drafts, each drawn from `q` restricted to the tokens not drawn before and renormalised.

    The law of ``multinomial(replacement=False)``, of Gumbel-top-n and of the first n arrivals of an exponential race.
    It is *not* the law whose Q is a ratio of elementary symmetric polynomials: that is :class:`DistinctConditioned`.

    Parameters
    ----------
    n : int
        The number of drafts, >= 1.

    Examples
    --------
    >>> WithoutReplacement(2).prefix_mass(np.array([0.25, 0.25, 0.5])).round(12)
    array([0.        , 0.        , 0.16666667, 1.        ])
    """

    n: int
    kind: ClassVar[Kind] = "sequential"

    def inclusion(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """By quadrature of the race, to 1e-13; see :meth:`Scheme.inclusion`."""
        return sequential_inclusion(w, self.n)

    def prefix_steps(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """By the race integral, see :func:`~mdsd_core.schemes.without_replacement.race.race_steps`."""
        return race_steps(w, self.n)

    def prefix_runs(
        self, w: NDArray[np.float64], p: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.float64]]:
        """By the race integral, see :func:`~mdsd_core.schemes.without_replacement.race.race_runs`."""
        return race_runs(w, p, self.n)

    def enumerate_by(self, w: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """All ordered tuples of different tokens; see :meth:`Scheme.enumerate`."""
        tuples, probability = distinct_tuples(w, self.n)
        positive = probability > 0
        return tuples[positive], probability[positive]

    def draw_by(self, w: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.int64]:
        """Inverse of each conditional distribution function, one uniform a draft.

        O(V log V) for the table, then O(n^2 + n log V) a draw.
        """
        order, sorted_w = descending(w)
        places = np.full(u.shape, NO_DRAFT, dtype=np.int64)
        draw_sequential(tail_sums(sorted_w), u, places)
        return np.where(places == NO_DRAFT, NO_DRAFT, order[places])
