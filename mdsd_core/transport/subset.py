"""The optimal acceptance rate by subset selection: sort once by p/w, scan the prefixes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import check_pair
from mdsd_core.schemes import Scheme


@dataclass(frozen=True, eq=False)
class OptimalAcceptance:
    """The optimal acceptance rate of one step, with the subset that proves it.

    Attributes
    ----------
    rate : float
        alpha*: the largest probability, over all lossless verifiers, that the emitted token is one of the drafts.
    rejection : float
        ``1 - rate``, computed as such: accurate where it is tiny.
    subset : ndarray of int64
        The ids of a set H that attains the minimum of ``1 + p(H) - Q(H)``, ascending.
    order : ndarray of int64
        The ids off the fixed set by p/w ascending: p = 0 first, w = 0 last.
    prefix : int
        H is the fixed set and the first `prefix` tokens of `order`.
    fixed : ndarray of int64
        The fixed set T of the scheme.
    curve : ndarray of float64, shape [len(order) + 1]
        ``D_k = Q - p`` of the fixed set and the first k tokens; its maximum (or 0) is the rejection.
    """

    rate: float
    rejection: float
    subset: NDArray[np.int64]
    order: NDArray[np.int64]
    prefix: int
    fixed: NDArray[np.int64]
    curve: NDArray[np.float64]

    def certified_rate(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float:
        """``1 + p(H) - Q(H)`` for the subset, evaluated anew: an upper bound of every verifier's acceptance."""
        p, q = check_pair(p, q)
        return float(1.0 + p[self.subset].sum() - scheme.set_mass(q, self.subset))


def optimal_acceptance(p: ArrayLike, q: ArrayLike, scheme: Scheme) -> OptimalAcceptance:
    """The optimal acceptance rate ``1 + min_H [p(H) - Q(H)]``.

    Parameters
    ----------
    p, q : array_like, shape (V,)
        Target and draft distribution.
    scheme : Scheme
        The law of the drafts.

    Returns
    -------
    OptimalAcceptance

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> best = optimal_acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], WithReplacement(2))
    >>> round(best.rate, 12), best.subset.tolist()
    (0.86, [1, 2])
    """
    p, q = check_pair(p, q)
    fixed, w = scheme.fixed_set(q), scheme.weights(q)
    off = np.ones(p.size, dtype=bool)
    off[fixed] = False
    rest = np.flatnonzero(off)
    order = rest[ratio_order(p[rest], w[rest])]
    curve = scheme.prefix_mass(w[order]) - np.concatenate(([0.0], np.cumsum(p[order]))) - p[fixed].sum()
    curve[-1] = 0.0
    prefix = int(np.argmax(curve))
    rejection = float(curve[prefix])
    subset = np.sort(np.concatenate((fixed, order[:prefix])))
    return OptimalAcceptance(1.0 - rejection, rejection, subset, order, prefix, fixed, curve)


def ratio_order(p: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.int64]:
    """The order of the tokens by p/w ascending: p = 0 first, w = 0 last (both 0: last, where it changes nothing)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = p / w
    ratio[w == 0.0] = np.inf
    return np.argsort(ratio)
