"""Laws of drafts for the tests: all schemes, exact sums over subsets, rational arithmetic."""

from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np

from mdsd_core.schemes import (
    Deterministic,
    DistinctConditioned,
    SpecHubPairs,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    greedy,
    odds,
)
from mdsd_core.schemes.without_replacement.race import _canonical, _nodes

#: Every kind of scheme, by name, as a list of schemes with n drafts.
KINDS = {
    "with replacement": lambda n: [WithReplacement(n)],
    "without replacement": lambda n: [WithoutReplacement(n)],
    "conditioned": lambda n: [DistinctConditioned(n)],
    "conditioned, odds": lambda n: [DistinctConditioned(n, odds)],
    "top + without": lambda n: [TopThenSampled(m, n - m) for m in range(n)],
    "top + with": lambda n: [TopThenSampled(m, n - m, True) for m in range(n)],
    "greedy": lambda n: [greedy(n)],
    "deterministic": lambda n: [Deterministic(n)],
    "SpecHub": lambda n: [SpecHubPairs()] if n == 2 else [],
}


def all_schemes(n):
    return [scheme for kind in KINDS.values() for scheme in kind(n)]


@cache
def sequential_sets(q, n):
    """The law of the set of n drafts without replacement, in rational arithmetic: {frozenset: Fraction}.

    `q` is a tuple of doubles, taken as exact and relative to their sum.
    """
    exact = [Fraction(x) for x in q]
    total = sum(exact)
    support = [x for x in range(len(q)) if exact[x] > 0]
    law = {frozenset(): Fraction(1)}
    for size in range(1, min(n, len(support)) + 1):
        bigger = {}
        for members in combinations(support, size):
            members = frozenset(members)
            bigger[members] = sum(
                law[members - {x}] * exact[x] / (total - sum(exact[y] for y in members - {x})) for x in members
            )
        law = bigger
    return law


def sequential_steps_by_sets(q, n):
    """The steps of Q over the prefixes for n drafts without replacement, from the law of the set drawn so far.

    ``P(S) = sum over x in S of P(S - x) q_x / (rate outside S - x)``, over all 2^V sets: positive terms, each rate
    summed directly, so that every step is good to rounding. For V up to 18 or so.
    """
    V = q.size
    states = np.arange(1 << V)
    size = np.bitwise_count(states)
    rate = np.zeros(1)  # of the tokens outside a set
    for x in range(V):
        rate = np.concatenate((rate + q[x], rate))
    law = np.zeros(1 << V)
    law[0] = 1.0
    for drawn in range(n):
        now = states[size == drawn]
        reached = law[now] / rate[now]
        for x in range(V):
            fresh = now & (1 << x) == 0
            np.add.at(law, now[fresh] | 1 << x, reached[fresh] * q[x])
    done = states[size == n]
    steps = np.zeros(V)
    np.add.at(steps, np.log2(done).astype(int), law[done])
    return steps


def conditioned_sets(w, n):
    """The same for independent drafts conditioned on being different."""
    exact = [Fraction(x) for x in w]
    support = [x for x in range(len(w)) if exact[x] > 0]
    law = {}
    for members in combinations(support, min(n, len(support))):
        product = Fraction(1)
        for x in members:
            product *= exact[x]
        law[frozenset(members)] = product
    total = sum(law.values())
    return {members: mass / total for members, mass in law.items()}


def exact_steps(law, m):
    """The steps of Q over the prefixes of tokens 0..m-1, exact."""
    steps = [Fraction(0)] * m
    for members, mass in law.items():
        steps[max(members)] += mass
    return steps


def relative_error(values, exact, floor=1e-290):
    """Largest relative error against exact values (absolute below `floor`)."""
    worst = 0.0
    for value, true in zip(values, exact, strict=True):
        worst = max(worst, float(abs(Fraction(float(value)) - true) / max(true, Fraction(floor))))
    return worst


def skewed_weights(rng, V, decades):
    """Weights spread evenly over so many powers of ten, in random order."""
    w = 10.0 ** -rng.uniform(0, decades, V)
    w[rng.integers(V)] = 1.0
    return np.where(w > 0, w, 5e-324)


def race_steps_reference(w, n):
    """`race_steps` for n >= 1 by the plain recursion, numpy only: what the kernels are checked against.

    Tokens before k are a factor ``b (1 + eps q) + z a`` of the state, tokens after it a factor ``e^{-qt} (1 + eps q)``.
    """
    steps = np.zeros(w.size)
    support, q, n = _canonical(w, n)
    if n == q.size:
        steps[np.flatnonzero(w)[-1]] = 1.0
        return steps
    t, dt = _nodes(q, n, 1e-14)
    P, D = np.zeros((n, t.size)), np.zeros((n, t.size))  # parts of z^m, without and with eps
    P[0] = 1.0
    after = np.concatenate((np.cumsum(q[:0:-1])[::-1], [0.0]))
    inner = np.empty(q.size)
    with np.errstate(over="ignore", under="ignore"):
        for k, x in enumerate(q):
            a, b, c = -np.expm1(-x * t), np.exp(-x * t), after[k]
            inner[k] = (dt * np.exp(-c * t) * (D[n - 1] + c * P[n - 1]) * a).sum()
            D = (D + x * P) * b + np.vstack((np.zeros(t.size), D[:-1])) * a
            P = P * b + np.vstack((np.zeros(t.size), P[:-1])) * a
    steps[support] = inner
    return steps
