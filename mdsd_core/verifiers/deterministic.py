"""Deterministic children, as in EAGLE-2 and Medusa: try them in turn, zero the rejected ones, renormalise."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.randomness import UniformSource
from mdsd_core.schemes import Scheme
from mdsd_core.verifiers.interface import VerificationPlan, Verifier, register
from mdsd_core.verifiers.node import Node, Verdict
from mdsd_core.verifiers.residual import draw, rest_mass


@dataclass(frozen=True, eq=False)
class ChildrenPlan(VerificationPlan):
    """Zero-and-renormalise for one node."""

    node: Node

    def verify(self, drafts: ArrayLike, rng: UniformSource) -> Verdict:
        """Emit a token for these children, in any order.

        Draws one uniform for each child judged, in order, and one more for the rest of the vocabulary if all are
        rejected. O(V) for each rejection.
        """
        p = self.node.p
        row, _ = self.node.rows(drafts)
        mass = 1.0
        for index, x in enumerate(row):
            if rng.random() * mass < p[x]:
                return self.node.emit(x, row)
            mass = rest_mass(p, np.array(row[: index + 1]))
            if mass == 0.0:  # the target has no other token left: this child was certain
                return self.node.emit(x, row)
        left = p.copy()
        left[row] = 0.0
        return self.node.emit(int(draw(left, rng.random())), row)

    def output_law(self, drafts: ArrayLike) -> NDArray[np.float64]:
        """The exact law of the emitted token, by the textbook recursion on whole vectors: p, for any children."""
        row, _ = self.node.rows(drafts)
        r, reach, law = self.node.p.copy(), 1.0, np.zeros_like(self.node.p)
        for x in row:
            law[x] += reach * r[x]
            reach *= 1.0 - r[x]
            r[x] = 0.0
            if r.sum() == 0.0:
                return law
            r /= r.sum()
        return law + reach * r


@register
class DeterministicChildren(Verifier):
    """Accept child x with probability ``p_x/(1 - p(R))``, R the children rejected before; else go on without it.

    A child that was chosen and not drawn has no draft probability: it is a point mass (the "q = 1" of some programs),
    and ``(p - 1)_+`` renormalised is p without the child. The emitted token has law p for every set and order of
    children, and it is one of them with probability ``p(children)``, which no rule can exceed.

    References
    ----------
    Li et al., "EAGLE-2", arXiv 2406.16858; Cai et al., "Medusa", arXiv 2401.10774.

    Examples
    --------
    >>> from mdsd_core.schemes import Deterministic
    >>> rule = DeterministicChildren()
    >>> rule.prepare([0.5, 0.3, 0.2], [0.2, 0.5, 0.3], Deterministic(2)).output_law([2, 1])
    array([0.5, 0.3, 0.2])
    >>> rule.acceptance([0.5, 0.3, 0.2], [0.2, 0.5, 0.3], Deterministic(2))
    0.5
    """

    name = "deterministic"

    def supports(self, scheme: Scheme) -> bool:
        """True for deterministic drafts; sampled ones would be accepted less often than they could be."""
        return scheme.inner is None

    def prepare(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> ChildrenPlan:
        """Check the input; see :meth:`Verifier.prepare`. O(V)."""
        return ChildrenPlan(Node.of(*self.checked(p, q, scheme), scheme))

    def acceptance(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float:
        """``p(children)``, exact."""
        p, q = self.checked(p, q, scheme)
        return float(p[scheme.fixed_set(q)].sum())
