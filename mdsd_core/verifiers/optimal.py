"""The optimal verifier: select a draft by a plan of random priorities, accept it as far as the target allows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.randomness import UniformSource
from mdsd_core.schemes import Scheme
from mdsd_core.transport.marginal import optimal_marginal
from mdsd_core.transport.nest.plan import TOLERANCE, checked_tolerance
from mdsd_core.transport.optimal import has_plan, optimal_plan
from mdsd_core.transport.priority import PriorityPlan
from mdsd_core.verifiers.deterministic import DeterministicChildren
from mdsd_core.verifiers.interface import Estimate, Source, VerificationPlan, Verifier, register
from mdsd_core.verifiers.node import Node, Verdict
from mdsd_core.verifiers.recursive_rejection.with_replacement import RecursiveRejection
from mdsd_core.verifiers.residual import residual
from mdsd_core.verifiers.spechub import SpecHub

#: A loss of acceptance up to this is taken as rounding.
_ATTAINED = 1e-12


@dataclass(frozen=True, eq=False)
class OptimalPlan(VerificationPlan):
    """Selection by priorities for one node.

    Attributes
    ----------
    node : Node
        The node's distributions.
    selection : PriorityPlan
        Selects one of the sampled drafts; its marginal r is realised to rounding, and 0 on the fixed set.
    acceptance : float
        P(the selected draft is accepted, or the token lies in the fixed set): exact for this very plan.
    loss : float
        The optimal acceptance rate less `acceptance`, up to rounding. A residual draw that lands on another draft is
        accepted too; so the acceptance of the verifier lies between `acceptance` and ``acceptance + loss``.
    """

    node: Node
    selection: PriorityPlan
    acceptance: float
    loss: float

    def verify(self, drafts: ArrayLike, rng: UniformSource) -> Verdict:
        """Emit a token for these drafts.

        Draws one uniform for the label of each sampled draft, in order, one for the acceptance of the selected draft,
        and one more for the residual if it is rejected (only that one if nothing is sampled). O(V) for a rejection.
        """
        p, r = self.node.p, self.selection.marginal
        row, sampled = self.node.rows(drafts)
        if not sampled:
            return self.node.emit(self.node.draw_from(p, sampled, rng), row)
        x = sampled[self.selection.select(np.array(sampled), rng)]
        if rng.random() * r[x] < p[x]:
            return self.node.emit(x, row)
        return self.node.emit(self.node.draw_from(residual(p, r, 1.0), [x], rng), row)

    def output_law(self, drafts: ArrayLike) -> NDArray[np.float64]:
        """The exact law of the emitted token, from the law of the selected draft."""
        p, r = self.node.p, self.selection.marginal
        _, sampled = self.node.rows(drafts)
        if not sampled:
            return p.copy()
        law, left = np.zeros_like(p), np.maximum(p - r, 0.0)
        for x, chance in zip(sampled, self.selection.selection_law(np.array(sampled))):
            accepted = min(1.0, p[x] / r[x]) if r[x] > 0.0 else float(p[x] > 0.0)
            law[x] += chance * accepted
            if accepted < 1.0:
                law += chance * (1.0 - accepted) * self.node.law_of_draw(left, [x])
        return law


@register
class Optimal(Verifier):
    """The verifier that accepts with the optimal probability.

    Drafts that are sampled draw random labels, and the one with the highest label is selected; the labels are made such
    that the selected draft has the best law r that any selection can have. It is accepted with probability
    ``min(1, p_x/r_x)``, else the token is drawn from ``(p - r)_+`` normalised. A fixed set T takes no part in the
    selection: the residual keeps p on T, where a residual draw is an accepted draft.

    Where one draft is sampled, or none, the rule for such drafts is optimal itself and is what is prepared:
    :class:`RecursiveRejection`, :class:`SpecHub`, :class:`DeterministicChildren`.

    Parameters
    ----------
    tolerance : float
        For drafts without replacement only, in [1e-14, 1]: a larger one saves time and costs acceptance: less
        than the tolerance on small supports, up to fifty times as much on real contexts of 50,000 tokens. It never
        touches the law of the emitted token. The plan that is prepared states its acceptance and what that lacks of the
        optimum (`OptimalPlan.loss`).

    Notes
    -----
    Lossless for any plan whose marginal is what its labels realise; how near r is to the optimum only matters for
    acceptance. For independent drafts O(V log V) to prepare, else see
    :func:`mdsd_core.transport.nest.nested_plan`; O(n log V) to select.

    References
    ----------
    The optimum: Hu et al., arXiv 2502.18779; the plans and the verifier are new here, see
    :func:`mdsd_core.transport.curtain.coupling.iid_plan` and :func:`mdsd_core.transport.nest.nested_plan`.

    Examples
    --------
    >>> from mdsd_core.schemes import WithoutReplacement, WithReplacement
    >>> rule = Optimal()
    >>> rule.prepare([0.4, 0.6], [0.5, 0.5], WithReplacement(2)).output_law([0, 1]).round(12)
    array([0.3, 0.7])
    >>> rule.acceptance([0.2, 0.8], [0.5, 0.5], WithReplacement(2))
    0.95
    >>> p, q = [0.05, 0.15, 0.2, 0.6], [0.25, 0.25, 0.25, 0.25]
    >>> round(rule.acceptance(p, q, WithoutReplacement(2)), 9)
    0.9
    """

    name = "optimal"
    tolerance: float = TOLERANCE

    def __init__(self, tolerance: float = TOLERANCE) -> None:
        self.tolerance = checked_tolerance(tolerance)

    def supports(self, scheme: Scheme) -> bool:
        """True where an optimal plan is known."""
        return _own_rule(scheme) is not None or has_plan(scheme)

    def prepare(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> VerificationPlan:
        """Make the plan; see :meth:`Verifier.prepare`."""
        own = _own_rule(scheme)
        if own is not None:
            return own.prepare(p, q, scheme)
        p, q = self.checked(p, q, scheme)
        found = optimal_plan(p, q, scheme, self.tolerance)
        return OptimalPlan(Node.of(p, q, scheme), found.plan, found.acceptance, found.loss)

    def acceptance(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float | Estimate:
        """``p(T) + sum_x min(p_x, r_x)`` with the marginal that the plan really has.

        Where that attains the optimal rate to 1e-12, it is the acceptance, a float. Where a tolerance costs more, a
        residual draw may land on a draft that was not selected, and the result is a rigorous bracket: its lower end and
        value is that sum, its upper end the optimal rate.
        """
        own = _own_rule(scheme)
        if own is not None:
            return own.acceptance(p, q, scheme)
        p, q = self.checked(p, q, scheme)
        found = optimal_plan(p, q, scheme, self.tolerance)
        if found.loss <= _ATTAINED:
            return found.acceptance
        return Estimate(found.acceptance, found.acceptance, found.bound, 1.0, "between the plan and the optimal rate")

    def accepted_share(self, node: Node, token: int, rng: Source = None, histories: int = 8) -> float:
        """``r_y/p_y``, r the exact optimal marginal off T."""
        return float(optimal_marginal(node.p, node.q, node.scheme).off_fixed[token] / node.p[token])


def _own_rule(scheme: Scheme) -> Verifier | None:
    """The rule that is optimal for drafts of which at most one is sampled."""
    rules = (RecursiveRejection(most=1), SpecHub(), DeterministicChildren())
    return next((rule for rule in rules if rule.supports(scheme)), None)
