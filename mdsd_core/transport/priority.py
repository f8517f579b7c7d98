"""Random-priority selection: every draft draws a label, the draft with the highest label wins.

Both optimal plans of this library are of this kind. Every draft draws one of the labels of its token: those of
`curtain/` if the drafts are independent, those of `nest/` if they are drawn without replacement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core._jit import inline_kernel, kernel
from mdsd_core.randomness import UniformSource
from mdsd_core.schemes import NO_DRAFT, Scheme


@dataclass(frozen=True, eq=False)
class PriorityPlan:
    """Segments of labels for every token, and the law of the winner.

    A draft of token x draws one of the segments of x, independently of everything else; the draft whose segment has the
    largest key wins. The winner X has law `marginal`; accepting it with probability ``min(1, p[X] / r[X])`` and else
    drawing from ``(p - r)_+`` normalised emits exactly `p`.

    Attributes
    ----------
    row : ndarray of int32, shape [V]
        The row of a token in the table of segments, -1 if the scheme never draws it.
    start : ndarray of int64, shape [m + 1]
        Row i has the segments ``start[i]:start[i + 1]``: at least one.
    key : ndarray of int64, shape [M]
        The label of a segment, increasing within a row. No two segments share a key, so that the winning token is
        always unique.
    cumulative : ndarray of float64, shape [M]
        The probability that a draft gets this segment or one of its own with a lower key; the last of a row is 1.
    marginal : ndarray of float64, shape [V]
        r: the law of the winner over drafts and labels, *realised* by these very segments, to rounding.

    Notes
    -----
    Memory: M is at most 2V. The constructor checks types and shapes only, in O(1).

    Source: random-priority selection is new here; the two constructions are in `curtain/` and `nest/`.

    Examples
    --------
    Token 1 beats token 0 half of the time it meets it:

    >>> plan = PriorityPlan(
    ...     row=np.array([0, 1], dtype=np.int32),
    ...     start=np.array([0, 1, 3]),
    ...     key=np.array([1, 0, 2]),
    ...     cumulative=np.array([1.0, 0.5, 1.0]),
    ...     marginal=np.array([0.5, 0.5]),
    ... )
    >>> plan.selection_law([1, 0])
    array([0.5, 0.5])
    >>> int(plan.select([1, 1], np.random.default_rng(0)) in (0, 1))
    1
    """

    row: NDArray[np.int32]
    start: NDArray[np.int64]
    key: NDArray[np.int64]
    cumulative: NDArray[np.float64]
    marginal: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name, dtype in _FIELDS.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
                raise TypeError(f"{name} must be an array of {dtype.__name__} with one axis, got {array!r}")
        for name, like in (("marginal", "row"), ("cumulative", "key")):
            size, wanted = getattr(self, name).size, getattr(self, like).size
            if size != wanted:
                raise ValueError(f"{name} must have the size of {like} = {wanted}, got {size}")

    def segments(self, token: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The keys of a token's segments, ascending, and their probabilities (both empty if it is never drafted)."""
        i = self.row[token]
        own = slice(self.start[i], self.start[i + 1]) if i >= 0 else slice(0)
        return self.key[own], np.diff(self.cumulative[own], prepend=0.0)

    def select(self, drafts: ArrayLike, rng: UniformSource) -> int:
        """Select one draft: every draft draws a segment, the largest key wins.

        Parameters
        ----------
        drafts : array_like of int, shape [n]
            Token ids in the order drawn; entries of -1 stand for no draft.
        rng : UniformSource
            One uniform is drawn for each draft, in order (none for an entry of -1).

        Returns
        -------
        int
            The index of the winner among `drafts` (the first of those, if equal tokens drew the same segment).

        Raises
        ------
        ValueError
            If there is no draft, or one has no segment: the scheme of this plan would not have drawn it.
        """
        drafts = self._checked(drafts)
        uniforms = np.array([rng.random() if x != NO_DRAFT else 0.0 for x in drafts])
        return int(_winner(drafts, uniforms, self.row, self.start, self.key, self.cumulative))

    def selection_law(self, drafts: ArrayLike) -> NDArray[np.float64]:
        """The exact law of the index that :meth:`select` returns.

        Parameters
        ----------
        drafts : array_like of int, shape [n] or [N, n]
            One tuple of drafts or many, as for :meth:`select`.

        Returns
        -------
        ndarray of float64, shape of `drafts`
            The probability that this draft wins; sums to 1 along the last axis.

        Notes
        -----
        A draft wins with a segment if all others drew lower keys: a product of their cumulative probabilities, summed
        over its segments. O(S n log S) for a tuple with S segments in all; the product of the drafts' segments is never
        enumerated.
        """
        drafts = self._checked(drafts)
        rows = np.atleast_2d(drafts)
        law = np.empty(rows.shape)
        _selection_law(rows, self.row, self.start, self.key, self.cumulative, law)
        return law.reshape(drafts.shape)

    def law_of_winner(self, scheme: Scheme, q: ArrayLike) -> NDArray[np.float64]:
        """The law, shape [V], of the selected token over all draft tuples of `scheme`, by enumeration (small V only).

        It equals `marginal` up to rounding if the plan was made for this scheme and this `q`.
        """
        tuples, probability = scheme.enumerate(q)
        share = self.selection_law(tuples) * probability[:, None]
        drawn = tuples != NO_DRAFT
        law = np.zeros(self.row.size)
        np.add.at(law, tuples[drawn], share[drawn])
        return law

    def _checked(self, drafts: ArrayLike) -> NDArray[np.int64]:
        array = np.asarray(drafts)
        if array.dtype.kind not in "iu" or array.ndim not in (1, 2) or array.size == 0:
            raise ValueError(f"drafts must be token ids of shape [n] or [N, n], got {drafts!r}")
        array = np.ascontiguousarray(array, dtype=np.int64)
        outside = array[(array < NO_DRAFT) | (array >= self.row.size)]
        if outside.size:
            raise ValueError(f"drafts must hold ids in [0, {self.row.size}) (or -1 for no draft), got {outside[0]}")
        never = array[(self.row[array] < 0) & (array != NO_DRAFT)]
        if never.size:
            raise ValueError(f"drafts hold token {never[0]}, which the scheme of this plan never draws")
        empty = np.flatnonzero((array == NO_DRAFT).all(axis=-1))
        if empty.size:
            raise ValueError(f"drafts must hold at least one token, got none in row {empty[0]}")
        return array


