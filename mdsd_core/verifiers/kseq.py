"""K-SEQ (SpecTr): accept the first draft that passes one and the same test, scaled so that n tries suffice."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core._jit import sum_kernel
from mdsd_core.randomness import UniformSource
from mdsd_core.schemes import Scheme
from mdsd_core.verifiers.interface import Source, VerificationPlan, Verifier, register
from mdsd_core.verifiers.node import Node, Verdict


@dataclass(frozen=True, eq=False)
class KSeqPlan(VerificationPlan):
    """K-SEQ for one node.

    Attributes
    ----------
    node : Node
        The node's distributions.
    rho : float
        The factor by which acceptance is made harder, in [1, k] for k sampled drafts.
    beta : float
        The probability that one draft is accepted, ``sum_x min(q_x, p_x/rho)``.
    """

    node: Node
    rho: float
    beta: float

    @property
    def accepted(self) -> float:
        """The probability that one of the k sampled drafts is accepted, ``1 - (1 - beta)^k``."""
        return float(-np.expm1(self.node.sampled * np.log1p(-self.beta))) if self.beta < 1.0 else 1.0

    def verify(self, drafts: ArrayLike, rng: UniformSource) -> Verdict:
        """Emit a token for these drafts.

        Draws one uniform for each sampled draft judged, in order, and one more for the residual if all are rejected.
        """
        p, w, total = self.node.p, self.node.w, self.node.total
        row, sampled = self.node.rows(drafts)
        for x in sampled:
            if rng.random() * (self.rho * (w[x] / total)) < p[x]:
                return self.node.emit(x, row)
        return self.node.emit(self.node.draw_from(self._residual(), sampled, rng), row)

    def _residual(self) -> NDArray[np.float64]:
        if self.beta == 0.0:
            return self.node.p
        share = self.accepted / self.beta
        return _kseq_residual(self.node.p, self.node.w, share / self.rho, share / self.node.total)

    def output_law(self, drafts: ArrayLike) -> NDArray[np.float64]:
        """The exact law of the emitted token, from whole vectors of acceptance probabilities."""
        p = self.node.p
        _, sampled = self.node.rows(drafts)
        law, reach = np.zeros_like(p), 1.0
        if not sampled:
            return law + p
        q = self.node.w / self.node.total
        taken = np.minimum(p / self.rho, q)  # the probability that a draft is x and accepted
        for x in sampled:
            law[x] += reach * (taken[x] / q[x])
            reach *= 1.0 - taken[x] / q[x]
        one = taken.sum()
        tries = sum((1.0 - one) ** j for j in range(len(sampled)))  # expected number of drafts judged
        left = np.maximum(p - taken * tries, 0.0)
        return law + reach * self.node.law_of_draw(left, sampled)


@register
class KSeq(Verifier):
    """K-SEQ for k independent drafts: accept the first draft x with ``rho U < p_x/q_x``.

    If none passes, the token is drawn from ``p - min(p/rho, q) (1 - (1 - beta)^k)/beta``, normalised, where ``beta =
    sum_x min(q_x, p_x/rho)`` is the chance of one draft. rho solves ``1 - (1 - beta)^k = rho beta`` in [1, k]: below it
    the rule is not lossless (the residual would be negative), above it accepts less. With k = 1, rho is 1 and the rule
    is Leviathan's. Of drafts that are the top-m tokens T and k independent ones off T, the k are judged by their law
    off T and the residual keeps p on T.

    Notes
    -----
    rho is bracketed to the last digits by O(V) evaluations (about ten), and the *upper* end of the bracket is used.

    References
    ----------
    Sun et al., "SpecTr: Fast Speculative Decoding via Optimal Transport", arXiv 2310.15141, Algorithm 2.

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> rule = KSeq()
    >>> round(rule.prepare([0.6, 0.4], [0.2, 0.8], WithReplacement(2)).rho, 6)
    1.540312
    >>> round(rule.acceptance([0.6, 0.4], [0.2, 0.8], WithReplacement(2)), 6)
    0.708062
    """

    name = "kseq"

    def supports(self, scheme: Scheme) -> bool:
        """True for independent drafts, alone or behind a fixed set."""
        return scheme.draws("independent")

    def prepare(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> KSeqPlan:
        """Solve for rho, in O(V) per evaluation; see :meth:`Verifier.prepare`."""
        node = Node.of(*self.checked(p, q, scheme), scheme)
        rho = _upper_rho(node)
        return KSeqPlan(node, rho, min(1.0, _within(node, rho) / rho))

    def acceptance(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float:
        """``1 - (1 - beta)^k + p(T)``, exact. Where a draft can be rejected the residual has no mass."""
        plan = self.prepare(p, q, scheme)
        return plan.accepted + plan.node.fixed_mass

    def accepted_share(self, node: Node, token: int, rng: Source = None, histories: int = 8) -> float:
        """``rho q_y/p_y``, q off T: the part of p_y that drafts take; the residual has the rest."""
        return float(_upper_rho(node) * (node.w[token] / node.total) / node.p[token])


def _within(node: Node, rho: float) -> float:
    """``rho beta(rho) = sum_x min(rho q_x, p_x)``, increasing and concave in rho."""
    return float(_sum_of_minima(node.p, node.w, rho / node.total)) if node.sampled else 0.0


def _upper_rho(node: Node) -> float:
    """The upper end of a bracket, a few units in the last place wide, of the root of ``1 - (1-beta)^k = rho beta``."""
    if node.sampled <= 1:
        return 1.0

    def excess(rho: float) -> float:  # positive below the root
        within = _within(node, rho)
        return -float(np.expm1(node.sampled * np.log1p(-min(within / rho, 1.0 - 2.0**-53)))) - within

    low, high = 1.0, float(node.sampled)
    at_low, at_high = excess(low), excess(high)
    if at_low <= 0.0:
        return low
    for step in range(200):
        if high - low <= 4e-16 * high:
            break
        # regula falsi with the Illinois weights, a bisection every third step
        rho = 0.5 * (low + high)
        if step % 3 < 2 and at_low > at_high:
            rho = min(max((low * -at_high + high * at_low) / (at_low - at_high), low), high)
            rho = rho if low < rho < high else 0.5 * (low + high)
        here = excess(rho)
        if here > 0.0:
            low, at_low, at_high = rho, here, 0.5 * at_high
        else:
            high, at_high, at_low = rho, here, 0.5 * at_low
    return high


@sum_kernel
def _sum_of_minima(p, w, factor):
    total = 0.0
    for x in range(p.size):
        scaled = factor * w[x]
        total += scaled if scaled < p[x] else p[x]
    return total


@sum_kernel
def _kseq_residual(p, w, of_p, of_w):
    weights = np.empty(p.size)
    for x in range(p.size):
        scaled_p, scaled_w = of_p * p[x], of_w * w[x]
        weight = p[x] - (scaled_p if scaled_p < scaled_w else scaled_w)
        weights[x] = weight if weight > 0.0 else 0.0
    return weights
