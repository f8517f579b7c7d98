"""Ground truth for small vocabularies: the transport problem solved as such, three ways.

Nothing here knows about orders, prefixes or convexity; all three work on the bare law of the drafts, as listed by
``scheme.enumerate``. They are there to check the rest of the library, and to be read beside it.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from mdsd_core.distributions import check_distribution, check_pair
from mdsd_core.schemes import NO_DRAFT, Scheme
from mdsd_core.transport.oracle.max_flow import max_flow

#: Largest problems the oracles take on: arcs draft set -> token for the LP and for the flow, tokens for the search.
LP_ARCS = 400_000
FLOW_ARCS = 20_000
SEARCH_TOKENS = 22

#: How far apart the two ends of the LP's bracket may be.
LP_GAP = 1e-9


class OracleError(RuntimeError):
    """A solver did not solve its problem, or its solution does not stand up to inspection.

    >>> issubclass(OracleError, RuntimeError)
    True
    """


@dataclass(frozen=True, eq=False)
class DraftSets:
    """The law of the *set* of drafts.

    Attributes
    ----------
    members : ndarray of int64, shape [N, n]
        The tokens of each set, ascending, each once; :data:`NO_DRAFT` behind the last.
    probability : ndarray of float64, shape [N]
        The probability of each set, > 0.

    Examples
    --------
    >>> DraftSets(np.array([[0, 1], [1, -1]]), np.array([0.5, 0.5])).members.shape
    (2, 2)
    """

    members: NDArray[np.int64]
    probability: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TransportSolution:
    """An optimal plan between the target and the law of the drafts.

    Attributes
    ----------
    rate : float
        The acceptance of `flow`, a feasible plan: a lower bound of the optimum whatever the solver did.
    upper : float
        The value of a feasible dual solution: an upper bound of the optimum whatever the solver did.
    sets : DraftSets
        The sets of drafts.
    flow : ndarray of float64, shape of ``sets.members``
        The probability that this set is drawn and its member emitted.

    Examples
    --------
    >>> solution = solve_lp([0.5, 0.5], draft_sets([[0, 1], [1, 1]], [0.5, 0.5]))
    >>> solution.flow.shape, bool(solution.rate <= solution.upper + 1e-15)
    ((2, 2), True)
    """

    rate: float
    upper: float
    sets: DraftSets
    flow: NDArray[np.float64]


def draft_sets(drafts: ArrayLike, probability: ArrayLike) -> DraftSets:
    """Forget order and repetition: add up the tuples that hold the same set of tokens.

    Parameters
    ----------
    drafts : array_like of int, shape [N, n]
        Tuples of drafts, as :meth:`Scheme.enumerate` lists them.
    probability : array_like, shape [N]
        Their probabilities.

    Returns
    -------
    DraftSets

    Examples
    --------
    >>> sets = draft_sets([[0, 1], [1, 0], [1, 1]], [0.25, 0.25, 0.5])
    >>> sets.members.tolist(), sets.probability.tolist()
    ([[0, 1], [1, -1]], [0.5, 0.5])
    """
    rows = np.sort(np.asarray(drafts, dtype=np.int64), axis=1)
    repeated = np.zeros(rows.shape, dtype=bool)
    repeated[:, 1:] = rows[:, 1:] == rows[:, :-1]
    highest = np.iinfo(np.int64).max
    rows = np.sort(np.where(repeated | (rows == NO_DRAFT), highest, rows), axis=1)
    members, place = np.unique(rows, axis=0, return_inverse=True)
    mass = np.zeros(len(members))
    np.add.at(mass, place.ravel(), np.asarray(probability, dtype=np.float64))
    return DraftSets(np.where(members == highest, NO_DRAFT, members), mass)


def lp_rate(p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float:
    """The optimal acceptance rate by linear programming; see :func:`solve_lp`.

    >>> from mdsd_core.schemes import WithReplacement
    >>> round(lp_rate([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], WithReplacement(2)), 9)
    0.86
    """
    p, q = check_pair(p, q)
    drafts, probability = scheme.enumerate(q)
    first = np.zeros(p.size)
    np.add.at(first, drafts[:, 0], probability)
    if np.abs(first - p).max() <= 1e-15:  # p = q, mostly: emit the first draft, whatever the others
        return 1.0 - 0.5 * float(np.abs(first - p).sum())
    return solve_lp(p, draft_sets(drafts, probability)).rate


def flow_rate(p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float:
    """The optimal acceptance rate by an exact maximum flow; see :func:`solve_flow`.

    >>> from mdsd_core.schemes import WithReplacement
    >>> round(flow_rate([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], WithReplacement(2)), 12)
    0.86
    """
    p, q = check_pair(p, q)
    return float(solve_flow(p, draft_sets(*scheme.enumerate(q))))


def search_rate(p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float:
    """The optimal acceptance rate by looking at every subset of the vocabulary; see :func:`search_subsets`.

    >>> from mdsd_core.schemes import WithReplacement
    >>> round(search_rate([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], WithReplacement(2)), 12)
    0.86
    """
    p, q = check_pair(p, q)
    return search_subsets(p, draft_sets(*scheme.enumerate(q)))[0]


def solve_lp(p: ArrayLike, sets: DraftSets) -> TransportSolution:
    """Maximise the probability that the emitted token is a draft, by HiGHS.

    The problem in inequality form (always feasible; what is left over of rows and columns can be coupled at will)::

        maximise  sum of f[S, x]   over x in S,   f >= 0
        so that   sum over x of f[S, x] <= D(S)   and   sum over S of f[S, x] <= p[x]

    An arc from S to a token outside S is left out, not priced.

    Parameters
    ----------
    p : array_like, shape (V,)
        The target distribution.
    sets : DraftSets
        The law of the set of drafts. It need not come from a scheme: independent drafts of different drafters, say.

    Returns
    -------
    TransportSolution
        The solver's plan, made feasible, and a bound from its prices, made feasible.

    Raises
    ------
    ValueError
        If there are more than :data:`LP_ARCS` arcs.
    OracleError
        If the solver reports anything but an optimum, or if its plan and its prices, once feasible, are more than
        :data:`LP_GAP` apart.

    Examples
    --------
    >>> solution = solve_lp([0.9, 0.1], draft_sets([[0, 1], [1, 1]], [0.5, 0.5]))
    >>> round(solution.rate, 9)
    0.6
    """
    p = check_distribution(p, "p")
    arcs = sets.members != NO_DRAFT
    _guard(int(arcs.sum()), LP_ARCS, "the LP", "V=300 at n=2, 60 at n=3, 30 at n=4")
    trivial = _without_solver(p, sets)
    if trivial is not None:
        return trivial
    row, place = np.nonzero(arcs)
    token = sets.members[row, place]
    # A unit far above the solver's absolute tolerances, so that small probabilities count.
    unit = 1e6
    N, V = sets.probability.size, p.size
    columns = np.arange(row.size)
    matrix = csr_matrix(
        (np.ones(2 * row.size), (np.concatenate((row, N + token)), np.concatenate((columns, columns)))),
        shape=(N + V, row.size),
    )
    result = linprog(
        -np.ones(row.size),
        A_ub=matrix,
        b_ub=np.concatenate((sets.probability, p)) * unit,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.status != 0:
        raise OracleError(f"HiGHS found no optimum: status {result.status}, {result.message}")
    flow = np.zeros(sets.members.shape)
    flow[row, place] = np.maximum(result.x, 0.0) / unit
    price = np.clip(-result.ineqlin.marginals[N:], 0.0, 1.0)
    solution = _bracket(p, sets, flow, price)
    if solution.upper - solution.rate > LP_GAP:
        raise OracleError(
            f"HiGHS called a plan optimal that, made feasible, accepts {solution.rate!r}, "
            f"while its prices only prove {solution.upper!r}"
        )
    return solution


def solve_flow(p: ArrayLike, sets: DraftSets) -> Fraction:
    """The optimal acceptance rate as a maximum flow, without any rounding.

    Source -> set of drafts (capacity D(S)) -> each of its tokens -> sink (capacity p[x]). A double is an integer times
    a power of 2, so on a common power of 2 all capacities are integers (of up to 1,100 bits), and Dinic's algorithm on
    Python's integers is exact.

    Parameters
    ----------
    p, sets
        As for :func:`solve_lp`.

    Returns
    -------
    fractions.Fraction
        The exact value for the doubles given, whose sums are 1 up to rounding only.

    Raises
    ------
    ValueError
        If there are more than :data:`FLOW_ARCS` arcs.

    Examples
    --------
    >>> solve_flow([0.75, 0.25], draft_sets([[0, 1], [1, 1]], [0.5, 0.5]))
    Fraction(3, 4)
    """
    p = check_distribution(p, "p")
    arcs = sets.members != NO_DRAFT
    _guard(int(arcs.sum()), FLOW_ARCS, "the exact flow", "V=100 at n=2, 20 at n=3, 14 at n=4")
    shift = 1074  # every double is an integer multiple of 2^-1074
    supply = [int(Fraction(float(x)) * 2**shift) for x in sets.probability]
    demand = [int(Fraction(float(x)) * 2**shift) for x in p]
    members = [[int(x) for x in row[mask]] for row, mask in zip(sets.members, arcs)]
    return Fraction(max_flow(supply, demand, members), 2**shift)


def search_subsets(p: ArrayLike, sets: DraftSets) -> tuple[float, NDArray[np.int64]]:
    """``1 + min over all H of p(H) - Q(H)``, all 2^V subsets looked at.

    Parameters
    ----------
    p, sets
        As for :func:`solve_lp`.

    Returns
    -------
    rate : float
    subset : ndarray of int64
        A smallest minimising set, ascending.

    Raises
    ------
    ValueError
        If V is above :data:`SEARCH_TOKENS`.

    Examples
    --------
    >>> rate, subset = search_subsets([0.75, 0.25], draft_sets([[0, 1], [1, 1]], [0.5, 0.5]))
    >>> rate, subset.tolist()
    (0.75, [1])
    """
    p = check_distribution(p, "p")
    mass = subset_masses(sets, p.size)
    target = np.zeros(1)
    for x in p:
        target = np.concatenate((target, target + x))
    value = target - mass
    minimisers = np.flatnonzero(value == value.min())
    best = int(minimisers[np.argmin(np.bitwise_count(minimisers))])
    return 1.0 + float(value[best]), np.flatnonzero([best >> x & 1 for x in range(p.size)])


def subset_masses(sets: DraftSets, V: int) -> NDArray[np.float64]:
    """``Q(H)`` for every subset H of the vocabulary, shape [2^V]: H holds token x if bit x of its index is set.

    >>> subset_masses(draft_sets([[0, 1], [1, 1]], [0.5, 0.5]), 2)
    array([0. , 0. , 0.5, 1. ])
    """
    _guard(V, SEARCH_TOKENS, "the search over all subsets", f"V={SEARCH_TOKENS}", "tokens")
    index = np.where(sets.members == NO_DRAFT, 0, 1 << np.maximum(sets.members, 0)).sum(axis=1)
    mass = np.zeros(1 << V)
    mass[index] = sets.probability
    for x in range(V):  # add the part without x to the part with it
        halves = mass.reshape(-1, 2, 1 << x)
        halves[:, 1] += halves[:, 0]
    return mass


def _guard(size: int, limit: int, what: str, feasible: str, unit: str = "arcs") -> None:
    if size > limit:
        raise ValueError(f"{what} takes at most {limit} {unit}, got {size}. Feasible: about {feasible}")


def _without_solver(p: NDArray[np.float64], sets: DraftSets) -> TransportSolution | None:
    """The plan where there is nothing to choose: one token in every set, as with n = 1 or V = 1."""
    alone = (sets.members != NO_DRAFT).sum(axis=1) == 1
    if not alone.all():
        return None
    flow = np.zeros(sets.members.shape)
    flow[:, 0] = np.minimum(sets.probability, p[sets.members[:, 0]])
    price = np.zeros(p.size)  # 1 where the target is the scarce side
    price[sets.members[:, 0]] = p[sets.members[:, 0]] <= sets.probability
    return _bracket(p, sets, flow, price)


def _bracket(
    p: NDArray[np.float64], sets: DraftSets, flow: NDArray[np.float64], price: NDArray[np.float64]
) -> TransportSolution:
    """Scale a plan >= 0 until it is feasible, complete prices in [0, 1] of the tokens to a dual solution."""
    drafted = sets.members != NO_DRAFT
    row = flow.sum(axis=1)
    flow = flow * np.minimum(1.0, sets.probability / np.maximum(row, np.finfo(float).tiny))[:, None]
    column = np.bincount(sets.members[drafted], weights=flow[drafted], minlength=p.size)
    cut = np.minimum(1.0, p / np.maximum(column, np.finfo(float).tiny))
    flow[drafted] *= cut[sets.members[drafted]]
    cheapest = np.where(drafted, price[sets.members], 1.0).min(axis=1)
    upper = float(p @ price + sets.probability @ (1.0 - cheapest))
    return TransportSolution(float(flow.sum()), upper, sets, flow)
