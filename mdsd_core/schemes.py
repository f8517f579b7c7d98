"""Draft-sampling schemes: the law of the drafts S at one node, as frozen dataclasses.

A scheme says how drafts are drawn from the draft distribution `q`. Its *type* is the kind of proposal: nothing in the
library guesses from numbers whether drafts were sampled or chosen.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import check_distribution

#: What stands in a row of drafts after the last one, where fewer than n drafts are possible.
NO_DRAFT = -1


class Scheme(ABC):
    """The law of `n` drafts drawn from a draft distribution `q`.

    Drafts are int64 token ids in the order drawn, along the last axis. Laws without repetition draw the whole support
    where it has fewer than n tokens; the rest of the row is :data:`NO_DRAFT`. A token with ``q = 0`` is never drawn.
    """

    #: True if the drafts of one draw are always different tokens.
    distinct: ClassVar[bool]

    @property
    @abstractmethod
    def drafts(self) -> int:
        """The number n of drafts asked for."""

    def effective_drafts(self, q: NDArray[np.float64]) -> int:
        """How many drafts are really drawn: n, or the size of the support of `q` if drafts differ and it is smaller."""
        return min(self.drafts, int(np.count_nonzero(q))) if self.distinct else self.drafts

    def fixed_set(self, q: NDArray[np.float64]) -> NDArray[np.int64]:
        """The tokens T that are always drafted, ascending ids (empty for most laws; lowest id first among ties)."""
        return np.empty(0, dtype=np.int64)

    def weights(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights w whose ratio ``p/w`` orders the prefixes off T, shape [V], zero where a token is never drawn."""
        return q

    @abstractmethod
    def prefix_mass(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Q at the prefixes of an order off T.

        Parameters
        ----------
        w : ndarray, shape (m,)
            The weights of the m tokens off T, in the order of the prefixes; they need not be normalised.

        Returns
        -------
        ndarray, shape (m + 1,)
            ``Q[k]``: probability that all drafts off T lie among the first k tokens; ``Q[0]`` is 0 (1 if no draft is
            drawn off T), ``Q[m]`` is 1, non-decreasing.
        """

    def prefix_steps(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """The steps of :meth:`prefix_mass`, shape (m,): ``Q[k + 1] - Q[k]``, from the same `w`.

        A law whose small steps would drown in the rounding of Q overrides this with a formula free of cancellation.
        """
        return np.diff(self.prefix_mass(w))

    @abstractmethod
    def enumerate(self, q: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """All draft tuples of positive probability, shape [N, n], and their probabilities, shape [N] (small V only)."""

    @abstractmethod
    def sample(self, q: ArrayLike, rng: np.random.Generator, size: int | None = None) -> NDArray[np.int64]:
        """Draw drafts: shape [n], or [size, n]."""


@dataclass(frozen=True)
class WithReplacement(Scheme):
    """`n` independent drafts from `q`: ``Q(H) = q(H)^n``.

    >>> WithReplacement(2).prefix_mass(np.array([0.25, 0.75]))
    array([0.    , 0.0625, 1.    ])
    """

    n: int
    distinct: ClassVar[bool] = False

    @property
    def drafts(self) -> int:
        """The number n of drafts."""
        return self.n

    def prefix_mass(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """``(w-mass of the prefix / total)^n``; see :meth:`Scheme.prefix_mass`."""
        mass = np.concatenate(([0.0], np.cumsum(w)))
        return (mass / mass[-1]) ** self.n

    def prefix_steps(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """``t^n - s^n`` as ``(t - s)`` times a sum of positive terms; see :meth:`Scheme.prefix_steps`.

        >>> WithReplacement(2).prefix_steps(np.array([1e-30, 1.0]))
        array([1.e-60, 1.e+00])
        """
        mass = np.cumsum(w)
        t = mass / mass[-1]
        s = np.concatenate(([0.0], t[:-1]))
        total, power = np.ones_like(t), np.ones_like(t)
        for _ in range(self.n - 1):
            power *= s
            total *= t
            total += power
        return total * w / mass[-1]

    def enumerate(self, q: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """All tuples over the support; see :meth:`Scheme.enumerate`."""
        q = check_distribution(q, "q")
        support = np.flatnonzero(q)
        grid = np.stack(np.meshgrid(*[support] * self.n, indexing="ij"), axis=-1).reshape(-1, self.n)
        return grid.astype(np.int64), q[grid].prod(axis=1)

    def sample(self, q: ArrayLike, rng: np.random.Generator, size: int | None = None) -> NDArray[np.int64]:
        """Inverse of the distribution function, one uniform a draft; see :meth:`Scheme.sample`."""
        q = check_distribution(q, "q")
        support = np.flatnonzero(q)
        cumulative = np.cumsum(q[support])
        u = rng.random(self.n if size is None else (size, self.n)) * cumulative[-1]
        return support[np.minimum(np.searchsorted(cumulative, u, side="right"), support.size - 1)].astype(np.int64)
