"""Recursive rejection sampling (RRS) with replacement: judge the drafts in turn, each against what is left of p."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.schemes import Scheme, WithReplacement
from mdsd_core.verifiers._residual import LIFT, draw_residual, residual_mass
from mdsd_core.verifiers.interface import UniformSource, Verdict, VerificationPlan, Verifier, register


@dataclass(frozen=True)
class RecursiveRejectionPlan(VerificationPlan):
    """RRS with replacement for one node: nothing to prepare, residuals are computed when a draft is rejected."""

    p: NDArray[np.float64]
    q: NDArray[np.float64]

    def verify(self, drafts: ArrayLike, rng: UniformSource) -> Verdict:
        """Emit a token for these drafts.

        Draws one uniform for each draft judged, and one more for the residual if all are rejected. O(V) for each
        rejection.
        """
        row = np.asarray(drafts).tolist()
        level, mass = 0.0, 1.0  # the residual is (p - l q)_+ / mass, l = level * LIFT
        for x in row:
            weight = self.p[x] - level * (self.q[x] * LIFT)
            if rng.random() * mass * self.q[x] < weight:
                return Verdict(x, row.index(x))
            next_level = level + mass / LIFT
            next_mass = residual_mass(self.p, self.q, next_level)
            if next_mass == 0.0:
                # The target's mass is used up: in exact arithmetic this draft had been accepted with certainty. If the
                # target gives it nothing, rounding drew it; the residual before it still has mass.
                if weight > 0.0:
                    return Verdict(x, row.index(x))
                break
            level, mass = next_level, next_mass
        token = int(draw_residual(self.p, self.q, level, rng.random()))
        return Verdict(token, row.index(token) if token in row else -1)

    def output_law(self, drafts: ArrayLike) -> NDArray[np.float64]:
        """The exact law of the emitted token, by the textbook recursion on whole residual vectors."""
        row = np.asarray(drafts).tolist()
        law = np.zeros_like(self.p)
        residual, reach = self.p, 1.0
        for x in row:
            accepted = min(1.0, residual[x] / self.q[x])
            law[x] += reach * accepted
            reach *= 1.0 - accepted
            rest = np.maximum(residual - self.q, 0.0)
            if rest.sum() == 0.0:
                break
            residual = rest / rest.sum()
        return law + reach * residual


@register
class RecursiveRejection(Verifier):
    """RRS for independent drafts: accept draft j with probability ``min(1, r_j(x)/q_x)``, else ``r <- (r - q)_+``.

    Duplicates are judged again each time: skipping them would not be lossless. With one draft it is Leviathan's rule.

    Notes
    -----
    The residual before draft j + 1 is ``(p - l_j q)_+ / Z(l_j)`` with ``Z(l) = sum_x (p_x - l q_x)_+``, ``l_0 = 0``
    and ``l_{j+1} = l_j + Z(l_j)``: it does not depend on which tokens were rejected, and n drafts are all rejected
    with probability ``Z(l_n)``. A verification costs O(nV), and so does the acceptance.

    References
    ----------
    Yang et al., "Multi-Candidate Speculative Decoding", arXiv 2401.06706, Algorithm 1; the rule for one draft is that
    of Leviathan et al., arXiv 2211.17192.

    Examples
    --------
    >>> rule = RecursiveRejection()
    >>> plan = rule.prepare([0.6, 0.4], [0.2, 0.8], WithReplacement(2))
    >>> plan.output_law([1, 1])
    array([0.5, 0.5])
    >>> round(rule.acceptance([0.6, 0.4], [0.2, 0.8], WithReplacement(2)), 12)
    0.68
    """

    name: ClassVar[str] = "rrs"

    def supports(self, scheme: Scheme) -> bool:
        """True for independent drafts."""
        return isinstance(scheme, WithReplacement)

    def prepare(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> RecursiveRejectionPlan:
        """Check the input; see :meth:`Verifier.prepare`."""
        p, q = self.checked(p, q, scheme)
        return RecursiveRejectionPlan(p, q)

    def acceptance(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float:
        """``1 - Z(l_n)``, exact, in n passes over the vocabulary.

        The sums are direct (no sort, no differences of prefix sums), so the error is that of adding V numbers.
        """
        p, q = self.checked(p, q, scheme)
        level, mass = 0.0, 1.0
        for _ in range(scheme.drafts):
            level += mass / LIFT
            mass = residual_mass(p, q, level)
        return 1.0 - mass
