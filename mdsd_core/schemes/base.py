"""What every draft-sampling scheme is: the law of the drafts at one node."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from math import perm
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core._leading import leading
from mdsd_core.distributions import check_count, check_distribution

if TYPE_CHECKING:
    from mdsd_core.schemes.inner import InnerLaw

#: What stands in a row of drafts after the last one, where fewer than n drafts are possible.
NO_DRAFT = -1

#: Up to how many top tokens are kept in order in one pass.
_FEW = 16

#: Most tuples that :meth:`Scheme.enumerate` lists.
ENUMERATION_LIMIT = 5_000_000

#: What a rule may ask of the drafts: how the sampled ones are drawn off the fixed set; "hub pairs" are SpecHub's.
Kind = Literal["independent", "sequential", "conditioned", "hub pairs"]

#: Names of the sampled drafts, without and behind a fixed set.
_ALONE = {"independent": "with_replacement", "sequential": "without_replacement", "conditioned": "distinct"}
_BEHIND = {"independent": "replacement", "sequential": "sampled"}


class Scheme(ABC):
    """The law of `n` drafts drawn from a draft distribution `q`.

    Two facts say all about a scheme: its :meth:`fixed_set` T, tokens that are always drafted (mostly none), and
    :attr:`inner`, the law of the drafts that are sampled off T, or None. All else follows here. A new scheme states
    these two and, unless T is the most probable tokens, how many they are (:attr:`fixed_drafts`).

    Drafts are int64 token ids in the order drawn, along the last axis: T first, most probable first. A token with
    ``q = 0`` is never drawn. Laws without repetition draw the whole support where it has fewer than n tokens; the rest
    of the row is :data:`NO_DRAFT`.

    Notes
    -----
    All a scheme has to say to the optimal transport of a step is its set function ``Q(H) = P(every draft is in H)``,
    on prefixes of one order: T, weights w off T, and the steps of Q along any order of the tokens off T. Every scheme
    here is *w-convex* off T: the steps divided by the weights never fall along any order, so the ratio ``p/w`` orders
    the tokens of the optimal subset (Hu et al., arXiv 2502.18779).

    Examples
    --------
    One token that is always drafted, if it can be, and one more from the others:

    >>> from mdsd_core.schemes import WithReplacement
    >>> class Always(Scheme):
    ...     fixed_drafts, inner = 1, WithReplacement(1)
    ...     def fixed_set(self, q):
    ...         return np.flatnonzero(q[:1])
    >>> tuples, probabilities = Always().enumerate([0.25, 0.5625, 0.1875])
    >>> tuples.tolist(), probabilities.tolist()
    ([[0, 1], [0, 2]], [0.75, 0.25])
    """

    @property
    @abstractmethod
    def inner(self) -> "InnerLaw | None":
        """The law of the sampled drafts off the fixed set; None if nothing is sampled."""

    @property
    def fixed_drafts(self) -> int:
        """How many tokens are always drafted, if so many are possible."""
        return 0

    def fixed_set(self, q: NDArray[np.float64]) -> NDArray[np.int64]:
        """The tokens T that are always drafted, ascending ids: the most probable, lowest id first among ties."""
        return np.sort(top_tokens(q, self.fixed_drafts))

    @property
    def name(self) -> str:
        """The name by which :mod:`mdsd_core.schemes.names` makes the scheme; its repr if there is none.

        >>> from mdsd_core.schemes import TopThenSampled, greedy
        >>> greedy(3).name, TopThenSampled(2, 2).name
        ('greedy', 'top2_sampled')
        """
        inner, m = self.inner, self.fixed_drafts
        if inner is None and self.by_rank:
            return "deterministic"
        if inner is None or not self.by_rank or (m and inner.kind not in _BEHIND):
            return repr(self)
        if m == 0:
            return _ALONE[inner.kind]
        return "greedy" if (inner.kind, inner.n) == ("sequential", 1) else f"top{m}_{_BEHIND[inner.kind]}"

    @property
    def sampled_drafts(self) -> int:
        """How many drafts are sampled off the fixed set, if so many are possible."""
        inner = self.inner
        return 0 if inner is None else inner.n

    @property
    def drafts(self) -> int:
        """The number n of drafts asked for."""
        return self.fixed_drafts + self.sampled_drafts

    @property
    def distinct(self) -> bool:
        """True if the drafts of one draw are always different tokens."""
        inner = self.inner
        return inner is None or inner.kind != "independent" or inner.n == 1

    @property
    def uniforms(self) -> int:
        """How many uniforms one draw takes."""
        return 0 if self.inner is None else self.inner.uniforms

    @property
    def by_rank(self) -> bool:
        """True if T is the most probable tokens and the weights off it are q: what rules on tensors can split."""
        return type(self).fixed_set is Scheme.fixed_set and (self.inner is None or self.inner.of_q)

    def draws(self, kind: Kind) -> bool:
        """True if the drafts off T are of that kind: what a rule must know. One sampled draft is of all kinds.

        >>> from mdsd_core.schemes import SpecHubPairs, TopThenSampled
        >>> TopThenSampled(1, 2).draws("independent"), TopThenSampled(2, 1).draws("independent")
        (False, True)
        >>> SpecHubPairs().draws("independent")  # the order of a pair tells how it was drawn
        False
        """
        inner = self.inner
        return inner is not None and (inner.kind == kind or (inner.n == 1 and kind != "hub pairs"))

    def split(self, q: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """T and the weights of the sampled drafts, in O(V); see :meth:`fixed_set` and :meth:`weights`."""
        fixed, inner = self.fixed_set(q), self.inner
        if inner is None:
            return fixed, np.zeros(q.size)
        if fixed.size:
            q = q.copy()
            q[fixed] = 0.0
        return fixed, inner.weigh(q)

    def weights(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights w whose ratio ``p/w`` orders the prefixes off T, shape [V].

        They are 0 on T and where a token is never drawn.
        """
        return self.split(q)[1]

    def sampled_from(self, w: NDArray[np.float64]) -> int:
        """How many drafts are really sampled by these weights: fewer than asked for where they give too few tokens."""
        if self.distinct and self.sampled_drafts > 1:
            return min(self.sampled_drafts, int(np.count_nonzero(w > 0.0)))  # faster than to count floats
        return self.sampled_drafts if w.any() else 0

    def inclusion(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(token x is among the sampled drafts) for every x, shape [V], by their weights on any scale; 0 on T."""
        return np.zeros(w.size) if self.inner is None or not w.any() else self.inner.inclusion(w)

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
        return np.zeros(w.size) if self.inner is None else self.inner.prefix_steps(w)

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
        return (None, np.zeros(w.size)) if self.inner is None else self.inner.prefix_runs(w, p)

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
        fixed, w = self.split(q)
        if not inside[fixed].all():
            return 0.0
        off = np.ones(q.size, dtype=bool)
        off[fixed] = False
        first, last = np.flatnonzero(off & inside), np.flatnonzero(off & ~inside)
        return float(self.prefix_mass(w[np.concatenate((first, last))])[first.size])

    def enumerate(self, q: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """All draft tuples of positive probability, shape [N, n], and their probabilities, shape [N] (small V only).

        Raises
        ------
        ValueError
            If there would be more than :data:`ENUMERATION_LIMIT` tuples.
        """
        q = check_distribution(q, "q")
        fixed, w = self.split(q)
        if self.inner is None or not w.any():
            return self._behind(q, fixed, np.empty((1, 0), dtype=np.int64)), np.ones(1)
        sampled, probability = self.inner.enumerate_by(w)
        return self._behind(q, fixed, sampled), probability

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

        Notes
        -----
        O(V) for the fixed set; for the others see the class of the inner law.
        """
        q, rows = check_distribution(q, "q"), rows_of(u, self.uniforms)
        fixed, w = self.split(q)
        sampled = np.empty((len(rows), 0), dtype=np.int64)
        if self.inner is not None and w.any():
            sampled = self.inner.draw_by(w, rows)
        drafts = self._behind(q, fixed, sampled)
        return drafts if np.ndim(u) == 2 else drafts[0]

    def _behind(
        self, q: NDArray[np.float64], fixed: NDArray[np.int64], sampled: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Rows of n drafts: the fixed tokens, most probable first, then the sampled ones, then padding."""
        if sampled.shape[1] == self.drafts:
            return sampled
        drafts = np.full((sampled.shape[0], self.drafts), NO_DRAFT, dtype=np.int64)
        drafts[:, : fixed.size] = fixed[np.argsort(-q[fixed], kind="stable")]
        drafts[:, fixed.size : fixed.size + sampled.shape[1]] = sampled
        return drafts

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
        ndarray of int64, shape (drafts that are possible,)
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
        fixed, w = self.split(q)
        wanted = fixed.size + self.sampled_from(w)
        if array.size != self.drafts and array.size != wanted:
            raise ValueError(f"drafts must hold {self.drafts} ids, got {array.size}: {array.tolist()}")
        drawn, padding = array[:wanted], array[wanted:]
        if (drawn == NO_DRAFT).any() or (padding != NO_DRAFT).any():
            raise ValueError(f"drafts must be {wanted} ids and then only {NO_DRAFT}, got {array.tolist()}")
        if (drawn < 0).any() or (drawn >= q.size).any():
            raise ValueError(f"drafts must lie in [0, {q.size}), got {array.tolist()}")
        possible = w.copy()
        possible[fixed] = 1.0
        if not possible[drawn].all():
            bad = int(drawn[np.argmin(possible[drawn] > 0)])
            raise ValueError(f"drafts must have positive probability, got token {bad} with weight {possible[bad]}")
        if self.distinct and np.unique(drawn).size != drawn.size:
            raise ValueError(f"drafts must be different tokens under {self}, got {array.tolist()}")
        if fixed.size and np.bincount(drawn, minlength=q.size)[fixed].tolist() != [1] * fixed.size:
            raise ValueError(f"drafts must hold each of the fixed set {fixed.tolist()} once, got {array.tolist()}")
        return drawn


def as_mask(subset: Iterable[int], V: int) -> NDArray[np.bool_]:
    """The indicator, shape [V], of a set of token ids.

    >>> as_mask([2, 0], 3)
    array([ True, False,  True])
    """
    mask, ids = np.zeros(V, dtype=bool), np.asarray(list(subset))
    if ids.size:
        if ids.dtype.kind not in "iu" or ids.ndim != 1:
            raise TypeError(f"subset must hold token ids, got {subset!r}")
        if ids.min() < 0 or ids.max() >= V:
            raise ValueError(f"subset must lie in [0, {V}), got {sorted(set(ids.tolist()))}")
        mask[ids] = True
    return mask


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
    m = min(m, int(np.count_nonzero(q > 0.0)))
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


def distinct_tuples(w: NDArray[np.float64], n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All ordered tuples of n different tokens (of all, if there are fewer), and the chance to draw them one by one."""
    support = np.flatnonzero(w)
    depth = min(n, support.size)
    check_enumerable(perm(support.size, depth), w.size, n, support.size)
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
    return support[tuples], probability


def rows_of(u: ArrayLike, uniforms: int) -> NDArray[np.float64]:
    """Check the uniforms of :meth:`Scheme.draw` and give them two axes."""
    array = np.asarray(u, dtype=np.float64)
    if array.ndim not in (1, 2) or array.shape[-1] != uniforms:
        raise ValueError(f"u must have shape ({uniforms},) or (size, {uniforms}), got {array.shape}")
    if not ((array >= 0) & (array < 1)).all():
        raise ValueError("u must lie in [0, 1)")
    return np.ascontiguousarray(np.atleast_2d(array) if array.ndim == 1 else array)
