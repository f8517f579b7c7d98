"""Recursive rejection sampling (RRS) with replacement: judge the drafts in turn, each against what is left of p."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.randomness import UniformSource
from mdsd_core.schemes import Scheme
from mdsd_core.verifiers.interface import Source, VerificationPlan, Verifier, put, register
from mdsd_core.verifiers.node import Node, Verdict
from mdsd_core.verifiers.residual import draw, residual, residual_mass, rest_mass


@dataclass(frozen=True, eq=False)
class RecursiveRejectionPlan(VerificationPlan):
    """RRS for one node: nothing is prepared, a residual is computed when a draft has been rejected.

    Attributes
    ----------
    node : Node
        The node's distributions.
    replacement : bool
        Whether the sampled drafts are drawn with replacement. If not, rejected tokens leave the law of the next draft.
    """

    node: Node
    replacement: bool

    def verify(self, drafts: ArrayLike, rng: UniformSource) -> Verdict:
        """Emit a token for these drafts.

        Draws one uniform for each sampled draft judged, in order, and one more for the residual if all are rejected.
        O(V) for each rejection.
        """
        p, w = self.node.p, self.node.w
        row, sampled = self.node.rows(drafts)
        level, mass, rest = 0.0, 1.0, self.node.total  # the residual is (p - level * w)_+ / mass
        for index, x in enumerate(sampled):
            weight = p[x] - level * w[x]
            if rng.random() * (mass * (w[x] / rest)) < weight:
                return self.node.emit(x, row)
            next_level = level + mass / rest
            next_mass = residual_mass(p, w, next_level)
            if next_mass == 0.0:
                # The target's mass is used up: in exact arithmetic this draft was accepted with certainty. If the
                # target gives it nothing (rounding drew it), the residual before it still has mass.
                if weight > 0.0:
                    return self.node.emit(x, row)
                break
            level, mass = next_level, next_mass
            if not self.replacement and index + 1 < len(sampled):
                rest = rest_mass(w, np.array(sampled[: index + 1]))
        return self.node.emit(int(draw(residual(p, w, level), rng.random())), row)

    def output_law(self, drafts: ArrayLike) -> NDArray[np.float64]:
        """The exact law of the emitted token, by the textbook recursion on whole residual vectors."""
        _, sampled = self.node.rows(drafts)
        law = np.zeros_like(self.node.p)
        r, reach, w = self.node.p, 1.0, self.node.w.copy()
        for x in sampled:
            proposal = w / w.sum()
            accepted = min(1.0, r[x] / proposal[x])
            law[x] += reach * accepted
            reach *= 1.0 - accepted
            left = np.maximum(r - proposal, 0.0)
            if left.sum() == 0.0:
                break
            r = left / left.sum()
            if not self.replacement:
                w[x] = 0.0
        return law + reach * r


@register
class RecursiveRejection(Verifier):
    """RRS for independent drafts: accept draft x with probability ``min(1, r_x/q_x)``, else ``r <- (r - q)_+``.

    r starts as p and is normalised after each step; if all drafts are rejected the token is drawn from the last r.
    Duplicates are judged again each time: skipping them would not be lossless. With one draft it is Leviathan's rule.

    Of drafts that are the top-m tokens T and k independent ones off T, the k are judged by their law ``q/(1 - q(T))``
    off T; the residual keeps p on T, where a residual draw is an accepted draft. This is lossless because RRS is, for
    any draft distribution: T plays no part in what is emitted. With k = 1 it is the rule for greedy drafts, and no
    verifier of these accepts more; the registry has that as "greedy".

    Parameters
    ----------
    name : str
        The name in the registry.
    most : float
        Schemes with more sampled drafts are not taken.

    Notes
    -----
    The residual before draft j + 1 is ``(p - l_j q)_+ / Z(l_j)`` with ``Z(l) = sum_x (p_x - l q_x)_+``, ``l_0 = 0``
    and ``l_{j+1} = l_j + Z(l_j)``: it does not depend on which tokens were rejected, and n drafts are all rejected
    with probability ``Z(l_n)``. A verification costs O(nV), and so does the acceptance: neither needs a sort.

    References
    ----------
    Yang et al., "Multi-Candidate Speculative Decoding", arXiv 2401.06706, Algorithm 1; the rule for one draft is that
    of Leviathan et al., arXiv 2211.17192, for greedy drafts that of Hu et al., arXiv 2502.18779, section 5. The
    one-dimensional form is new here.

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement, greedy
    >>> rule = RecursiveRejection()
    >>> plan = rule.prepare([0.6, 0.4], [0.2, 0.8], WithReplacement(2))
    >>> plan.output_law([1, 1])
    array([0.5, 0.5])
    >>> round(rule.acceptance([0.6, 0.4], [0.2, 0.8], WithReplacement(2)), 12)
    0.68
    >>> rule.acceptance([0.7, 0, 0, 0, 0.3], [0.22, 0.2, 0.2, 0.2, 0.18], greedy(2))  # doctest: +ELLIPSIS
    0.930769...
    """

    name = "rrs"

    def __init__(self, name: str = "rrs", most: float = np.inf) -> None:
        self.name, self.most = name, most

    def supports(self, scheme: Scheme) -> bool:
        """True for independent drafts, alone or behind a fixed set, at most as many of them as `most`."""
        return scheme.draws("independent") and scheme.sampled_drafts <= self.most

    def prepare(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> RecursiveRejectionPlan:
        """Check the input; see :meth:`Verifier.prepare`. O(V)."""
        return RecursiveRejectionPlan(Node.of(*self.checked(p, q, scheme), scheme), replacement=True)

    def acceptance(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float:
        """``1 - Z(l_k) + p(T)`` for k sampled drafts: exact, in k passes over the vocabulary.

        The sums are direct (no sort, no differences of prefix sums), so the error is that of adding V numbers.
        """
        node = Node.of(*self.checked(p, q, scheme), scheme)
        return 1.0 - rejection_masses(node)[-1] + node.fixed_mass

    def accepted_share(self, node: Node, token: int, rng: Source = None, histories: int = 8) -> float:
        """``l w_y/p_y``, l the last level: the part of p_y that drafts have taken; the residual has the rest."""
        level = sum(mass / node.total for mass in rejection_masses(node)[:-1])
        return float(level * node.w[token] / node.p[token])


#: The rule for greedy drafts, the top tokens and one draft off them, goes by a name of its own.
put(RecursiveRejection("greedy", most=1))


def rejection_masses(node: Node) -> list[float]:
    """``Z(l_j)`` for j = 0 .. k: the probabilities that the first j of k sampled drafts are all rejected; O(V k).

    >>> from mdsd_core.schemes import WithReplacement
    >>> node = Node.of(np.array([0.6, 0.4]), np.array([0.2, 0.8]), WithReplacement(2))
    >>> [round(mass, 12) for mass in rejection_masses(node)]
    [1.0, 0.4, 0.32]
    """
    level, masses = 0.0, [1.0]
    for _ in range(node.sampled):
        level += masses[-1] / node.total
        masses.append(residual_mass(node.p, node.w, level))
    return masses
