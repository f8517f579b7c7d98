"""The optimal acceptance rate by subset selection: sort once by p/w, scan the prefixes.

Q(H) is the probability that every draft lies in H, T the set of tokens that are always drafted, w the scheme's weights
off T (see :class:`~mdsd_core.schemes.Scheme`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core._jit import kernel
from mdsd_core._sums import add
from mdsd_core.distributions import check_pair
from mdsd_core.schemes import Scheme
from mdsd_core.transport.order import RatioOrder, ratio_order

_NO_ENDS, _NO_CURVE = np.empty(0, dtype=np.int64), np.empty(0)


@dataclass(frozen=True, eq=False)
class OptimalAcceptance:
    """The optimal acceptance rate of one step, with the subset that proves it.

    Attributes
    ----------
    rate : float
        alpha*: the largest probability, over all lossless verifiers, that the emitted token is one of the drafts.
    rejection : float
        ``1 - rate``, computed as such and accurate where it is tiny.
    order : ndarray of int64, shape [m]
        The tokens that may be drafted besides the fixed ones, by p/w ascending (p = 0 first), lowest id first among
        equals. Tokens that are never drafted are left out.
    prefix : int
        k*: the optimal subset H is the fixed set and the first `prefix` tokens of `order`.
    fixed : ndarray of int64
        T, the tokens that the scheme always drafts, ascending.
    p, q : ndarray of float64, shape [V]
        The distributions.
    scheme : Scheme
        The law of the drafts.
    """

    rate: float
    rejection: float
    order: NDArray[np.int64]
    prefix: int
    fixed: NDArray[np.int64]
    p: NDArray[np.float64]
    q: NDArray[np.float64]
    scheme: Scheme

    @cached_property
    def subset(self) -> NDArray[np.int64]:
        """The ids of a set H that attains the minimum of ``1 + p(H) - Q(H)``, ascending: the certificate."""
        return np.sort(np.concatenate((self.fixed, self.order[: self.prefix])))

    @cached_property
    def curve(self) -> NDArray[np.float64]:
        """``D_k = Q(H_k) - p(H_k)``, shape [m + 1]: H_k the fixed set and the first k tokens of `order`.

        Its maximum is the rejection. Computed when first asked for; without replacement with n >= 3 this costs several
        times as much as the rate.
        """
        w = self.scheme.weights(self.q)
        steps = self.scheme.prefix_steps(w[self.order])
        curve = np.empty(steps.size + 1)
        _largest_difference(self.p[self.order], _NO_ENDS, steps, *_outside_and_fixed(self.p, w, self.fixed), curve)
        return curve

    def certified_rate(self) -> float:
        """``1 + p(H) - Q(H)``, evaluated anew by :meth:`Scheme.set_mass`.

        No lossless verifier of drafts of this scheme accepts more often, by weak duality alone: whatever H is.

        >>> from mdsd_core.schemes import WithReplacement
        >>> optimal_acceptance([1.0, 0.0], [0.5, 0.5], WithReplacement(2)).certified_rate()
        0.75
        """
        return float(1.0 + self.p[self.subset].sum() - self.scheme.set_mass(self.q, self.subset))


def optimal_acceptance(p: ArrayLike, q: ArrayLike, scheme: Scheme) -> OptimalAcceptance:
    """The optimal acceptance rate ``alpha* = 1 + min_H [p(H) - Q(H)]`` of multi-draft speculative decoding.

    The optimum of the transport problem between the target and the law of the drafts. Its dual is a choice of a subset
    H of the vocabulary; Q being w-convex, some optimal H is the fixed set and a prefix of the tokens sorted by p/w.

    Parameters
    ----------
    p, q : array_like, shape (V,)
        Target and draft distribution.
    scheme : Scheme
        The law of the drafts.

    Returns
    -------
    OptimalAcceptance
        The rate with its certificate. `rejection` is good to 1e-15 (without replacement, n >= 3: 1e-12) and, where the
        subset leaves out little of p and of the drafts' mass, to 1e-10 of what it leaves out.

    Raises
    ------
    TypeError, ValueError
        If `p` or `q` is no distribution, or their sizes differ.

    Notes
    -----
    One sort, then O(V n) (with replacement, conditioned; without replacement n = 2: O(V)) or, without replacement with
    n >= 3, O(V) and some hundred evaluations of the race integral. Memory O(V).

    References
    ----------
    Hu et al., "Towards Optimal Multi-draft Speculative Decoding", ICLR 2025, arXiv 2502.18779, equations 8-10 (the
    dual, q-convexity). That sequential sampling without replacement is q-convex, and the scan off the fixed set, are
    proved in the book.

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> best = optimal_acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], WithReplacement(2))
    >>> round(best.rate, 12), best.subset.tolist()
    (0.86, [1, 2])
    >>> best.curve.round(12)
    array([0.  , 0.05, 0.14, 0.  ])
    """
    p, q = check_pair(p, q)
    return optimal_acceptance_in_order(p, q, scheme, ratio_order(p, scheme.weights(q)))


def optimal_acceptance_in_order(
    p: NDArray[np.float64], q: NDArray[np.float64], scheme: Scheme, order: RatioOrder
) -> OptimalAcceptance:
    """:func:`optimal_acceptance` of a checked pair whose tokens are sorted already: several schemes, one sort.

    Parameters
    ----------
    p, q : ndarray of float64, shape (V,)
        As :func:`~mdsd_core.distributions.check_pair` returns them.
    scheme : Scheme
        The law of the drafts.
    order : RatioOrder
        ``ratio_order(p, scheme.weights(q))``; for a scheme whose weights are q off a fixed set it may be the order by
        p/q with that set left out, see :meth:`~mdsd_core.transport.order.RatioOrder.only`.

    Returns
    -------
    OptimalAcceptance

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    >>> order = ratio_order(p, q)
    >>> [round(optimal_acceptance_in_order(p, q, WithReplacement(n), order).rate, 12) for n in (1, 2)]
    [0.7, 0.86]
    """
    fixed, w = scheme.split(q)
    ends, steps = scheme.prefix_runs(order.w, order.p)
    if ends is None:
        ends = _NO_ENDS
    masses = _outside_and_fixed(p, w, fixed)
    rejection, prefix = _largest_difference(order.p, ends, steps, *masses, _NO_CURVE)
    return OptimalAcceptance(1.0 - rejection, rejection, order.tokens, prefix, fixed, p, q, scheme)


def _outside_and_fixed(p: NDArray[np.float64], w: NDArray[np.float64], fixed: NDArray[np.int64]) -> tuple[float, float]:
    """The target mass of the tokens that are never drafted, and of those that always are."""
    never = w == 0.0
    never[fixed] = False
    return float(p[never].sum()), float(p[fixed].sum())


@kernel
def _largest_difference(p, ends, steps, outside, fixed, curve):
    """The largest ``Q - p`` of the fixed set and a prefix that ends where a run does, and the first such run's end.

    A run is some tokens in a row within which the maximum cannot lie. Run i ends before token ``ends[i]`` (if `ends` is
    empty: every token is a run). Fills `curve`, shape [runs + 1], unless it is empty.

    From the front the difference is a running sum of (step of Q) - p; from the back, where less is left of both than
    has passed, it is minus that sum over what is left. So it is accurate relative to the smaller of the two pairs of
    masses. The steps are scaled to sum 1, and p with all masses given too.
    """
    # the units in which p and the steps have the sum 1
    runs = steps.size
    total, total_lost, mass, mass_lost = fixed, 0.0, 0.0, 0.0
    for k in range(p.size):
        total, total_lost = add(total, total_lost, p[k])
    total, total_lost = add(total, total_lost, outside)
    for i in range(runs):
        mass, mass_lost = add(mass, mass_lost, steps[i])
    p_unit, Q_unit = 1.0 / (total + total_lost), 1.0 / (mass + mass_lost) if runs > 0 else 0.0

    # from the front, until half of both masses has passed
    passed = fixed * p_unit  # of 2, the masses of p and Q together
    value, lost = 0.0 - fixed * p_unit, 0.0
    if runs == 0:  # nothing is drawn off the fixed set, so all drafts are inside
        value = outside * p_unit
    best, where = value, 0
    if curve.size > 0:
        curve[0] = value
    k, middle = 0, runs
    for i in range(runs):
        end = i + 1 if ends.size == 0 else ends[i]
        while k < end:
            value, lost = add(value, lost, -p[k] * p_unit)
            passed += p[k] * p_unit
            k += 1
        value, lost = add(value, lost, steps[i] * Q_unit)
        passed += steps[i] * Q_unit
        if passed > 1.0:
            middle = i
            break
        if value + lost > best:
            best, where = value + lost, end
        if curve.size > 0:
            curve[i + 1] = value + lost

    # from the back, down to there
    value, lost = outside * p_unit, 0.0
    behind, behind_where = -1.0, 0
    k = p.size
    for i in range(runs - 1, middle - 1, -1):
        if value + lost >= behind:
            behind, behind_where = value + lost, k
        if curve.size > 0:
            curve[i + 1] = value + lost
        end = i if ends.size == 0 else (ends[i - 1] if i > 0 else 0)
        while k > end:
            k -= 1
            value, lost = add(value, lost, p[k] * p_unit)
        value, lost = add(value, lost, -steps[i] * Q_unit)
    if behind > best:
        best, where = behind, behind_where
    return best, where
