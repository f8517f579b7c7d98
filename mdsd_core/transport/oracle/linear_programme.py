"""Ground truth for small vocabularies: the transport problem solved as a linear programme.

Nothing here knows about orders, prefixes or convexity: it works on the bare law of the drafts, as listed by
``scheme.enumerate``. It is there to check the rest of the library, and to be read beside it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from mdsd_core.distributions import check_distribution
from mdsd_core.schemes import NO_DRAFT

#: The most arcs from a draft set to a token that the linear programme takes on.
LP_ARCS = 400_000

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
    """An optimal coupling of the target and the law of the drafts.

    Attributes
    ----------
    rate : float
        The acceptance of `flow`, which is feasible: a lower bound of the optimum whatever the solver did.
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
        The solver's flow, made feasible, and a bound from its prices, made feasible.

    Raises
    ------
    ValueError
        If there are more than :data:`LP_ARCS` arcs.
    OracleError
        If the solver reports anything but an optimum, or if its flow and its prices, once feasible, are more than
        :data:`LP_GAP` apart.

    Examples
    --------
    >>> solution = solve_lp([0.9, 0.1], draft_sets([[0, 1], [1, 1]], [0.5, 0.5]))
    >>> round(solution.rate, 9)
    0.6
    """
    p = check_distribution(p, "p")
    arcs = sets.members != NO_DRAFT
    if arcs.sum() > LP_ARCS:
        feasible = "V=300 at n=2, 60 at n=3, 30 at n=4"
        raise ValueError(f"the LP takes at most {LP_ARCS} arcs, got {arcs.sum()}. Feasible: about {feasible}")
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
            f"HiGHS called a flow optimal that, made feasible, accepts {solution.rate!r}, "
            f"while its prices only prove {solution.upper!r}"
        )
    return solution


def _bracket(
    p: NDArray[np.float64], sets: DraftSets, flow: NDArray[np.float64], price: NDArray[np.float64]
) -> TransportSolution:
    """Scale a flow >= 0 until it is feasible, complete prices in [0, 1] of the tokens to a dual solution."""
    drafted = sets.members != NO_DRAFT
    row = flow.sum(axis=1)
    flow = flow * np.minimum(1.0, sets.probability / np.maximum(row, np.finfo(float).tiny))[:, None]
    column = np.bincount(sets.members[drafted], weights=flow[drafted], minlength=p.size)
    cut = np.minimum(1.0, p / np.maximum(column, np.finfo(float).tiny))
    flow[drafted] *= cut[sets.members[drafted]]
    cheapest = np.where(drafted, price[sets.members], 1.0).min(axis=1)
    upper = float(p @ price + sets.probability @ (1.0 - cheapest))
    return TransportSolution(float(flow.sum()), upper, sets, flow)
