"""Token matching: draw the target's token once, and see whether it was drafted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.randomness import UniformSource
from mdsd_core.schemes import Scheme
from mdsd_core.verifiers.interface import Source, VerificationPlan, Verifier, register
from mdsd_core.verifiers.node import Node, Verdict
from mdsd_core.verifiers.residual import draw


@dataclass(frozen=True, eq=False)
class TokenMatchingPlan(VerificationPlan):
    """Token matching for one node."""

    node: Node

    def verify(self, drafts: ArrayLike, rng: UniformSource) -> Verdict:
        """Draw one token from p, with one uniform, whatever the drafts; O(V)."""
        row, _ = self.node.rows(drafts)
        return self.node.emit(int(draw(self.node.p, rng.random())), row)

    def output_law(self, drafts: ArrayLike) -> NDArray[np.float64]:
        """p, for any drafts."""
        self.node.rows(drafts)
        return self.node.p.copy()


@register
class TokenMatching(Verifier):
    """Draw the token from p, *once* for all drafts of a node; it is accepted if it is one of them.

    Lossless for drafts of any kind, deterministic ones included, and without knowing their law: what is emitted does
    not depend on them at all. The price is acceptance: ``sum_x p_x P(x in S)``, for one draft ``sum p q`` in place of
    ``sum min(p, q)``. A fresh draw for each draft would not be lossless.

    References
    ----------
    The naive rule of Yang et al., arXiv 2401.06706, and of Miao et al. (SpecInfer), arXiv 2305.09781.

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> round(TokenMatching().acceptance([0.5, 0.3, 0.2], [0.4, 0.4, 0.2], WithReplacement(1)), 12)
    0.36
    """

    name = "token_matching"

    def supports(self, scheme: Scheme) -> bool:
        """True for every scheme."""
        return True

    def prepare(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> TokenMatchingPlan:
        """Check the input; see :meth:`Verifier.prepare`. O(V)."""
        return TokenMatchingPlan(Node.of(*self.checked(p, q, scheme), scheme))

    def acceptance(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float:
        """``p(T) + sum_x p_x P(x is sampled)``, exact (by quadrature to 1e-13 for sequential drafts). O(V n)."""
        node = Node.of(*self.checked(p, q, scheme), scheme)
        return node.fixed_mass + float(node.p @ scheme.inclusion(node.w))

    def accepted_share(self, node: Node, token: int, rng: Source = None, histories: int = 8) -> float:
        """The probability that the token is drafted."""
        return float(node.scheme.inclusion(node.w)[token])
