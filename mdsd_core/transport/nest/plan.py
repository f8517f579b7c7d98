"""The plan of the optimal verifier for drafts without replacement."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core._jit import kernel
from mdsd_core.distributions import check_pair
from mdsd_core.schemes import Scheme
from mdsd_core.transport.marginal import majorant
from mdsd_core.transport.nest.build import NestedWork, build_nest, new_nest
from mdsd_core.transport.nest.chain import Nest
from mdsd_core.transport.nest.groups import Problem, first_pass, make_groups
from mdsd_core.transport.nest.laws import conditioned, drawable, pairs, race
from mdsd_core.transport.nest.states import Floats, new_scratch, new_states
from mdsd_core.transport.order import ratio_order
from mdsd_core.transport.priority import PriorityPlan, SelectionPlan

#: The default tolerance. At 50,000 tokens it costs some 1e-6 of acceptance, far below what sampled experiments can see.
TOLERANCE = 1e-7

#: The default limit on the work: steps for each token, and steps in any case.
WORK_PER_TOKEN, WORK_AT_LEAST = 40, 50_000


class Segments(NamedTuple):
    """All segments of a nest, in rank order of their tokens; see :meth:`NestedPlan.segments`.

    Attributes
    ----------
    tokens : ndarray of int64, shape [m]
        Token ids in ascending order of p/w: rank -> token. Tokens that are selected last of all are not among them.
    rank : ndarray of int64, shape [M]
        The rank of the token that a segment belongs to, ascending.
    base : ndarray of int64, shape [M]
        The rank that the segment is sorted by: with it the token beats all ranks below `base` and loses to those from
        `base` up to its own. It is `rank` for the token's own segment, which beats all ranks below.
    share : ndarray of float64, shape [M]
        Its probability, in (0, 1].

    Examples
    --------
    Rank 1 beats rank 0 with one of its two segments only:

    >>> from mdsd_core.schemes import DistinctConditioned
    >>> found = nested_plan([0.3, 0.3, 0.4], [0.4, 0.3, 0.3], DistinctConditioned(2)).segments()
    >>> [(int(rank), int(base)) for rank, base in zip(found.rank, found.base, strict=True)]
    [(0, 0), (1, 0), (1, 1), (2, 0), (2, 2)]
    """

    tokens: NDArray[np.int64]
    rank: NDArray[np.int64]
    base: NDArray[np.int64]
    share: Floats


@dataclass(frozen=True, eq=False)
class NestedPlan(SelectionPlan):
    """A plan for drafts without replacement, and how good it is.

    Attributes
    ----------
    plan, acceptance, bound, loss
        See :class:`~mdsd_core.transport.priority.SelectionPlan`; the loss is what the tolerance costs.
    work : NestedWork
        What was done to get there, and whether the tolerance had to be raised.

    Examples
    --------
    >>> from mdsd_core.schemes import WithoutReplacement
    >>> made = nested_plan([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], WithoutReplacement(2))
    >>> round(made.acceptance, 9), made.work.fell_back
    (0.985714286, False)
    """

    work: NestedWork

    def segments(self) -> Segments:
        """The nest itself: what each label of the plan means, O(V).

        >>> from mdsd_core.schemes import DistinctConditioned
        >>> nested_plan([0.3, 0.3, 0.4], [0.4, 0.3, 0.3], DistinctConditioned(2)).segments()[:3]
        (array([0, 1, 2]), array([0, 1, 1, 2, 2]), array([0, 0, 1, 0, 2]))
        """
        row, start, key, cumulative = self.plan.row, self.plan.start, self.plan.key, self.plan.cumulative
        m = start.size - 1 - int((key < 0).sum())  # see `_segments`: one negative key for each of the other tokens
        key = key[: start[m]]
        share = np.diff(cumulative[: key.size], prepend=0.0)
        share[start[:m]] = cumulative[start[:m]]
        tokens = np.empty(start.size - 1, dtype=np.int64)
        drawn = np.flatnonzero(row >= 0)
        tokens[row[drawn]] = drawn
        return Segments(tokens[:m], m - 1 - key % max(m, 1), key // max(m, 1), share)


def nested_plan(
    p: ArrayLike, q: ArrayLike, scheme: Scheme, tolerance: float = TOLERANCE, *, work_limit: int | None = None
) -> NestedPlan:
    r"""The plan of the optimal verifier for drafts that are sampled without replacement.

    Every draft x draws one of the few segments of token x, the draft with the largest key is selected, accepted with
    probability ``min(1, p / marginal)``, and else replaced by a draw from ``(p - marginal)_+`` normalised: this emits
    exactly `p`, whatever the tolerance, and a draft with the optimal probability less `NestedPlan.loss`.

    Parameters
    ----------
    p, q : array_like of float, shape [V]
        Target and draft distribution.
    scheme : Scheme
        The law of the drafts: sequential or conditioned, alone or behind a fixed set T. The selection works off T, and
        the residual carries all of p on T, where a residual draw is a draft.
    tolerance : float
        The probability mass by which the upper ranks of a block, from some rank to its end, may together receive less
        than r before the nest is repaired (the prefix below them receives as much more), in [1e-14, 1]. It trades
        acceptance for time and touches nothing else. Every block of the nest may fall short by it, so the loss can be
        several times the tolerance: up to fifty times on real pairs of 50,000 tokens (`NestedPlan.loss` says how much).
        At 1 no repair is made at all.
    work_limit : int, optional
        Steps (chain and scan together) after which the tolerance is raised tenfold, and again after every quarter more;
        by default ``40 V + 50000``, twenty times what inputs like those of language models need. The plan stays
        lossless, and `NestedPlan.work` says so.

    Returns
    -------
    NestedPlan

    Raises
    ------
    TypeError, ValueError
        If the scheme draws with replacement, the tolerance is out of range, or `p` and `q` are not distributions over
        one vocabulary.

    Notes
    -----
    *Existence.* Such a plan always exists, with at most 2V segments: see the book, `theory/nested`, and the module
    :mod:`mdsd_core.transport.nest.chain`, which has the recursion that finds it.

    *Cost.* O(V log V) for the sort, O(V) for the chain (a few dozen operations a token, and O(n^2 J) for each of some
    hundreds of groups), and a share of that for each repair: mostly 10 to 40 on pairs like those of language models.
    Memory is O(n J) for each group. Two drafts and the conditioned law have a closed form, J = 1.

    *Precision.* The marginal is that of the segments as they are stored, to rounding (about 1e-14); the law of the
    drafts has a relative error of at most 1e-12 for every set of drafts. Tokens with a draft probability below 1e-20
    of their rivals' have the lowest keys and marginal 0.

    Source: new here. For independent drafts the analogue is the left-curtain coupling of
    :func:`mdsd_core.transport.curtain.coupling.iid_plan`.

    Examples
    --------
    Token 2 lets the tokens 0 and 1 win with probability 0.37, and beats them else; so does token 1 with token 0:

    >>> from mdsd_core.schemes import DistinctConditioned
    >>> found = nested_plan([0.3, 0.3, 0.4], [0.4, 0.3, 0.3], DistinctConditioned(2))
    >>> found.plan.marginal.round(12), round(found.acceptance, 12)
    (array([0.3, 0.3, 0.4]), 1.0)
    >>> found.plan.segments(2)
    (array([0, 6]), array([0.37142857, 0.62857143]))
    >>> found.plan.selection_law([[0, 1], [0, 2], [1, 2]])
    array([[0.45357143, 0.54642857],
           [0.37142857, 0.62857143],
           [0.37142857, 0.62857143]])
    """
    p, q = check_pair(p, q)
    sequential = scheme.draws("sequential")
    if not (sequential or scheme.draws("conditioned")):
        raise TypeError(f"scheme must draw without replacement, alone or behind a fixed set, got {scheme!r}")
    n = scheme.sampled_drafts
    tolerance = checked_tolerance(tolerance)
    if work_limit is None:
        work_limit = WORK_PER_TOKEN * p.size + WORK_AT_LEAST
    if work_limit < 1:
        raise ValueError(f"work_limit must be at least 1, got {work_limit!r}")
    fixed, w = scheme.split(q)
    tokens, sorted_p, sorted_w = ratio_order(p, w)
    kept = drawable(sorted_w, n)
    never = tokens[~kept]
    if never.size:
        tokens, sorted_p, sorted_w = tokens[kept], sorted_p[kept], sorted_w[kept]
    asked, nest, work = _nest(sorted_p, sorted_w, n, sequential, tolerance, int(work_limit))
    lowest = np.concatenate((never, fixed[np.argsort(-p[fixed], kind="stable")]))
    plan = PriorityPlan(*_segments(nest, tokens, lowest, p.size))
    wanted = np.minimum(sorted_p, asked)
    bound = float(p[fixed].sum() + wanted.sum())
    loss = float((wanted - np.minimum(sorted_p, nest.marginal)).sum())
    return NestedPlan(plan, bound - loss, bound, loss, work)


def checked_tolerance(tolerance: float) -> float:
    """The tolerance as a float, if it is in [1e-14, 1]; else ValueError.

    >>> checked_tolerance(1)
    1.0
    """
    if not 1e-14 <= tolerance <= 1.0:
        raise ValueError(f"tolerance must be in [1e-14, 1], got {tolerance!r}")
    return float(tolerance)


def _nest(
    p: Floats, w: Floats, n: int, sequential: bool, tolerance: float, limit: int
) -> tuple[Floats, Nest, NestedWork]:
    """The law asked for, and the nest, for tokens in rank order."""
    if n == 1:  # the only draft is selected
        r = w / w.sum() if w.size else w
        return r, _single_block(r, 0, np.zeros(w.size)), NestedWork(tolerance=tolerance)
    if w.size <= n:  # the drafts are always the same
        steps = np.zeros(w.size)
        steps[w.size - 1 :] = 1.0
        r, contacts = majorant(p, steps)
        upto = np.cumsum(r)
        share = np.divide(upto - r, upto, out=np.zeros(w.size), where=upto > 0.0)
        return r, _single_block(r, int(contacts[:-1].max(initial=0)), share), NestedWork(tolerance=tolerance)
    law, tokens = (pairs(w) if n == 2 else race(w, n)) if sequential else conditioned(w, n)
    problem, scratch = Problem(law, tokens, make_groups(tokens, law)), new_scratch(law)
    steps = first_pass(*new_states(law, 2), problem, scratch)
    total = float(steps.sum())  # 1 up to the error of the quadrature, or what the law is conditioned on
    steps /= total
    problem.groups.table[:] /= total
    problem = problem._replace(law=law._replace(weight=law.weight / total))
    r, contacts = majorant(p, steps)
    nest, work = build_nest(r, contacts, problem, scratch, tolerance, limit)
    return r, nest, work


def _single_block(r: Floats, first: int, share: Floats) -> Nest:
    """Every token nests around all ranks from `first` on below it; with share 0, none.

    For laws r that have a closed form.
    """
    nest = new_nest(r.size)
    nest.base[:], nest.share[:], nest.marginal[:] = first, share, r
    return nest


@kernel
def _segments(nest, tokens, lowest, V):
    """The arrays of a priority plan: a row for each token in rank order, then one segment each for the tokens `lowest`.

    Keys are segments as single integers, base times m and then against rank; the tokens `lowest` have negative keys,
    the first of them the largest. Segments without probability are left out.
    """
    m = tokens.size
    row, marginal = np.full(V, -1, np.int32), np.zeros(V)
    start = np.empty(m + lowest.size + 1, np.int64)
    key, cumulative = np.empty(2 * m + lowest.size, np.int64), np.empty(2 * m + lowest.size)
    count = 0
    for x in range(m):
        row[tokens[x]], marginal[tokens[x]], start[x] = x, nest.marginal[x], count
        below, against = 0.0, m - 1 - x
        if nest.parts[x] > 0:
            for i in range(nest.parts_from[x], nest.parts_from[x] + nest.parts[x]):
                if nest.part_share[i] > 0.0:
                    below = min(below + nest.part_share[i], 1.0)
                    key[count], cumulative[count] = nest.part_base[i] * m + against, below
                    count += 1
        elif nest.share[x] > 0.0:
            key[count], cumulative[count] = nest.base[x] * m + against, nest.share[x]
            count += 1
        if nest.share[x] < 1.0:
            key[count] = x * m + against
            count += 1
        cumulative[count - 1] = 1.0
    for i in range(lowest.size):
        row[lowest[i]], start[m + i] = m + i, count
        key[count], cumulative[count] = -1 - i, 1.0
        count += 1
    if m == 0:
        marginal[lowest[0]] = 1.0  # nothing else is ever drafted
    start[m + lowest.size] = count
    return row, start, key[:count], cumulative[:count], marginal
