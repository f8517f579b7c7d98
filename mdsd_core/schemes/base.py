"""What every draft-sampling scheme is: the law of the drafts at one node."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from math import comb, perm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import check_distribution
from mdsd_core.schemes._leading import leading

#: What stands in a row of drafts after the last one, where fewer than n drafts are possible.
NO_DRAFT = -1

#: Up to how many top tokens are kept in order in one pass.
_FEW = 16

#: Most tuples that :meth:`Scheme.enumerate` lists.
ENUMERATION_LIMIT = 5_000_000


class Scheme(ABC):
    """The law of `n` drafts drawn from a draft distribution `q`.

    Drafts are int64 token ids in the order drawn, along the last axis. A token with ``q = 0`` is never drawn. Laws
    without repetition draw the whole support where it has fewer than n tokens; the rest of the row is :data:`NO_DRAFT`.

    Notes
    -----
    All a scheme has to say to the optimal transport of a step is its set function ``Q(H) = P(every draft is in H)``,
    on prefixes of one order: a fixed set T (always drafted, mostly empty), weights w off T, and the steps of Q along
    any order of the tokens off T. Every scheme here is *w-convex* off T: the steps divided by the weights never fall
    along any order, so the ratio ``p/w`` orders the tokens of the optimal subset (Hu et al., arXiv 2502.18779).
    """

    @property
    @abstractmethod
    def drafts(self) -> int:
        """The number n of drafts asked for."""

    @property
    @abstractmethod
    def distinct(self) -> bool:
        """True if the drafts of one draw are always different tokens."""

    @property
    def uniforms(self) -> int:
        """How many uniforms one draw takes."""
        return self.drafts

    def effective_drafts(self, q: NDArray[np.float64]) -> int:
        """How many drafts are really drawn: n, or the size of the support if drafts differ and it is smaller."""
        return min(self.drafts, support_size(q)) if self.distinct else self.drafts

    def fixed_set(self, q: NDArray[np.float64]) -> NDArray[np.int64]:
        """The tokens T that are always drafted, ascending ids (empty for most laws; lowest id first among ties)."""
        return np.empty(0, dtype=np.int64)

    def weights(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights w whose ratio ``p/w`` orders the prefixes off T, shape [V].

        They are 0 on T and where a token is never drawn.
        """
        return q

    @abstractmethod
    def prefix_steps(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """The steps of Q along an order of the tokens off T.

        Parameters
        ----------
        w : ndarray, shape (m,)
            The weights of the m tokens off T, in the order of the prefixes; they need not be normalised.

        Returns
        -------
        ndarray, shape (m,)
            ``dQ[k] = Q[k + 1] - Q[k]`` (see :meth:`prefix_mass`): the probability that token k is drafted and all
            drafts off T lie among tokens 0..k. Sums of positive terms: each step is accurate *relative to itself*, so
            that forward sums give small Q and backward sums small 1 - Q without cancellation. They sum to 1, or are
            all 0 where nothing is drawn off T.
        """

    def prefix_runs(
        self, w: NDArray[np.float64], p: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.float64]]:
        """Steps of Q over runs of tokens, fine enough to find the largest ``Q - (sum of p)`` over the prefixes.

        Parameters
        ----------
        w, p : ndarray, shape (m,)
            Weights (all > 0) and target probabilities of the tokens off T, in ascending order of p/w.

        Returns
        -------
        ends : ndarray of int64, shape (R,), or None
            Run i ends before token ``ends[i]``; the last is m. None if every token is a run of its own.
        steps : ndarray, shape (R,)
            The step of Q over each run. The maximum is attained at the end of a run.
        """
        return None, self.prefix_steps(w)

    def prefix_mass(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Q at the prefixes of an order off T.

        Parameters
        ----------
        w : ndarray, shape (m,)
            As for :meth:`prefix_steps`.

        Returns
        -------
        ndarray, shape (m + 1,)
            ``Q[k]``: probability that all drafts off T lie among the first k tokens; ``Q[0]`` is 0 (1 if no draft is
            drawn off T), ``Q[m]`` is 1, non-decreasing.
        """
        steps = self.prefix_steps(w)
        mass = np.concatenate(([0.0], np.cumsum(steps)))
        if mass[-1] == 0.0:
            return np.ones(mass.size)
        return mass / mass[-1]

    def set_mass(self, q: ArrayLike, subset: Iterable[int]) -> float:
        """``Q(H)``: the probability that every draft lies in the set H.

        Parameters
        ----------
        q : array_like, shape (V,)
            The draft distribution.
        subset : iterable of int
            The token ids of H, in any order.

        Returns
        -------
        float
            0 if H does not hold the fixed set; :meth:`prefix_mass` of H before all other tokens otherwise.
        """
        q = check_distribution(q, "q")
        inside = as_mask(subset, q.size)
        fixed = self.fixed_set(q)
        if not inside[fixed].all():
            return 0.0
        off = np.ones(q.size, dtype=bool)
        off[fixed] = False
        first, last = np.flatnonzero(off & inside), np.flatnonzero(off & ~inside)
        return float(self.prefix_mass(self.weights(q)[np.concatenate((first, last))])[first.size])

    @abstractmethod
    def enumerate(self, q: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """All draft tuples of positive probability, shape [N, n], and their probabilities, shape [N] (small V only).

        Raises
        ------
        ValueError
            If there would be more than :data:`ENUMERATION_LIMIT` tuples.
        """

    @abstractmethod
    def draw(self, q: ArrayLike, u: ArrayLike) -> NDArray[np.int64]:
        """The drafts as a function of uniforms: the algorithm of :meth:`sample`, free of randomness.

        Parameters
        ----------
        q : array_like, shape (V,)
            The draft distribution.
        u : array_like, shape (uniforms,) or (size, uniforms)
            Numbers in [0, 1); :attr:`uniforms` of them a draw.

        Returns
        -------
        ndarray of int64, shape (n,) or (size, n)
            Token ids, padded with :data:`NO_DRAFT`.
        """

    def sample(self, q: ArrayLike, rng: np.random.Generator, size: int | None = None) -> NDArray[np.int64]:
        """Draw drafts.

        Parameters
        ----------
        q : array_like, shape (V,)
            The draft distribution.
        rng : numpy.random.Generator
            Where the uniforms come from, :attr:`uniforms` a draw.
        size : int, optional
            The number of draws; one, without the leading axis, if not given.

        Returns
        -------
        ndarray of int64, shape (n,) or (size, n)
            Token ids in the order drawn, padded with :data:`NO_DRAFT`.
        """
        shape = (self.uniforms,) if size is None else (check_count("size", size, 0), self.uniforms)
        return self.draw(q, rng.random(shape))

    def check_drafts(self, q: ArrayLike, drafts: ArrayLike) -> NDArray[np.int64]:
        """Check that a tuple is a possible draw of this scheme from `q`.

        Parameters
        ----------
        q : array_like, shape (V,)
            The draft distribution.
        drafts : array_like of int, shape (n,)
            Token ids in the order drawn, padded with :data:`NO_DRAFT` (or cut) where fewer than n are possible.

        Returns
        -------
        ndarray of int64, shape (effective_drafts(q),)
            The drafts without the padding.

        Raises
        ------
        TypeError
            If `drafts` does not hold integers.
        ValueError
            If the number of drafts is wrong, an id lies outside ``[0, V)`` or has probability 0, an id occurs twice
            though the law draws different tokens, one of the fixed set is missing, or padding stands before a draft.

        Examples
        --------
        >>> from mdsd_core.schemes import WithoutReplacement
        >>> WithoutReplacement(3).check_drafts([0.5, 0.5, 0.0], [1, 0, -1])
        array([1, 0])
        >>> WithoutReplacement(2).check_drafts([0.5, 0.5, 0.0], [1, 2])
        Traceback (most recent call last):
            ...
        ValueError: drafts must have positive probability, got token 2 with weight 0.0
        """
        q = check_distribution(q, "q")
        array = np.asarray(drafts)
        if array.dtype.kind not in "iu":
            raise TypeError(f"drafts must hold integers, got dtype {array.dtype}")
        if array.ndim != 1:
            raise ValueError(f"drafts must have 1 axis, got shape {array.shape}")
        array = array.astype(np.int64)
        wanted = self.effective_drafts(q)
        if array.size != self.drafts and array.size != wanted:
            raise ValueError(f"drafts must hold {self.drafts} ids, got {array.size}: {array.tolist()}")
        drawn, padding = array[:wanted], array[wanted:]
        if (drawn == NO_DRAFT).any() or (padding != NO_DRAFT).any():
            raise ValueError(f"drafts must be {wanted} ids and then only {NO_DRAFT}, got {array.tolist()}")
        if (drawn < 0).any() or (drawn >= q.size).any():
            raise ValueError(f"drafts must lie in [0, {q.size}), got {array.tolist()}")
        fixed = self.fixed_set(q)
        possible = self.weights(q).copy()
        possible[fixed] = 1.0
        if not possible[drawn].all():
            bad = int(drawn[np.argmin(possible[drawn] > 0)])
            raise ValueError(f"drafts must have positive probability, got token {bad} with weight {possible[bad]}")
        if self.distinct and np.unique(drawn).size != drawn.size:
            raise ValueError(f"drafts must be different tokens under {self}, got {array.tolist()}")
        if fixed.size and np.bincount(drawn, minlength=q.size)[fixed].tolist() != [1] * fixed.size:
            raise ValueError(f"drafts must hold each of the fixed set {fixed.tolist()} once, got {array.tolist()}")
        return drawn


def check_count(name: str, value: Any, minimum: int = 1) -> int:
    """Check a number of things: an integer, at least `minimum`.

    >>> check_count("n", 0)
    Traceback (most recent call last):
        ...
    ValueError: n must be an integer >= 1, got 0
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer >= {minimum}, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value}")
    return int(value)


