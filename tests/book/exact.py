"""The constructions of the theory chapters as the proofs give them, in rational arithmetic, for small vocabularies.

Slow and simple on purpose: an independent reference that shares no code with the library.
"""

from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from math import prod


def subsets(tokens):
    tokens = list(tokens)
    return [frozenset(s) for k in range(len(tokens) + 1) for s in combinations(tokens, k)]


def collect(pairs):
    law = {}
    for outcome, mass in pairs:
        if mass:
            law[outcome] = law.get(outcome, 0) + mass
    return law


def iid(q, n):
    return collect((frozenset(t), prod(q[x] for x in t)) for t in product(range(len(q)), repeat=n))


def sequential(q, n):
    def mass(t):
        left, m = Fraction(1), Fraction(1)
        for x in t:
            m, left = m * q[x] / left, left - q[x]
        return m

    return collect((frozenset(t), mass(t)) for t in permutations(range(len(q)), n))


def conditioned(w, n):
    law = {frozenset(s): prod(w[x] for x in s) for s in combinations(range(len(w)), n)}
    total = sum(law.values())
    return {s: m / total for s, m in law.items()}


def top_then(q, fixed, inner):
    """T and one draw of `inner` off T: the law of the whole set."""
    rest = [x for x in range(len(q)) if x not in fixed]
    mass = sum(q[x] for x in rest)
    return {fixed | {rest[i] for i in s}: m for s, m in inner([q[x] / mass for x in rest]).items()}


def inside(law, H):
    """Q(H)."""
    return sum((m for s, m in law.items() if s <= H), Fraction(0))


def optimal_rate(law, p):
    return 1 + min(sum((p[x] for x in H), Fraction(0)) - inside(law, H) for H in subsets(range(len(p))))


def ratio_order(p, w, tokens):
    return sorted(tokens, key=lambda x: p[x] / w[x])


def prefix_values(law, p, order, fixed=frozenset()):
    L, Q = [Fraction(0)], [inside(law, fixed)]
    for k, x in enumerate(order):
        L.append(L[-1] + p[x])
        Q.append(inside(law, fixed | set(order[: k + 1])))
    return L, Q


def majorant_marginal(L, Q):
    first = max(k for k in range(len(L)) if L[k] == 0)
    hull = [first]
    for k in range(first + 1, len(L)):
        while len(hull) > 1:
            a, b = hull[-2:]
            if (Q[b] - Q[a]) * (L[k] - L[b]) > (Q[k] - Q[b]) * (L[b] - L[a]):
                break
            hull.pop()
        hull.append(k)
    r = [Q[k] - Q[k - 1] for k in range(1, first + 1)]
    for a, b in pairwise(hull):
        r += [(Q[b] - Q[a]) / (L[b] - L[a]) * (L[k] - L[k - 1]) for k in range(a + 1, b + 1)]
    return r


def follow_or_rest_marginal(L, Q):
    D = [b - a for a, b in zip(L, Q)]
    top = D.index(max(D))
    M = [max(0, *(D[: k + 1] if k <= top else D[k:]), 0) for k in range(len(D))]
    return [L[k] - L[k - 1] + M[k] - M[k - 1] for k in range(1, len(L))]


def sweep_two(q, r):
    """The interval sweep for two drafts; tokens in order of r/q. Returns pieces (left, right, token), ascending."""
    holes, pieces = [], []
    for x, (length, mass) in enumerate(zip(q, r)):
        swallowed, A, B = [], Fraction(0), Fraction(0)
        while True:
            left = holes[-1][1] if holes else Fraction(0)
            if not holes or (left + length + A) ** 2 - left**2 - B <= mass:
                break
            swallowed.append(holes.pop())
            A, B = A + swallowed[-1][1] - swallowed[-1][0], B + swallowed[-1][2]
        w = length + A
        start = ((mass + B) / w - w) / 2
        assert left <= start <= (swallowed[-1][0] if swallowed else start)
        assert (swallowed[0][1] if swallowed else start) <= start + w <= 1
        edges = [start, *(e for h in reversed(swallowed) for e in h[:2]), start + w]
        pieces += [(a, b, x) for a, b in zip(edges[::2], edges[1::2]) if b > a]
        holes.append((start, start + w, mass + B))
    return sorted(pieces)


def tiling_marginal(q, pieces, n):
    length = {x: sum(b - a for a, b, y in pieces if y == x) for x in range(len(q))}
    G, r = Fraction(0), [Fraction(0)] * len(q)
    for a, b, x in pieces:
        after = G + q[x] * (b - a) / length[x]
        r[x] += after**n - G**n
        G = after
    return r


