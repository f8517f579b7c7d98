"""Recursive rejection sampling (RRS) without replacement: rejected tokens leave the law of the next draft."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import draw_token
from mdsd_core.schemes import Scheme
from mdsd_core.verifiers.interface import Estimate, Source, Verifier, register
from mdsd_core.verifiers.node import Node
from mdsd_core.verifiers.recursive_rejection.bracket import rejection_of_three
from mdsd_core.verifiers.recursive_rejection.exact import rejection_exact
from mdsd_core.verifiers.recursive_rejection.sampled import rejection_sampled
from mdsd_core.verifiers.recursive_rejection.with_replacement import RecursiveRejectionPlan
from mdsd_core.verifiers.residual import residual_mass
from mdsd_core.verifiers.residual_table import ResidualTable


@register
class RecursiveRejectionWithout(Verifier):
    """RRS for drafts drawn sequentially without replacement.

    After rejections R, draft x is accepted with probability ``min(1, r_x/q'_x)``, ``q' = q/(1 - q(R))`` off R, the law
    it was really drawn from; else ``r <- (r - q')_+`` normalised. It is the verification of multi-candidate decoding,
    SpecInfer, recursive speculative decoding and Sequoia.

    Of drafts that are the top-m tokens T and k more drawn without replacement off T, the k are judged with q off T and
    the residual keeps p on T. This is lossless because RRS is, for any draft distribution: T plays no part in what is
    emitted. With k = 1 it is the greedy rule.

    Notes
    -----
    The residual is ``(p - l w)_+ / Z(l)`` as with replacement, but the level rises by ``Z(l)/(1 - w(R))``, so that it
    depends on the tokens rejected. A verification costs O(nV). The acceptance of two drafts is one sum over the
    first rejected token, O(V log V); for more, see :meth:`acceptance`.

    It accepts at least as much as :class:`RecursiveRejection` does with replacement, for every p, q and n. The book
    proves it, in the chapter on verifiers.

    References
    ----------
    Yang et al., arXiv 2401.06706, Algorithm 2; Miao et al. (SpecInfer), arXiv 2305.09781; Jeon et al. (RSD), arXiv
    2402.14160; Chen et al. (Sequoia), arXiv 2402.12374. The one-dimensional form is new here.

    Examples
    --------
    The second draft is certain to be token 0, so its law is (1, 0), not (0.2, 0.8):

    >>> from mdsd_core.schemes import WithoutReplacement
    >>> rule = RecursiveRejectionWithout()
    >>> rule.prepare([0.6, 0.4], [0.2, 0.8], WithoutReplacement(2)).output_law([1, 0])
    array([0.5, 0.5])
    >>> rule.acceptance([0.6, 0.4], [0.2, 0.8], WithoutReplacement(2))
    1.0
    """

    name = "rrs_without"

    def supports(self, scheme: Scheme) -> bool:
        """True for sequential drafts without replacement, alone or behind a fixed set."""
        return scheme.draws("sequential")

    def prepare(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> RecursiveRejectionPlan:
        """Check the input; see :meth:`Verifier.prepare`. O(V)."""
        return RecursiveRejectionPlan(Node.of(*self.checked(p, q, scheme), scheme), replacement=False)

    def acceptance(
        self,
        p: ArrayLike,
        q: ArrayLike,
        scheme: Scheme,
        *,
        histories: int = 8192,
        rng: np.random.Generator | None = None,
    ) -> float | Estimate:
        """P(the emitted token is among the drafts).

        Parameters
        ----------
        p, q, scheme
            As for :meth:`Verifier.acceptance`.
        histories : int
            How many histories of rejections to sample where that is needed.
        rng : numpy.random.Generator, optional
            Where they are drawn from; a generator with a fixed seed if not given, so that results come again.

        Returns
        -------
        float or Estimate
            Exact for one or two sampled drafts, O(V log V), and for more on small supports. Three: a rigorous bracket
            no wider than 1e-6 (level 1), some milliseconds at V = 50,000. Four and more: an interval of level 0.99
            from sampled histories, one to three microseconds each.
        """
        node = Node.of(*self.checked(p, q, scheme), scheme)
        table = ResidualTable.of(node.p, node.w)
        return acceptance_of_table(table, node.sampled, node.fixed_mass, histories, rng)

    def accepted_share(self, node: Node, token: int, rng: Source = None, histories: int = 8) -> float:
        """The mean of ``min(1, l w_y/p_y)`` over histories of all rejections but the last, which decides no level.

        A history is drawn with each rejected token in proportion to its chance of being rejected next; the mean is then
        that over all histories (`sampled.py` has the argument).
        """
        p, w = node.p, node.w / node.total
        mass = residual_mass(p, w, 1.0)
        if node.sampled == 1 or mass == 0.0:
            return float(w[token] / p[token])
        scale = w[token] / p[token]
        chance = np.maximum(w - p, 0.0)
        if node.sampled == 2:  # all first rejections
            rejected = np.flatnonzero(chance)
            levels = 1.0 + mass / np.maximum(1.0 - w[rejected], np.finfo(float).tiny)
            return float(chance[rejected] @ np.minimum(levels * scale, 1.0) / chance.sum())
        if rng is None:
            raise ValueError("rng must be given for RRS without replacement with three drafts or more")
        return float(np.mean([_one_history(p, w, node.sampled, token, rng) for _ in range(histories)]))


def acceptance_of_table(
    table: ResidualTable, sampled: int, fixed: float, histories: int, rng: np.random.Generator | None
) -> float | Estimate:
    """:meth:`RecursiveRejectionWithout.acceptance` from a table that is there already: several n, one sort.

    Parameters
    ----------
    table : ResidualTable
        Of p and the weights of the sampled drafts, on any scale.
    sampled : int
        How many drafts are sampled, at most as many as there are weights.
    fixed : float
        The target mass of the fixed set.
    histories, rng
        As for the method.
    """
    rejection = rejection_exact(table, sampled)
    if rejection is not None:
        return 1.0 - rejection + fixed
    if sampled == 3:
        least, most = rejection_of_three(table)
        low, high = max(1.0 - most + fixed, 0.0), min(1.0 - least + fixed, 1.0)
        return Estimate(0.5 * (low + high), low, high, 1.0, "bracket by bins of draft probability")
    mean, half = rejection_sampled(table, sampled, histories, rng or np.random.default_rng(0))
    value = 1.0 - mean + fixed
    return Estimate(value, max(value - half, 0.0), min(value + half, 1.0), 0.99, f"{histories} sampled histories")


def _one_history(
    p: NDArray[np.float64], w: NDArray[np.float64], draws: int, token: int, rng: np.random.Generator
) -> float:
    """``min(1, l w_y/p_y)`` at the end of one drawn history; 1 as soon as the residual has no mass left."""
    left = w.copy()  # the weights of what is not rejected yet
    level, mass, rest = 0.0, 1.0, 1.0
    for step in range(draws):
        next_level = level + mass / rest
        next_mass = residual_mass(p, w, next_level)
        if next_mass == 0.0:
            return 1.0
        if step < draws - 1:
            chance = np.maximum(left / rest - np.maximum(p - level * left, 0.0) / mass, 0.0)
            if not chance.any():  # nothing is ever rejected here
                return 1.0
            left[draw_token(chance, rng.random())] = 0.0
            rest = float(left.sum())
            if rest <= 0.0:
                return 1.0
        level, mass = next_level, next_mass
    return float(min(1.0, level * w[token] / p[token]))