def as_mask(subset: Iterable[int], V: int) -> NDArray[np.bool_]:
    """The indicator, shape [V], of a set of token ids.

    >>> as_mask([2, 0], 3)
    array([ True, False,  True])
    """
    ids = np.asarray(list(subset) if not isinstance(subset, np.ndarray) else subset)
    if ids.size == 0:
        return np.zeros(V, dtype=bool)
    if ids.dtype.kind not in "iu" or ids.ndim != 1:
        raise TypeError(f"subset must hold token ids, got {subset!r}")
    if ids.min() < 0 or ids.max() >= V:
        raise ValueError(f"subset must lie in [0, {V}), got {sorted(set(ids.tolist()))}")
    mask = np.zeros(V, dtype=bool)
    mask[ids] = True
    return mask


def support_size(w: NDArray[np.float64]) -> int:
    """How many tokens have positive weight (numpy counts in comparisons faster than in floats).

    >>> support_size(np.array([0.5, 0.0, 5e-324]))
    2
    """
    return int(np.count_nonzero(w > 0.0))


def top_tokens(q: NDArray[np.float64], m: int) -> NDArray[np.int64]:
    """The m most probable tokens, most probable first, lowest id first among ties, none of probability 0.

    The one place where ties are broken: fixed sets and deterministic drafts all come from here. O(V); up to 16
    tokens in one pass, which is many times faster than to partition q.

    >>> top_tokens(np.array([0.2, 0.4, 0.4, 0.0]), 2)
    array([1, 2])
    >>> top_tokens(np.array([0.0, 1.0]), 2)
    array([1])
    """
    if m <= _FEW:
        return leading(q, m)
    m = min(m, support_size(q))
    if m == 0:
        return np.empty(0, dtype=np.int64)
    threshold = np.partition(q, q.size - m)[q.size - m]
    above = np.flatnonzero(q > threshold)
    tied = np.flatnonzero(q == threshold)[: m - above.size]
    above = above[np.lexsort((above, -q[above]))]
    return np.concatenate((above, tied)).astype(np.int64)


def check_enumerable(count: int, V: int, n: int, support: int) -> None:
    """Refuse to list more than :data:`ENUMERATION_LIMIT` tuples."""
    if count > ENUMERATION_LIMIT:
        raise ValueError(
            f"enumerate lists at most {ENUMERATION_LIMIT} tuples; V={V} (support {support}), n={n} has {count}. "
            f"Feasible: about V=2000 at n=2, 170 at n=3, 48 at n=4"
        )


def rows_of(u: ArrayLike, uniforms: int) -> NDArray[np.float64]:
    """Check the uniforms of :meth:`Scheme.draw` and give them two axes."""
    array = np.asarray(u, dtype=np.float64)
    if array.ndim not in (1, 2) or array.shape[-1] != uniforms:
        raise ValueError(f"u must have shape ({uniforms},) or (size, {uniforms}), got {array.shape}")
    if not ((array >= 0) & (array < 1)).all():
        raise ValueError("u must lie in [0, 1)")
    return np.ascontiguousarray(np.atleast_2d(array) if array.ndim == 1 else array)


def arrangements(V: int, n: int, *, ordered: bool = True) -> int:
    """The number of n-tuples (or n-sets) of different tokens out of V."""
    return perm(V, n) if ordered else comb(V, n)
