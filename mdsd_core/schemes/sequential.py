"""Drafts drawn one after the other without replacement."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import check_distribution
from mdsd_core.schemes._tables import descending, draw_sequential, tail_sums
from mdsd_core.schemes.base import NO_DRAFT, Scheme, arrangements, check_count, check_enumerable, rows_of
from mdsd_core.transport.race import race_runs, race_steps


@dataclass(frozen=True)
class WithoutReplacement(Scheme):
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

    def __post_init__(self) -> None:
        check_count("n", self.n)

    @property
    def drafts(self) -> int:
        """The number n of drafts."""
        return self.n

    @property
    def distinct(self) -> bool:
        """True."""
        return True

    def prefix_steps(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """By the race integral, see :func:`~mdsd_core.transport.race.race_steps`."""
        return race_steps(w, self.n)

    def prefix_runs(
        self, w: NDArray[np.float64], p: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.float64]]:
        """By the race integral, see :func:`~mdsd_core.transport.race.race_runs`."""
        return race_runs(w, p, self.n)

    def enumerate(self, q: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """All ordered tuples of different tokens; see :meth:`Scheme.enumerate`."""
        return enumerate_sequential(check_distribution(q, "q"), self.n)

    def draw(self, q: ArrayLike, u: ArrayLike) -> NDArray[np.int64]:
        """Inverse of each conditional distribution function, one uniform a draft.

        O(V log V) for the table, then O(n^2 + n log V) a draw.
        """
        q = check_distribution(q, "q")
        drafts = draw_without_replacement(q, rows_of(u, self.uniforms))
        return drafts if np.ndim(u) == 2 else drafts[0]


def draw_without_replacement(w: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.int64]:
    """Tokens drawn sequentially without replacement, a row for each row of u."""
    order, sorted_w = descending(w)
    places = np.full(u.shape, NO_DRAFT, dtype=np.int64)
    draw_sequential(tail_sums(sorted_w), u, places)
    return np.where(places == NO_DRAFT, NO_DRAFT, order[places])


def enumerate_sequential(w: NDArray[np.float64], n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All ordered n-tuples of different tokens of positive weight, and their probabilities."""
    support = np.flatnonzero(w)
    depth = min(n, support.size)
    check_enumerable(arrangements(support.size, depth), w.size, n, support.size)
    tuples, probability = np.empty((1, 0), dtype=np.int64), np.ones(1)
    left = np.ones((1, support.size), dtype=bool)  # which tokens a prefix of a tuple has not used
    for _ in range(depth):
        weights = np.where(left, w[support], 0.0)
        conditional = weights / weights.sum(axis=1, keepdims=True)
        row, token = np.nonzero(left)
        tuples = np.concatenate((tuples[row], token[:, None]), axis=1)
        probability = probability[row] * conditional[row, token]
        left = left[row]
        left[np.arange(token.size), token] = False
    positive = probability > 0
    padding = np.full((int(positive.sum()), n - depth), NO_DRAFT, dtype=np.int64)
    return np.concatenate((support[tuples[positive]], padding), axis=1), probability[positive]
