"""The optimal marginal: the law of the draft that an optimal verifier selects, in closed form."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core._jit import kernel
from mdsd_core.distributions import check_pair
from mdsd_core.schemes import Scheme
from mdsd_core.transport.order import RatioOrder, ratio_order

#: A target mass this small is no mass: its tokens join those with p = 0, and no slope overflows after them.
_NO_MASS = 1e-290


@dataclass(frozen=True, eq=False)
class OptimalMarginal:
    """A law r of the selected draft that loses nothing, and the structure a coupling is built from.

    Attributes
    ----------
    r : ndarray of float64, shape [V]
        The law of the selected draft, over the whole vocabulary.
    off_fixed : ndarray of float64, shape [V]
        The law of the selected draft if a token of the fixed set T is never selected: mass 1 off T, 0 on T (all 0
        if the scheme draws nothing off T). The same array as `r` if T is empty.
    tokens : ndarray of int64, shape [m]
        The tokens off T that can be drawn, in ascending order of p/w (w the weights of the scheme).
    contacts : ndarray of int64, shape [c]
        The prefixes k of `tokens`, from 0 to m (only 0 if nothing is drawn off T), at which ``off_fixed`` has mass Q_k:
        drafts that all lie inside prefix k serve only prefix k, so that a coupling splits here.

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> found = optimal_marginal([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], WithReplacement(2))
    >>> found.r.round(12).tolist(), found.contacts.tolist()
    ([0.36, 0.384, 0.256], [0, 2, 3])
    """

    r: NDArray[np.float64]
    off_fixed: NDArray[np.float64]
    tokens: NDArray[np.int64]
    contacts: NDArray[np.int64]


def optimal_marginal(p: ArrayLike, q: ArrayLike, scheme: Scheme) -> OptimalMarginal:
    r"""An optimal law of the selected draft, for any q-convex scheme.

    A selection rule picks one draft; its law r is any point of the base polytope
    :math:`\{r : r(H) \ge Q(H)\ \text{for all}\ H,\ r(V) = 1\}`, and acceptance after selection is
    :math:`\sum_x \min(p_x, r_x)`. This function returns an r that attains the optimal acceptance rate, at every scale
    w > 0 at once: ``sum(min(w p, r)) = min_H [w p(H) + 1 - Q(H)]``, which verification along a path of a tree needs.

    Parameters
    ----------
    p, q : array_like of float, shape [V]
        Target and draft distribution.
    scheme : Scheme
        The law of the drafts.

    Returns
    -------
    OptimalMarginal

    Raises
    ------
    TypeError, ValueError
        If `p` or `q` is no distribution (:func:`mdsd_core.distributions.check_distribution`), or their sizes differ.

    Notes
    -----
    O(V log V) for the sort, O(V) after it, and the cost of Q at the prefixes.

    In ratio order let L_k be the mass of p and Q_k that of the scheme at prefix k. R is the least concave
    majorant of the points (L_k, Q_k), and :math:`r_k = R(L_k) - R(L_{k-1})`; tokens with p = 0 come first and keep
    :math:`r_k = Q_k - Q_{k-1}`. Contacts are its vertices. Its slopes are an isotonic regression of the steps of Q over
    those of L, so that tokens of mass 1e-30 are as accurate as large ones. With a fixed set T
    of positive target mass, T is one more first block of target mass p(T) that no set of drafts off T serves: r is
    ``min(off_fixed, lam p)`` off T and ``lam p`` on T, ``lam = max_k Q_k / (p(T) + L_k)``. Such an r is realised by
    replacing the winner x, with probability ``1 - r_x / off_fixed_x``, by a token of T drawn by p.

    Source: new here (no publication): the lexicographically optimal base of Fujishige (1980) with weights p, which
    q-convexity of Q (Hu et al., arXiv 2502.18779) turns into one pass over the sorted tokens.

    Examples
    --------
    Two i.i.d. drafts. The coin decides little: token 0 wins three pairs of four.

    >>> from mdsd_core.schemes import WithReplacement
    >>> marginal = optimal_marginal([0.8, 0.2], [0.5, 0.5], WithReplacement(2))
    >>> marginal.r
    array([0.75, 0.25])
    >>> marginal.tokens, marginal.contacts
    (array([1, 0]), array([0, 1, 2]))
    """
    p, q = check_pair(p, q)
    order, sorted_r, contacts = marginal_in_order(p, q, scheme)
    fixed = scheme.fixed_set(q)
    off_fixed = np.zeros(p.size)
    off_fixed[order.tokens] = sorted_r
    p_fixed = float(p[fixed].sum())
    if contacts.size == 1:  # nothing is drawn off T
        r = np.zeros(p.size)
        r[fixed] = p[fixed] if p_fixed > 0.0 else q[fixed]
        r /= r.sum()
    elif p_fixed <= _NO_MASS:
        r = off_fixed
    else:
        ends = contacts[1:] - 1
        lam = float(np.max(np.cumsum(sorted_r)[ends] / (p_fixed + np.cumsum(order.p)[ends])))
        r = np.minimum(off_fixed, lam * p)
        r[fixed] = lam * p[fixed]
    return OptimalMarginal(r, off_fixed, order.tokens, contacts)


def marginal_in_order(
    p: NDArray[np.float64], q: NDArray[np.float64], scheme: Scheme
) -> tuple[RatioOrder, NDArray[np.float64], NDArray[np.int64]]:
    """The tokens off T in ratio order, the law of the selected draft off T in this order, and its contacts.

    The working part of :func:`optimal_marginal`, for checked `p` and `q`. If nothing is drawn off T the law is 0.

    >>> from mdsd_core.schemes import WithReplacement
    >>> p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    >>> order, law, contacts = marginal_in_order(p, q, WithReplacement(1))
    >>> order.tokens.tolist(), law.tolist()
    ([2, 1, 0], [0.5, 0.3, 0.2])
    """
    order = ratio_order(p, scheme.weights(q))
    steps = scheme.prefix_steps(order.w)
    if not steps.any():
        return order, steps, np.zeros(1, dtype=np.int64)
    return order, *majorant(order.p, steps)


@kernel
def majorant(p, steps):
    """Steps of the least concave majorant of (sums of p, sums of steps), by pooling; and its vertices.

    >>> steps, vertices = majorant(np.array([0.5, 0.5]), np.array([0.25, 0.75]))
    >>> steps.tolist(), vertices.tolist()
    ([0.5, 0.5], [0, 2])
    """
    m = p.size
    r = steps.copy()
    vertex = np.empty(m + 1, np.int64)  # where the blocks begin
    block_p, block_r, slope = np.empty(m), np.empty(m), np.empty(m)
    none = 0
    mass = 0.0
    while none < m and mass + p[none] <= _NO_MASS:
        mass += p[none]
        vertex[none] = none
        none += 1
    top = none
    for k in range(none, m):
        own_p, own_r, start = p[k], steps[k], k
        own_slope = own_r / own_p
        while top > none and slope[top - 1] <= own_slope:
            top -= 1
            own_p += block_p[top]
            own_r += block_r[top]
            own_slope = own_r / own_p
            start = vertex[top]
        block_p[top], block_r[top], slope[top], vertex[top] = own_p, own_r, own_slope, start
        top += 1
    vertex[top] = m
    for b in range(none, top):
        if vertex[b + 1] > vertex[b] + 1:
            for k in range(vertex[b], vertex[b + 1]):
                r[k] = slope[b] * p[k]
    return r, vertex[: top + 1].copy()
