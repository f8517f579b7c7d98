"""SpecHub: pairs of drafts that always hold the most probable token, the hub."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.randomness import UniformSource
from mdsd_core.schemes import Scheme
from mdsd_core.verifiers.interface import Source, VerificationPlan, Verifier, register
from mdsd_core.verifiers.node import Node, Verdict
from mdsd_core.verifiers.residual import residual


@dataclass(frozen=True, eq=False)
class SpecHubPlan(VerificationPlan):
    """SpecHub for one node."""

    node: Node

    def verify(self, drafts: ArrayLike, rng: UniformSource) -> Verdict:
        """Emit a token for a pair (x, hub) or (hub, x).

        Draws one uniform for x, and one for the residual if x is not accepted (only that one if there is no x).
        """
        p, q, w, total = self.node.p, self.node.q, self.node.w, self.node.total
        row, others = self.node.rows(drafts)
        level = 0.0
        for x in others:
            hub = self.node.fixed[0]
            drawn, wanted = q[x], p[x]
            if row[0] == hub:  # (hub, x) serves what (x, hub) could not
                drawn, wanted = q[hub] * (w[x] / total), p[x] - q[x]
            if rng.random() * drawn < wanted:
                return self.node.emit(x, row)
            level = 1.0 / total
        return self.node.emit(self.node.draw_from(residual(p, w, level), others, rng), row)

    def output_law(self, drafts: ArrayLike) -> NDArray[np.float64]:
        """The exact law of the emitted token, from the transport plan: the mass that flows from each pair to x."""
        p, q = self.node.p, self.node.q
        row, others = self.node.rows(drafts)
        if not others:
            return p.copy()
        hub, x = self.node.fixed[0], others[0]
        both = self.node.w / self.node.total  # of the two pairs with x together
        to_x = min(p[x], q[x])
        pair = q[x]
        if row[0] == hub:
            to_x, pair = min(p[x], both[x]) - to_x, both[x] * q[hub]
        accepted = min(1.0, to_x / pair) if pair > 0.0 else 0.0
        left = np.maximum(p - both, 0.0)
        law = (1.0 - accepted) * self.node.law_of_draw(left, others)
        law[x] += accepted
        return law


@register
class SpecHub(Verifier):
    """SpecHub's rule for its pairs: (x, hub) serves x first, (hub, x) serves the rest of x, what is left the hub.

    With a the hub, ``P(x, a) = q_x`` and ``P(a, x) = q_a q_x/(1 - q_a)``, together ``Q_x = q_x/(1 - q_a)``. x is
    accepted from (x, a) with probability ``min(1, p_x/q_x)`` and from (a, x) with ``min(1, (p_x - q_x)_+/P(a, x))``: in
    all with mass ``min(p_x, Q_x)``. What is left of the pairs has mass ``p_a + sum_x (p_x - Q_x)_+``, and the token is
    drawn from these terms: from the first it is the hub, a draft. So the emitted token has law p, and it is a draft
    with probability ``p_a + sum_x min(p_x, Q_x)``, the optimum for greedy drafts with n = 2.

    References
    ----------
    Sun et al., "SpecHub: Provable Acceleration to Multi-Draft Speculative Decoding", arXiv 2411.05289.

    Examples
    --------
    >>> from mdsd_core.schemes import SpecHubPairs
    >>> rule = SpecHub()
    >>> rule.prepare([0.4, 0.6, 0.0], [0.5, 0.25, 0.25], SpecHubPairs()).output_law([0, 1])
    array([0., 1., 0.])
    >>> rule.acceptance([0.4, 0.6, 0.0], [0.5, 0.25, 0.25], SpecHubPairs())
    0.9
    """

    name = "spechub"

    def supports(self, scheme: Scheme) -> bool:
        """True for SpecHub's pairs: the order of a pair matters, so greedy drafts will not do."""
        return scheme.draws("hub pairs")

    def prepare(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> SpecHubPlan:
        """Check the input; see :meth:`Verifier.prepare`. O(V)."""
        return SpecHubPlan(Node.of(*self.checked(p, q, scheme), scheme))

    def acceptance(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float:
        """``p_a + sum_x min(p_x, q_x/(1 - q_a))``, exact. O(V)."""
        node = Node.of(*self.checked(p, q, scheme), scheme)
        hub = float(node.p[node.fixed[0]])
        return float(hub + np.minimum(node.p, node.w / node.total).sum()) if node.sampled else hub

    def accepted_share(self, node: Node, token: int, rng: Source = None, histories: int = 8) -> float:
        """``q_y/p_y``, q off the hub."""
        return float(node.w[token] / node.total / node.p[token])