def nest(law, r):
    """The nest of the existence proof; tokens 0..m-1 in order of r/w. Returns segments (base, token, fraction)."""
    F, received, segments = [Fraction(0)] * len(r), [Fraction(0)] * len(r), []

    def extension(F):
        return sum(m * prod(F[x] for x in s) for s, m in law.items())

    def move(base, x, to):
        rate = sum(m * prod(F[y] for y in s if y != x) for s, m in law.items() if x in s)
        received[x] += (to - F[x]) * rate
        segments.append((base, x, to - F[x]))
        F[x] = to

    def block(s, h):
        x = h - 1
        at = [F[:s] + [Fraction(1)] * (k - s) + F[k:] for k in range(s, h)]
        with_x = [[*f[:x], Fraction(1), *f[x + 1 :]] for f in at]
        G = [extension(f) - extension(at[0]) for f in at]
        u = [extension(f) - extension(at[0]) - g for f, g in zip(with_x, G)]
        y = [sum(r[s:k], Fraction(0)) - g for k, g in zip(range(s, h), G)]
        assert min(y) >= 0
        full, f = s, Fraction(0)
        while full < x:
            steps = []
            for k in range(full + 1, x + 1):
                du, dy = u[k - s] - u[full - s], y[k - s] - y[full - s]
                if du > 0 or dy == 0:
                    steps.append((dy / du if du > 0 else f, -k))
            f, k = min(steps)
            assert F[x] <= f <= 1
            move(full, x, f)
            block(full, -k)
            full = -k
        move(x, x, Fraction(1))

    block(0, len(r))
    return segments, received


def priority_marginal(law, segments, m):
    """The law of the winner, by enumeration of the drafts and of all their segments."""
    own = [[(c, -x, f) for c, x, f in segments if x == t and f] for t in range(m)]
    r = [Fraction(0)] * m
    for s, mass in law.items():
        for keys in product(*(own[x] for x in s)):
            r[-max(k[:2] for k in keys)[1]] += mass * prod(k[2] for k in keys)
    return r


def positive_part(x):
    return x if x > 0 else Fraction(0)


def rejection_sampling(p, q, n, replacement):
    """Recursive rejection sampling by enumeration: law of the emitted token, probability that a draft is emitted."""
    law, rate = [Fraction(0)] * len(p), Fraction(0)

    def step(rho, draft, seen, alive):
        nonlocal rate
        if len(seen) == n:
            for x, m in enumerate(rho):
                law[x] += alive * m
                rate += alive * m * (x in seen)
            return
        rest = [positive_part(a - b) for a, b in zip(rho, draft)]
        for x, m in enumerate(draft):
            accept = min(m, rho[x])
            law[x] += alive * accept
            rate += alive * accept
            if m > accept:
                left = draft if replacement else [0 if y == x else b / (1 - m) for y, b in enumerate(draft)]
                step([a / sum(rest) for a in rest], left, [*seen, x], alive * (m - accept))

    step(list(p), list(q), [], Fraction(1))
    return law, rate


class Node:
    """An inner node of a random tree: target, law of the drafted set, selection rule given the set, marginal."""

    def __init__(self, p, drafts, selection):
        self.p, self.drafts, self.selection = p, drafts, selection
        self.r = [sum(drafts[s] * law.get(x, 0) for s, law in selection.items()) for x in range(len(p))]


def select_by_nest(law, order, r, fixed=frozenset()):
    """For each set of drafts the law of the winner of the nest; `r` along `order`."""
    rank = {x: k for k, x in enumerate(order)}
    ranked = {}
    for s, m in law.items():
        key = frozenset(rank[x] for x in s - fixed)
        ranked[key] = ranked.get(key, 0) + m
    segments, _ = nest(ranked, r)
    own = {x: [(c, -k, f) for c, k, f in segments if k == rank[x]] for x in order}
    return {
        s: collect(
            (order[-max(k[:2] for k in keys)[1]], prod(k[2] for k in keys))
            for keys in product(*(own[x] for x in s - fixed))
        )
        for s in law
    }


def path_rule(tree, s, w, resume):
    """V(s, w): {(accepted node, bonus): probability}, with None for "rejected". Leaves of `tree` are plain targets."""
    node = tree[s]
    if not isinstance(node, Node):
        return collect([(None, 1 - w), *(((s, y), w * m) for y, m in enumerate(node))])
    passed = sum(min(a, w * b) for a, b in zip(node.r, node.p))
    pairs = []
    for drafts, mass in node.drafts.items():
        for x, chance in node.selection[drafts].items():
            below = path_rule(tree, (*s, x), min(Fraction(1), w * node.p[x] / node.r[x]), resume)
            rejected = mass * chance * below.pop(None, 0)
            pairs += [(end, mass * chance * m) for end, m in below.items()]
            if not rejected:
                continue
            accept = (w - passed) / (1 - passed)
            pairs.append((None, rejected * (1 - accept)))
            for y, (a, b) in enumerate(zip(node.p, node.r)):
                bonus = rejected * positive_part(w * a - b) / (1 - passed)
                if bonus and resume and y in drafts:
                    assert y != x
                    pairs += [(e, bonus * m) for e, m in path_rule(tree, (*s, y), Fraction(1), resume).items()]
                else:
                    pairs.append(((s, y), bonus))
    return collect(pairs)


def text_law(tree, outcome, length):
    """The law of the first `length` tokens, the target going on after the bonus."""

    def target(s):
        return tree[s].p if isinstance(tree[s], Node) else tree[s]

    def extend(text, mass):
        if len(text) == length:
            yield text, mass
        else:
            for y, m in enumerate(target(text)):
                yield from extend((*text, y), mass * m)

    return collect(end for (s, y), mass in outcome.items() for end in extend((*s, y), mass))
