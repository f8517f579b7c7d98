"""Optimal selection of one draft on the whole vocabulary, the fixed set of a scheme included.

The transport plans select among drafts that are *sampled*. A scheme that always drafts a set T as well needs one more
step: the sampled winner x is replaced, with a probability that depends on x, by a token of T drawn by p. The marginal
r that comes out satisfies ``sum_x min(w p_x, r_x) = min_H [w p(H) + 1 - Q(H)]`` for every scale w in [0, 1] at once,
which is what the path rule needs: there w falls along the path.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import check_pair
from mdsd_core.randomness import UniformSource, draw_index
from mdsd_core.schemes import NO_DRAFT, Scheme
from mdsd_core.transport.nest.plan import TOLERANCE
from mdsd_core.transport.optimal import has_plan, optimal_plan
from mdsd_core.verifiers.interface import UnsupportedScheme


def selects(scheme: Scheme) -> bool:
    """True if an optimal selection plan is known for the scheme."""
    return scheme.sampled_drafts <= 1 or has_plan(scheme)


class OptimalSelection:
    """Select one draft such that the law r of the selected token is optimal for `p` at every scale.

    Parameters
    ----------
    p, q : array_like, shape (V,)
        Target and draft distribution.
    scheme : Scheme
        The law of the drafts.
    tolerance : float
        For drafts without replacement: what the plan may fall short of the optimum, see
        :func:`~mdsd_core.transport.nest.nested_plan`.

    Attributes
    ----------
    marginal : ndarray, shape (V,)
        r: the law of the selected token over drafts and selection, as realised.

    Raises
    ------
    UnsupportedScheme
        If no optimal plan is known for the scheme.

    Examples
    --------
    Greedy drafts for n = 2: token 0 always, and one of the others.

    >>> from mdsd_core.schemes import greedy
    >>> plan = OptimalSelection([0.4, 0.6, 0.0], [0.5, 0.25, 0.25], greedy(2))
    >>> plan.marginal.round(6)
    array([0.5, 0.5, 0. ])
    >>> plan.selection_law(np.array([0, 2])).round(6), plan.selection_law(np.array([0, 1])).round(6)
    (array([1., 0.]), array([0., 1.]))
    """

    def __init__(self, p: ArrayLike, q: ArrayLike, scheme: Scheme, tolerance: float = TOLERANCE) -> None:
        p, q = check_pair(p, q)
        if not selects(scheme):
            raise UnsupportedScheme(f"no optimal selection plan is known for drafts of {scheme}")
        self._fixed, w = scheme.split(q)
        total = float(w.sum())
        several = scheme.sampled_drafts > 1 and total > 0
        self._plan = optimal_plan(p, q, scheme, tolerance).plan if several else None  # of the sampled drafts
        fixed_p = p[self._fixed]
        if self._fixed.size and not fixed_p.any():
            fixed_p = np.zeros_like(fixed_p)
            fixed_p[0] = 1.0  # only drawn if nothing else was drafted: then some draft must be selected
        self._fixed_law = fixed_p / fixed_p.sum() if self._fixed.size else fixed_p
        if total == 0:  # nothing is ever sampled
            self.marginal = np.zeros_like(p)
            self.marginal[self._fixed] = self._fixed_law
            self._kept = np.zeros_like(p)
            return
        r = w / total if self._plan is None else self._plan.marginal
        self.marginal = r.copy()
        self._kept = np.ones_like(p)  # the probability that a sampled winner is not replaced by a fixed draft
        if self._fixed.size and p[self._fixed].any():
            off = p.copy()
            off[self._fixed] = 0.0
            kept = np.minimum(r, _level(off, r, float(p[self._fixed].sum())) * off)
            np.divide(kept, r, out=self._kept, where=r > 0)
            self.marginal = kept
            self.marginal[self._fixed] = float((r - kept).sum()) * self._fixed_law

    def _split(self, drafts: NDArray[np.int64]) -> tuple[NDArray[np.int64], dict[int, int]]:
        """The places of the sampled drafts, and token -> place for the fixed ones."""
        fixed = np.isin(drafts, self._fixed)
        places = {int(drafts[i]): int(i) for i in np.flatnonzero(fixed)[::-1]}
        return np.flatnonzero(~fixed & (drafts != NO_DRAFT)), places

    def select(self, drafts: NDArray[np.int64], rng: UniformSource) -> int:
        """The index of the selected draft; see :class:`~mdsd_core.randomness.Selector`."""
        sampled, fixed = self._split(drafts)
        if sampled.size:
            winner = int(sampled[0 if self._plan is None else self._plan.select(drafts[sampled], rng)])
            if not fixed or rng.random() < self._kept[drafts[winner]]:
                return winner
        return fixed[int(self._fixed[draw_index(self._fixed_law, rng)])]

    def selection_law(self, drafts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The exact law of that index, shape [n]."""
        sampled, fixed = self._split(drafts)
        law = np.zeros(drafts.size)
        replaced = 1.0
        if sampled.size:
            won = np.ones(1) if self._plan is None else self._plan.selection_law(drafts[sampled])
            law[sampled] = won * self._kept[drafts[sampled]] if fixed else won
            replaced = float((won * (1 - self._kept[drafts[sampled]])).sum())
        if fixed:
            np.add.at(law, [fixed[int(x)] for x in self._fixed], replaced * self._fixed_law)
        return law


def _level(p: NDArray[np.float64], r: NDArray[np.float64], fixed_mass: float) -> float:
    """The level lam >= 1 at which ``lam fixed_mass + sum min(r, lam p) = 1``.

    The left side is concave and piecewise linear in lam and at most 1 at lam = 1, so Newton's method climbs to the
    root from there and lands on it exactly, after at most as many steps as there are pieces (a handful, in practice).
    """
    level = 1.0
    for _ in range(p.size + 1):
        below = level * p < r
        following = (1.0 - float(r[~below].sum())) / (fixed_mass + float(p[below].sum()))
        if not following > level:
            break
        level = following
    return level
