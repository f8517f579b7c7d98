"""The exact optimal coupling for independent drafts: labels by the left-curtain (martingale) coupling."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import check_pair
from mdsd_core.schemes import Scheme
from mdsd_core.transport.curtain.kernels import by_token, pieces, sweep
from mdsd_core.transport.marginal import marginal_in_order
from mdsd_core.transport.priority import PriorityPlan


@dataclass(frozen=True, eq=False)
class Curtain:
    """Intervals of labels in [0, 1], one a token, nested like arcs.

    A draft of the token of rank k draws its label uniformly from ``[left[k], right[k]]`` without the holes inside it,
    which are the intervals of its children. The label of one draft is then uniform on [0, 1], and the largest of n
    labels belongs to rank k with probability ``asked[k]``: both up to rounding, while :meth:`plan` is exact.

    Attributes
    ----------
    n : int
        The number of independent drafts.
    tokens : ndarray of int64, shape [m]
        Token ids by rank: all that can be drawn independently, in ascending order of p/q.
    w : ndarray of float64, shape [m]
        The law of one independent draft: q, divided by its mass off T if the scheme has a fixed set T.
    asked : ndarray of float64, shape [m]
        The marginal asked for; its sum is 1.
    left, right : ndarray of float64, shape [m]
        The ends of the intervals.
    parent : ndarray of int32, shape [m]
        The rank of the interval in which this one is a hole, -1 for none.
    p : ndarray of float64, shape [V]
        The target distribution.
    fixed : ndarray of int64
        The fixed set T of the scheme: always drafted, selected only if there is no other draft.

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> curtain = left_curtain([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], WithReplacement(2))
    >>> curtain.tokens.tolist(), bool(abs(curtain.asked.sum() - 1.0) < 1e-15)
    ([2, 1, 0], True)
    """

    n: int
    tokens: NDArray[np.int64]
    w: NDArray[np.float64]
    asked: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    parent: NDArray[np.int32]
    p: NDArray[np.float64]
    fixed: NDArray[np.int64]

    def plan(self) -> PriorityPlan:
        """Cut the intervals into pieces, and compute the marginal that the pieces realise.

        Returns
        -------
        PriorityPlan
            The key of a piece is its position from left to right, its probability the share it has of all pieces of its
            token. A token of the fixed set has one segment with a negative key.

        Notes
        -----
        O(m log n). The pieces tile [0, 1]. Let G be the probability that one draft draws a piece left of a given one,
        and g that it draws this one: then the winner of n drafts comes from it with probability ``(G + g)^n - G^n``.
        Summed over the pieces of a token this is its marginal, whatever the pieces are: rounding of the intervals, even
        intervals too short for their probability, cost acceptance (1e-14 on pairs like those of language models) and
        never the law of the emitted token.
        """
        start, key, cumulative, r = pieces(self.w, self.left, self.right, self.parent, self.n)
        row, marginal = np.full(self.p.size, -1, dtype=np.int32), np.empty(self.p.size)
        by_token(self.tokens, r, row, marginal)
        if self.fixed.size:
            # without any other draft, the one of the largest target probability wins
            fixed = self.fixed[np.argsort(self.p[self.fixed], kind="stable")]
            row[fixed] = self.tokens.size + np.arange(fixed.size)
            start = np.concatenate((start, key.size + np.arange(1, fixed.size + 1)))
            key = np.concatenate((key, np.arange(-fixed.size, 0)))
            cumulative = np.concatenate((cumulative, np.ones(fixed.size)))
            if self.tokens.size == 0:
                marginal[fixed[-1]] = 1.0
        return PriorityPlan(row, start, key, cumulative, marginal)


def left_curtain(p: ArrayLike, q: ArrayLike, scheme: Scheme) -> Curtain:
    r"""Intervals of labels that give the optimal marginal to the draft with the largest label.

    Parameters
    ----------
    p, q : array_like of float, shape [V]
        Target and draft distribution.
    scheme : Scheme
        The law of the drafts: independent, alone or behind a fixed set.

    Returns
    -------
    Curtain

    Raises
    ------
    TypeError, ValueError
        If the drafts of the scheme are not independent, or `p` and `q` are not distributions over one vocabulary.

    Notes
    -----
    O(V log V): one sort, then O(V) equations in one unknown, each solved in little more than one step of Newton's
    method, whatever n.

    If labels are uniform, the largest of n has density :math:`Z(w) = n w^{n-1}`, and the winner is x with probability
    :math:`r_x = \int Z(w) k_x(w)\,dw`, where :math:`k_x` is the part of the labels that belongs to x. So r/q is the
    mean of Z given the token: the labellings that realise r are the martingale couplings of r/q with Z. By Strassen's
    theorem there is one if and only if r lies in the base polytope of ``q(H)^n``. The left-curtain coupling builds it:
    in ascending order of r/q, a token gets of the labels that are left the interval of length q on which the mean of Z
    is r/q; it lies right of all earlier intervals, or swallows the last ones as holes. At the contacts of the marginal
    the problem splits, and a block of one token keeps its own interval (the largest p/q wins). The proof is in the
    book, `theory/coupling`.

    Source: new here for verification; the coupling is that of Beiglböck and Juillet, "On a problem of optimal transport
    under marginal martingale constraints", Annals of Probability 44 (2016).

    Examples
    --------
    Two drafts. Token 1 takes what token 0 leaves on both sides of it, so that each is selected half of the time:

    >>> from mdsd_core.schemes import WithReplacement
    >>> curtain = left_curtain([0.4, 0.6], [0.5, 0.5], WithReplacement(2))
    >>> curtain.asked
    array([0.4, 0.6])
    >>> curtain.left, curtain.right, curtain.parent
    (array([0.15, 0.  ]), array([0.65, 1.  ]), array([ 1, -1], dtype=int32))
    """
    p, q = check_pair(p, q)
    if not scheme.draws("independent"):
        raise TypeError(f"scheme must draw independent drafts, alone or behind a fixed set, got {scheme!r}")
    n = scheme.sampled_drafts
    order, asked, contacts = marginal_in_order(p, q, scheme)
    w = order.w
    w /= w.sum()  # its own array
    left, right, parent = sweep(w, asked, contacts, n)
    return Curtain(n, order.tokens, w, asked, left, right, parent, p, scheme.fixed_set(q))


def iid_plan(p: ArrayLike, q: ArrayLike, scheme: Scheme) -> PriorityPlan:
    """The plan of the optimal verifier for independent drafts.

    Select a draft by the plan, accept it with probability ``min(1, p / marginal)``, else draw from
    ``(p - marginal)_+`` normalised: this emits exactly `p`, and a draft with the optimal probability. With top-m plus k
    independent drafts, the selection works off the fixed set T and the residual carries all of p on T, where a residual
    draw is a draft.

    Parameters
    ----------
    p, q : array_like of float, shape [V]
        Target and draft distribution.
    scheme : Scheme
        The law of the drafts: independent, alone or behind a fixed set.

    Returns
    -------
    PriorityPlan

    Raises
    ------
    TypeError, ValueError
        As :func:`left_curtain`, of whose result this is the :meth:`Curtain.plan`.

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> plan = iid_plan([0.4, 0.6], [0.5, 0.5], WithReplacement(2))
    >>> plan.marginal
    array([0.4, 0.6])
    >>> plan.segments(0), plan.segments(1)
    ((array([1]), array([1.])), (array([0, 2]), array([0.3, 0.7])))
    >>> plan.selection_law([0, 1])
    array([0.3, 0.7])
    """
    return left_curtain(p, q, scheme).plan()
