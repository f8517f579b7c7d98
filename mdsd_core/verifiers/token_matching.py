"""Token matching: draw the target's token once, and see whether it was drafted."""

from dataclasses import dataclass
from functools import singledispatch
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.schemes import (
    Deterministic,
    DistinctConditioned,
    Scheme,
    SpecHubPairs,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
)
from mdsd_core.verifiers._inclusion import conditioned_inclusion, sequential_inclusion
from mdsd_core.verifiers._node import Node
from mdsd_core.verifiers._residual import draw
from mdsd_core.verifiers.interface import UniformSource, Verdict, VerificationPlan, Verifier, register


@singledispatch
def inclusion(scheme: Scheme, node: Node) -> NDArray[np.float64]:
    """P(token x is among the sampled drafts) for every x, shape [V]; 0 on the fixed set.

    A new scheme registers its own function here (``@inclusion.register``).
    """
    raise TypeError(f"no inclusion probabilities are known for {scheme!r}: register a function with `inclusion`")


@inclusion.register
def _(scheme: WithReplacement, node: Node) -> NDArray[np.float64]:
    return _independent(node.w / node.total, node.sampled)


@inclusion.register
def _(scheme: WithoutReplacement, node: Node) -> NDArray[np.float64]:
    return sequential_inclusion(node.w, node.sampled)


@inclusion.register
def _(scheme: DistinctConditioned, node: Node) -> NDArray[np.float64]:
    return conditioned_inclusion(node.w, node.sampled)


@inclusion.register
def _(scheme: TopThenSampled, node: Node) -> NDArray[np.float64]:
    if node.sampled and scheme.replacement:
        return _independent(node.w / node.total, node.sampled)
    return sequential_inclusion(node.w, node.sampled)


@inclusion.register
def _(scheme: SpecHubPairs, node: Node) -> NDArray[np.float64]:
    return sequential_inclusion(node.w, node.sampled)


@inclusion.register
def _(scheme: Deterministic, node: Node) -> NDArray[np.float64]:
    return np.zeros_like(node.p)


def _independent(q: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """``1 - (1 - q)^n`` without cancellation."""
    with np.errstate(divide="ignore"):  # log1p(-1) for the only token
        return -np.expm1(n * np.log1p(-np.minimum(q, 1.0)))


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
    >>> round(TokenMatching().acceptance([0.5, 0.3, 0.2], [0.4, 0.4, 0.2], WithReplacement(1)), 12)
    0.36
    """

    name: ClassVar[str] = "token_matching"

    def supports(self, scheme: Scheme) -> bool:
        """True for every scheme."""
        return isinstance(scheme, Scheme)

    def prepare(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> TokenMatchingPlan:
        """Check the input; see :meth:`Verifier.prepare`. O(V)."""
        return TokenMatchingPlan(Node.of(*self.checked(p, q, scheme), scheme))

    def acceptance(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float:
        """``p(T) + sum_x p_x P(x is sampled)``, exact (by quadrature to 1e-13 for sequential drafts). O(V n)."""
        node = Node.of(*self.checked(p, q, scheme), scheme)
        return float(node.p[list(node.fixed)].sum() + node.p @ inclusion(scheme, node))
