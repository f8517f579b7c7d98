"""One position: every rate and acceptance of a sweep, with the work that they share done once.

For one (p, q) there is one check, one sort by p/q (which serves every scheme whose weights are q, or q off a fixed
set), one table of residual masses, and one recursion of rejections that holds the acceptance of recursive rejection
with replacement for all n at once. Everything equals the plain calls (``optimal_acceptance``, ``Verifier.acceptance``)
to the last digit, save sampled histories, which are drawn from the given generator.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import check_pair
from mdsd_core.schemes import Scheme
from mdsd_core.transport.order import RatioOrder, ratio_order
from mdsd_core.transport.subset import optimal_acceptance_in_order
from mdsd_core.verifiers import Estimate, verifier
from mdsd_core.verifiers.node import Node
from mdsd_core.verifiers.recursive_rejection.with_replacement import RecursiveRejection, rejection_masses
from mdsd_core.verifiers.recursive_rejection.without_replacement import RecursiveRejectionWithout, acceptance_of_table
from mdsd_core.verifiers.residual_table import ResidualTable
from mdsd_study.measure.grid import BOUND, Entry

#: Names of the columns of :func:`measure_position`.
VALUES = ("acceptance", "low", "high", "level", "bound")


def measure_position(
    p: ArrayLike,
    q: ArrayLike,
    entries: Iterable[Entry],
    rng: np.random.Generator,
    histories: int = 2048,
) -> NDArray[np.float64]:
    """Measure all entries of a sweep at one position.

    Parameters
    ----------
    p, q : array_like, shape (V,)
        Target and draft distribution.
    entries : iterable of Entry
        See :func:`mdsd_study.measure.grid.entries_of`; entries of one scheme need not stand together.
    rng : numpy.random.Generator
        For sampled histories; not used where all is exact.
    histories : int
        How many.

    Returns
    -------
    ndarray, shape (entries, 5)
        :data:`VALUES`. Where acceptance is exact, `low` and `high` equal it and `level` is 1; a rigorous bracket has
        level 1 too.

    Notes
    -----
    One sort; a bound costs O(V n), a verifier what its ``acceptance`` costs.

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> entries = [Entry("with_replacement", rule, n, WithReplacement(n)) for n in (1, 2) for rule in ("bound", "rrs")]
    >>> measure_position([0.6, 0.4], [0.2, 0.8], entries, np.random.default_rng(0))[:, 0].round(12)
    array([0.6 , 0.6 , 0.76, 0.68])
    """
    entries = list(entries)
    here = _Position(*check_pair(p, q), entries, rng, histories)
    values = np.empty((len(entries), len(VALUES)))
    for row, (_, rule, _, scheme) in zip(values, entries, strict=True):
        bound = here.bound(scheme)
        found = bound if rule == BOUND else here.acceptance(rule, scheme)
        if isinstance(found, Estimate):
            row[:] = found.value, found.low, found.high, found.level, bound
        else:
            row[:] = found, found, found, 1.0, bound
    return values


@dataclass(eq=False)
class _Position:
    """p and q with what has been computed for them so far."""

    p: NDArray[np.float64]
    q: NDArray[np.float64]
    entries: Sequence[Entry]
    rng: np.random.Generator
    histories: int

    def __post_init__(self) -> None:
        self._bounds: dict[Scheme, float] = {}
        self._table: ResidualTable | None = None

    @cached_property
    def order(self) -> RatioOrder:
        """All tokens that can be drafted, by p/q."""
        return ratio_order(self.p, self.q)

    @cached_property
    def plain(self) -> list[Scheme]:
        """The schemes of independent drafts from q itself."""
        schemes = [entry.scheme for entry in self.entries]
        return [s for s in schemes if s.draws("independent") and s.by_rank and not s.fixed_drafts]

    @cached_property
    def masses(self) -> list[float]:
        """The chances that the first drafts of the largest plain scheme are all rejected."""
        return rejection_masses(Node.of(self.p, self.q, max(self.plain, key=lambda scheme: scheme.drafts)))

    def order_of(self, w: NDArray[np.float64]) -> RatioOrder:
        """The order by p/w, from that by p/q where w is q, or q with some tokens left out."""
        if w is self.q:
            return self.order
        inside = w > 0.0
        if np.array_equal(w[inside], self.q[inside]):
            return self.order.only(inside)
        return ratio_order(self.p, w)

    def bound(self, scheme: Scheme) -> float:
        """The optimal acceptance rate."""
        if scheme not in self._bounds:
            order = self.order_of(scheme.weights(self.q))
            self._bounds[scheme] = optimal_acceptance_in_order(self.p, self.q, scheme, order).rate
        return self._bounds[scheme]

    def acceptance(self, name: str, scheme: Scheme) -> float | Estimate:
        """What the verifier of that name accepts, with shared work where its acceptance can be had so."""
        rule = verifier(name)
        computed_by = type(rule).acceptance
        if computed_by is RecursiveRejection.acceptance and scheme in self.plain:
            return float(1.0 - self.masses[scheme.drafts])
        if computed_by is RecursiveRejectionWithout.acceptance and rule.supports(scheme):
            node = Node.of(self.p, self.q, scheme)
            fixed = float(self.p[list(node.fixed)].sum())
            return acceptance_of_table(self._residuals(node), node.sampled, fixed, self.histories, self.rng)
        return rule.acceptance(self.p, self.q, scheme)

    def _residuals(self, node: Node) -> ResidualTable:
        """The table of residual masses; one for all nodes without fixed drafts, whose weights are q."""
        if node.fixed:
            return ResidualTable.of(node.p, node.w)
        if self._table is None:
            order = RatioOrder(self.order.tokens, self.order.p, node.w[self.order.tokens])
            self._table = ResidualTable.of_order(order, float(self.p[self.q == 0.0].sum()))
        return self._table