@dataclass(frozen=True, eq=False)
class SelectionPlan:
    """A plan made for one node, and how good it is.

    Attributes
    ----------
    plan : PriorityPlan
        The labels, with the marginal r that they realise. On a fixed set T r is 0, unless nothing is drawn off T.
    acceptance : float
        p(T) and the sum of ``min(p_x, r_x)`` off T: how often the token lies in T or the selected draft is accepted.
    bound : float
        The optimal acceptance rate of the scheme.
    loss : float
        ``bound - acceptance``, up to rounding: what rounding, or a tolerance, costs.

    Examples
    --------
    >>> from mdsd_core.schemes import WithoutReplacement
    >>> from mdsd_core.transport.nest import nested_plan
    >>> made = nested_plan([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], WithoutReplacement(2))
    >>> bool(abs(made.loss) < 1e-9), round(made.bound, 9)
    (True, 0.985714286)
    """

    plan: PriorityPlan
    acceptance: float
    bound: float
    loss: float


_FIELDS = dict(row=np.int32, start=np.int64, key=np.int64, cumulative=np.float64, marginal=np.float64)


@inline_kernel
def _drawn_key(x, u, row, start, key, cumulative):
    """The key of the first segment of x whose cumulative probability exceeds u (never one of probability 0)."""
    low, high = start[row[x]], start[row[x] + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > u:
            high = middle
        else:
            low = middle + 1
    return key[low]


@kernel
def _winner(drafts, uniforms, row, start, key, cumulative):
    best, best_key = -1, 0
    for i in range(drafts.size):
        if drafts[i] != NO_DRAFT:
            own = _drawn_key(drafts[i], uniforms[i], row, start, key, cumulative)
            if best < 0 or own > best_key:
                best, best_key = i, own
    return best


@inline_kernel
def _probability_below(x, limit, row, start, key, cumulative):
    """P(a draft x draws a key < limit)."""
    first = start[row[x]]
    low, high = first, start[row[x] + 1]
    while low < high:
        middle = (low + high) // 2
        if key[middle] < limit:
            low = middle + 1
        else:
            high = middle
    return cumulative[low - 1] if low > first else 0.0


@kernel
def _selection_law(tuples, row, start, key, cumulative, law):
    n = tuples.shape[1]
    for t in range(tuples.shape[0]):
        drafts = tuples[t]
        for i in range(n):
            law[t, i] = 0.0
            if drafts[i] == NO_DRAFT:
                continue
            own = row[drafts[i]]
            below = 0.0
            for s in range(start[own], start[own + 1]):
                win = cumulative[s] - below
                below = cumulative[s]
                for j in range(n):
                    # equal keys come from equal tokens only; the first of them wins
                    if j != i and drafts[j] != NO_DRAFT:
                        limit = key[s] if j < i else key[s] + 1
                        win *= _probability_below(drafts[j], limit, row, start, key, cumulative)
                law[t, i] += win
