"""How to draw the drafts: designs with a draft temperature, and rules that choose among them.

An *arm* is a draft-sampling scheme applied to ``q^beta``: the draft distribution at another temperature. Whatever is
drawn from, a verifier that is told so emits the target's law; so a decoder may choose the arm of each step as it likes,
**as long as the choice depends on the past and on q only**, never on the p of the step. What an arm is worth at a
position is its optimal acceptance rate, and that is known to the decoder once the step is over, for all arms at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array

from mdsd_core.distributions import check_distribution, check_pair
from mdsd_core.schemes import Scheme
from mdsd_core.schemes.base import check_count
from mdsd_core.transport.subset import optimal_acceptance

#: The largest vocabulary for :func:`best_joint_law`.
MOST_TOKENS = 12


@dataclass(frozen=True)
class Arm:
    """One way to draw the drafts of a step.

    Attributes
    ----------
    scheme : Scheme
        The law of the drafts.
    beta : float
        It is applied to ``q^beta``, normalised; 1 leaves q as it is, more sharpens it, less flattens it.

    Examples
    --------
    >>> from mdsd_core.schemes import WithoutReplacement
    >>> Arm(WithoutReplacement(2), 1.3)
    Arm(scheme=WithoutReplacement(n=2), beta=1.3)
    """

    scheme: Scheme
    beta: float = 1.0


def tempered(q: ArrayLike, beta: float) -> NDArray[np.float64]:
    """``q^beta``, normalised: the draft distribution at its temperature divided by beta.

    Parameters
    ----------
    q : array_like, shape (V,)
        A distribution.
    beta : float
        Finite and > 0. Tokens with q = 0 keep probability 0.

    Examples
    --------
    >>> tempered([0.8, 0.2, 0.0], 0.5).round(6)
    array([0.666667, 0.333333, 0.      ])
    """
    q = check_distribution(q, "q")
    if not 0 < beta < np.inf:
        raise ValueError(f"beta must be finite and > 0, got {beta}")
    if beta == 1:
        return q
    weights = (q / q.max()) ** beta
    return weights / weights.sum()


def arm_rates(p: ArrayLike, q: ArrayLike, arms: Sequence[Arm]) -> NDArray[np.float64]:
    """The optimal acceptance rate of each arm at one position, shape [len(arms)]; each beta is applied once.

    >>> from mdsd_core.schemes import WithReplacement
    >>> arm_rates([0.8, 0.2], [0.6, 0.4], [Arm(WithReplacement(1)), Arm(WithReplacement(1), 3.0)]).round(4)
    array([0.8   , 0.9714])
    """
    p, q = check_pair(p, q)
    drawn_from = {beta: tempered(q, beta) for beta in {arm.beta for arm in arms}}
    return np.array([optimal_acceptance(p, drawn_from[arm.beta], arm.scheme).rate for arm in arms])


def follow(rewards: ArrayLike, *, start: int = 0, groups: ArrayLike | None = None) -> NDArray[np.int64]:
    """Choose, step by step, the arm that has earned most so far ("follow the leader").

    Parameters
    ----------
    rewards : array_like, shape (T, K)
        What each of K arms earns, or would have earned, at each of T steps.
    start : int
        The arm before anything was seen; afterwards it wins ties, and then the lowest index does.
    groups : array_like of int, shape (T,), optional
        A leader of its own for each group, such as the range that the entropy of q falls in. What the groups are made
        from must be known before the step.

    Returns
    -------
    ndarray of int64, shape (T,)
        The arm of each step; it depends on earlier rows only.

    Notes
    -----
    This is learning from full information: after a step the rewards of *all* arms are known. Against the best single
    arm in hindsight the loss is at most the sum, over the steps after which the choice changes, of the difference that
    the step made between the new choice and the old one ("be the leader"). On a stream whose steps are exchangeable
    that stays bounded as the stream grows; rewards made up by an adversary can make it grow with every step.

    References
    ----------
    Kalai and Vempala, "Efficient algorithms for online decision problems", JCSS 71 (2005), lemma 3.1.

    Examples
    --------
    >>> follow([[0.9, 0.6], [0.5, 0.7], [0.8, 0.9]], start=1)
    array([1, 0, 0])
    """
    table = _rewards(rewards)
    if not 0 <= start < table.shape[1]:
        raise ValueError(f"start must be an arm, 0 to {table.shape[1] - 1}, got {start}")
    of_step = np.zeros(len(table), dtype=np.int64) if groups is None else np.asarray(groups)
    if of_step.shape != (len(table),):
        raise ValueError(f"groups must have one entry a step, got shape {of_step.shape} for {len(table)} steps")
    chosen = np.empty(len(table), dtype=np.int64)
    for group in np.unique(of_step):
        steps = np.flatnonzero(of_step == group)
        before = np.zeros((steps.size, table.shape[1]))  # what each arm has earned before each step
        np.cumsum(table[steps[:-1]], axis=0, out=before[1:])
        leads = before[:, start] >= before.max(axis=1)
        chosen[steps] = np.where(leads, start, before.argmax(axis=1))
    return chosen


def regret(rewards: ArrayLike, chosen: ArrayLike) -> float:
    """What the best single arm in hindsight earned more than the arms chosen, over the whole stream.

    >>> regret([[1.0, 0.0], [1.0, 0.0]], [1, 0])
    1.0
    """
    table = _rewards(rewards)
    return float(table.sum(axis=0).max() - table[np.arange(len(table)), np.asarray(chosen)].sum())


def held_out(rewards: ArrayLike, prompts: Sequence[str]) -> NDArray[np.int64]:
    """For each position the arm that earned most at all *other* prompts (lowest index among equals).

    Parameters
    ----------
    rewards : array_like, shape (T, K)
        What each arm earns at each position.
    prompts : sequence of str, length T
        Which prompt a position belongs to; at least two different ones.

    Examples
    --------
    >>> held_out([[1.0, 0.0], [0.0, 1.0], [0.0, 0.4]], ["a", "b", "c"])
    array([1, 0, 0])
    """
    table = _rewards(rewards)
    names, index = np.unique(np.asarray(prompts, dtype=str), return_inverse=True)
    if index.shape != (len(table),) or names.size < 2:
        raise ValueError(f"prompts must name one of two or more prompts a position, got {names.size} for {index.size}")
    sums = np.zeros((names.size, table.shape[1]))
    np.add.at(sums, index, table)
    return np.argmax(sums.sum(axis=0) - sums, axis=1)[index].astype(np.int64)


def _rewards(rewards: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(rewards, dtype=np.float64)
    if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all():
        raise ValueError(f"rewards must be a finite table, steps by arms, got shape {table.shape}")
    return table


def inclusion_probabilities(q: ArrayLike, scheme: Scheme) -> NDArray[np.float64]:
    """``P(x is among the drafts)`` for every token, shape [V].

    >>> from mdsd_core.schemes import TopThenSampled
    >>> inclusion_probabilities([0.5, 0.25, 0.25], TopThenSampled(1, 1))
    array([1. , 0.5, 0.5])
    """
    q = check_distribution(q, "q")
    fixed, w = scheme.split(q)
    chance = scheme.inclusion(w)
    chance[fixed] = 1.0
    return chance


def inclusion_ceiling(p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float:
    """``sum_x min(p_x, P(x in S))``: no law of the drafts with these inclusion probabilities has a higher optimum.

    The emitted token can only be x when x is emitted at all, and only when x is drafted.

    >>> from mdsd_core.schemes import WithoutReplacement
    >>> inclusion_ceiling([0.9, 0.1, 0.0], [0.8, 0.1, 0.1], WithoutReplacement(2)).__round__(6)
    1.0
    """
    p, q = check_pair(p, q)
    return float(np.minimum(p, inclusion_probabilities(q, scheme)).sum())


def best_joint_law(p: ArrayLike, chances: ArrayLike, n: int) -> float:
    """The best optimal rate of any law of n different drafts with given inclusion probabilities (small V).

    Parameters
    ----------
    p : array_like, shape (V,)
        The target distribution, V at most :data:`MOST_TOKENS`.
    chances : array_like, shape (V,)
        ``P(x in S)``, in [0, 1], with sum n.
    n : int
        The number of drafts.

    Returns
    -------
    float
        By linear programming over the laws of S and the couplings at once. The law may use p, which no design of drafts
        can: it bounds what a better joint law could be worth.

    Raises
    ------
    ValueError
        If the vocabulary is too large, or no law has these inclusion probabilities.

    Examples
    --------
    >>> round(best_joint_law([0.5, 0.3, 0.2], [0.8, 0.7, 0.5], 2), 9)
    1.0
    """
    p = check_distribution(p, "p")
    n = check_count("n", n)
    pi = np.asarray(chances, dtype=np.float64)
    if p.size > MOST_TOKENS:
        raise ValueError(f"p must have at most {MOST_TOKENS} tokens, got {p.size}")
    if pi.shape != p.shape or not ((pi >= 0) & (pi <= 1 + 1e-12)).all() or abs(pi.sum() - n) > 1e-9:
        raise ValueError(f"chances must be {p.size} probabilities with sum {n}, got {pi.tolist()}")
    sets = list(combinations(range(p.size), n))
    pairs = [(i, x) for i, chosen in enumerate(sets) for x in chosen]
    size = len(sets) + len(pairs)  # the mass of every set, then the mass of every set that is emitted as each member
    flow = len(sets) + np.arange(len(pairs))
    of_set, of_token = np.array(pairs).T
    rows = np.concatenate((of_set, np.arange(len(sets)), len(sets) + of_token))
    columns = np.concatenate((flow, np.arange(len(sets)), flow))
    entries = np.concatenate((np.ones(len(pairs)), -np.ones(len(sets)), np.ones(len(pairs))))
    upper = coo_array((entries, (rows, columns)), shape=(len(sets) + p.size, size))
    equal = coo_array((np.ones(len(pairs)), (of_token, of_set)), shape=(p.size, size))
    cost = np.concatenate((np.zeros(len(sets)), -np.ones(len(pairs))))
    found = linprog(cost, upper.tocsr(), np.concatenate((np.zeros(len(sets)), p)), equal.tocsr(), pi, method="highs")
    if not found.success:
        raise ValueError(f"chances must be those of some law of {n} drafts: {found.message}")
    return float(-found.fun)
