"""The transport problem of small vocabularies solved as such: by linear programme, by maximum flow and by search."""

from collections import deque
from fractions import Fraction

import numpy as np

from mdsd_core.distributions import check_distribution, check_pair
from mdsd_core.schemes import NO_DRAFT
from mdsd_core.transport.oracle.linear_programme import draft_sets, solve_lp

#: The largest problems taken on: arcs from a draft set to a token for the flow, tokens for the search.
FLOW_ARCS = 20_000
SEARCH_TOKENS = 22


def lp_rate(p, q, scheme):
    """The optimal acceptance rate by linear programming; see :func:`solve_lp`."""
    p, q = check_pair(p, q)
    drafts, probability = scheme.enumerate(q)
    first = np.zeros(p.size)
    np.add.at(first, drafts[:, 0], probability)
    if np.abs(first - p).max() <= 1e-15:  # p = q, mostly: emit the first draft, whatever the others
        return 1.0 - 0.5 * float(np.abs(first - p).sum())
    sets = draft_sets(drafts, probability)
    if (sets.members[:, 1:] == NO_DRAFT).all():  # one token in every set: nothing to choose
        return float(np.minimum(np.bincount(sets.members[:, 0], sets.probability, p.size), p).sum())
    return solve_lp(p, sets).rate


def flow_rate(p, q, scheme):
    """The optimal acceptance rate by an exact maximum flow; see :func:`solve_flow`."""
    p, q = check_pair(p, q)
    return float(solve_flow(p, draft_sets(*scheme.enumerate(q))))


def search_rate(p, q, scheme):
    """The optimal acceptance rate by looking at every subset of the vocabulary; see :func:`search_subsets`."""
    p, q = check_pair(p, q)
    return search_subsets(p, draft_sets(*scheme.enumerate(q)))[0]


def solve_flow(p, sets):
    """The optimal acceptance rate as a maximum flow, as a Fraction: exact for the doubles given.

    Source -> set of drafts (capacity D(S)) -> each of its tokens -> sink (capacity p[x]). A double is an integer times
    a power of 2, so on a common power of 2 all capacities are integers, and Dinic's algorithm on Python's integers is
    exact.
    """
    p = check_distribution(p, "p")
    arcs = sets.members != NO_DRAFT
    _guard(int(arcs.sum()), FLOW_ARCS, "the exact flow", "V=100 at n=2, 20 at n=3, 14 at n=4")
    shift = 1074  # every double is an integer multiple of 2^-1074
    supply = [int(Fraction(float(x)) * 2**shift) for x in sets.probability]
    demand = [int(Fraction(float(x)) * 2**shift) for x in p]
    members = [[int(x) for x in row[mask]] for row, mask in zip(sets.members, arcs)]
    return Fraction(max_flow(supply, demand, members), 2**shift)


def search_subsets(p, sets):
    """``1 + min over all H of p(H) - Q(H)``, all 2^V subsets looked at; and a smallest minimising set, ascending."""
    p = check_distribution(p, "p")
    mass = subset_masses(sets, p.size)
    target = np.zeros(1)
    for x in p:
        target = np.concatenate((target, target + x))
    value = target - mass
    minimisers = np.flatnonzero(value == value.min())
    best = int(minimisers[np.argmin(np.bitwise_count(minimisers))])
    return 1.0 + float(value[best]), np.flatnonzero([best >> x & 1 for x in range(p.size)])


def subset_masses(sets, V):
    """``Q(H)`` for every subset H of the vocabulary, shape [2^V]: H holds token x if bit x of its index is set."""
    _guard(V, SEARCH_TOKENS, "the search over all subsets", f"V={SEARCH_TOKENS}", "tokens")
    index = np.where(sets.members == NO_DRAFT, 0, 1 << np.maximum(sets.members, 0)).sum(axis=1)
    mass = np.zeros(1 << V)
    mass[index] = sets.probability
    for x in range(V):  # add the part without x to the part with it
        halves = mass.reshape(-1, 2, 1 << x)
        halves[:, 1] += halves[:, 0]
    return mass


def _guard(size, limit, what, feasible, unit="arcs"):
    if size > limit:
        raise ValueError(f"{what} takes at most {limit} {unit}, got {size}. Feasible: about {feasible}")


def max_flow(supply, demand, members):
    """The largest flow source -> row (supply) -> its members (no limit) -> sink (demand), by Dinic's algorithm."""
    rows, columns = len(supply), len(demand)
    source, sink = rows + columns, rows + columns + 1
    heads = []  # edge e goes to heads[e]; e ^ 1 is its reverse
    room = []
    edges = [[] for _ in range(rows + columns + 2)]

    def connect(a, b, capacity):
        edges[a].append(len(heads))
        edges[b].append(len(heads) + 1)
        heads.extend((b, a))
        room.extend((capacity, 0))

    for i, own in enumerate(members):
        connect(source, i, supply[i])
        for x in own:
            connect(i, rows + x, supply[i])
    for x in range(columns):
        connect(rows + x, sink, demand[x])

    total = 0
    while True:
        level = [-1] * len(edges)
        level[source] = 0
        queue = deque([source])
        while queue:
            a = queue.popleft()
            for e in edges[a]:
                if room[e] > 0 and level[heads[e]] < 0:
                    level[heads[e]] = level[a] + 1
                    queue.append(heads[e])
        if level[sink] < 0:
            return total
        untried = [0] * len(edges)
        while True:
            path = []
            a = source
            while a != sink:  # depth first, stepping back from dead ends
                while untried[a] < len(edges[a]):
                    e = edges[a][untried[a]]
                    if room[e] > 0 and level[heads[e]] == level[a] + 1:
                        path.append(e)
                        a = heads[e]
                        break
                    untried[a] += 1
                else:
                    if not path:
                        break
                    a = heads[path.pop() ^ 1]
                    untried[a] += 1
            if a != sink:
                break
            pushed = min(room[e] for e in path)
            for e in path:
                room[e] -= pushed
                room[e ^ 1] += pushed
            total += pushed
