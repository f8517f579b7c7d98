"""The statements of the theory chapters, in rational arithmetic: no rounding, no tolerance."""

from fractions import Fraction as Fr
from functools import partial
from itertools import pairwise, permutations, product
from math import prod

import numpy as np
import pytest

from tests.book import exact

LAWS = {"iid": exact.iid, "sequential": exact.sequential, "conditioned": exact.conditioned}


def fractions(weights):
    return [Fr(int(x), int(sum(weights))) for x in weights]


def instances(seed, count, largest=5, drafts=3):
    """Random pairs with small numerators: ties and zeros in p are common."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        V = int(rng.integers(2, largest + 1))
        n = int(rng.integers(1, min(drafts, V - 1) + 1))
        weights = rng.integers(0, 7, V)
        weights[rng.integers(V)] += 1
        yield fractions(weights), fractions(rng.integers(1, 8, V)), n


def mixed_base(rng, law, V):
    """A random point of the base polytope: a mixture of greedy vertices."""
    weights = fractions(rng.integers(1, 6, 4))
    r = [Fr(0)] * V
    for weight in weights:
        order = [int(x) for x in rng.permutation(V)]
        for k, x in enumerate(order):
            r[x] += weight * (exact.inside(law, frozenset(order[: k + 1])) - exact.inside(law, frozenset(order[:k])))
    return r


@pytest.mark.parametrize("name", LAWS)
def test_the_laws_are_q_convex(name):
    for _, q, n in instances(1, 25):
        law, V = LAWS[name](q, n), len(q)
        Q = {H: exact.inside(law, H) for H in exact.subsets(range(V))}
        for H in Q:
            for x, y in permutations(set(range(V)) - H, 2):
                assert (Q[H | {x}] - Q[H]) / q[x] <= (Q[H | {x, y}] - Q[H | {x}]) / q[y]


@pytest.mark.parametrize("name", LAWS)
def test_prefixes_suffice_for_any_vector(name):
    for p, q, n in instances(2, 30):
        law = LAWS[name](q, n)
        L, Q = exact.prefix_values(law, p, exact.ratio_order(p, q, range(len(p))))
        assert 1 + min(a - b for a, b in zip(L, Q)) == exact.optimal_rate(law, p)


def test_proposition_B_for_the_sequential_law_only():
    for _, q, n in instances(3, 30):
        law = exact.sequential(q, n)
        assert all(exact.inside(law, H) <= sum(q[x] for x in H) ** n for H in exact.subsets(range(len(q))))
    q, H = fractions([5, 1, 1, 1, 1, 1]), frozenset(range(1, 6))
    assert [exact.inside(f(q, 2), H) for f in LAWS.values()] == [Fr(1, 4), Fr(2, 9), Fr(2, 7)]
    p = fractions([1, 0, 0, 0, 0, 0])
    assert [exact.optimal_rate(f(q, 2), p) for f in LAWS.values()] == [Fr(3, 4), Fr(7, 9), Fr(5, 7)]
    p = fractions([0, 0, 1, 1, 1, 1])
    assert [exact.optimal_rate(f(q, 2), p) for f in LAWS.values()] == [Fr(16, 25), Fr(38, 45), Fr(6, 7)]


def test_counterexamples_of_the_convexity_page():
    q, p = fractions([22, 20, 20, 20, 18]), fractions([7, 0, 0, 0, 3])
    greedy = exact.top_then(q, frozenset({0}), partial(exact.iid, n=1))
    assert exact.optimal_rate(greedy, p) == Fr(121, 130)
    L, Q = exact.prefix_values(greedy, p, exact.ratio_order(p, q, range(5)))
    assert 1 + min(a - b for a, b in zip(L, Q)) == 1  # the scan of the full order misses it
    first, second, p = fractions([0, 0, 6, 2]), fractions([5, 3, 0, 0]), fractions([5, 2, 0, 1])
    pairs = exact.collect(
        (frozenset({x, y}), first[x] * second[y]) for x, y in np.ndindex(4, 4) if first[x] and second[y]
    )
    assert exact.optimal_rate(pairs, p) == Fr(31, 32)
    L, Q = exact.prefix_values(pairs, p, [2, 3, 1, 0])
    assert [a - b for a, b in zip(L, Q)] == [0, 0, Fr(1, 8), 0, 0]


def check_marginals(law, p, q, fixed):
    V, off = len(p), [x for x in range(len(p)) if x not in fixed]
    order = exact.ratio_order(p, q, off)
    L, Q = exact.prefix_values(law, p, order, fixed)
    p_fixed = sum(p[x] for x in fixed)
    for make in (exact.majorant_marginal, exact.follow_or_rest_marginal):
        steps = make(L, Q)
        r = dict(zip(order, steps))
        ratios = [r[x] / q[x] for x in order]
        assert min(steps) >= 0
        assert ratios == sorted(ratios)
        assert all(sum(r[x] for x in H) >= exact.inside(law, H | fixed) for H in exact.subsets(off))
        assert p_fixed + sum(min(p[x], r[x]) for x in off) == exact.optimal_rate(law, p)
    r = dict(zip(order, exact.majorant_marginal(L, Q)))
    if p_fixed:
        scale = max(b / (p_fixed + a) for a, b in zip(L, Q))
        r = {x: scale * p[x] if x in fixed else min(r[x], scale * p[x]) for x in range(V)}
    else:
        r = {x: r.get(x, Fr(0)) for x in range(V)}
    assert sum(r.values()) == 1
    sets = [(sum((p[x] for x in H), Fr(0)), exact.inside(law, H), H) for H in exact.subsets(range(V))]
    assert all(sum(r[x] for x in H) >= mass for _, mass, H in sets)
    for omega in (Fr(0), Fr(1, 5), Fr(2, 3), Fr(9, 10), Fr(1), Fr(4, 3), Fr(7)):
        best = min(omega * a + 1 - b for a, b, _ in sets)
        assert sum(min(omega * p[x], r[x]) for x in range(V)) == best


@pytest.mark.parametrize("name", LAWS)
def test_marginals_are_optimal_and_the_majorant_at_every_scale(name):
    for p, q, n in instances(4, 20):
        check_marginals(LAWS[name](q, n), p, q, frozenset())


@pytest.mark.parametrize("inner", [exact.iid, exact.sequential])
def test_marginals_with_a_fixed_set(inner):
    for p, q, n in instances(5, 20):
        if len(p) > n:
            fixed = frozenset(sorted(range(len(q)), key=lambda x: (-q[x], x))[:1])
            check_marginals(exact.top_then(q, fixed, partial(inner, n=n)), p, q, fixed)


def test_follow_or_rest_is_not_optimal_below_scale_one():
    p, q = fractions([0, 2, 2]), fractions([2, 1, 1])
    L, Q = exact.prefix_values(exact.iid(q, 2), p, [0, 1, 2])
    good, poor = exact.majorant_marginal(L, Q), exact.follow_or_rest_marginal(L, Q)
    assert (good, poor) == ([Fr(1, 4), Fr(3, 8), Fr(3, 8)], [Fr(1, 4), Fr(5, 16), Fr(7, 16)])
    assert [sum(min(Fr(3, 4) * a, b) for a, b in zip(p, r)) for r in (good, poor)] == [Fr(3, 4), Fr(11, 16)]


def test_the_interval_sweep_realises_every_base():
    rng = np.random.default_rng(6)
    for _, q, _ in instances(7, 60, largest=7):
        law, V = exact.iid(q, 2), len(q)
        r = mixed_base(rng, law, V)
        order = exact.ratio_order(r, q, range(V))
        q, r = [q[x] for x in order], [r[x] for x in order]
        pieces = exact.sweep_two(q, r)
        assert pieces[0][0] == 0
        assert pieces[-1][1] == 1
        assert all(a[1] == b[0] for a, b in pairwise(pieces))
        assert [sum(b - a for a, b, y in pieces if y == x) for x in range(V)] == q
        assert exact.tiling_marginal(q, pieces, 2) == r


def test_the_worked_example_of_the_coupling_page():
    q, p = fractions([2, 1, 1]), fractions([1, 1, 2])
    r = exact.majorant_marginal(*exact.prefix_values(exact.iid(q, 2), p, [0, 1, 2]))
    assert r == [Fr(9, 32), Fr(9, 32), Fr(7, 16)]
    edges = [Fr(0), Fr(1, 32), Fr(17, 32), Fr(3, 4), Fr(1)]
    assert exact.sweep_two(q, r) == list(zip(edges, edges[1:], [1, 0, 1, 2]))


@pytest.mark.parametrize("name", LAWS)
def test_the_nest_realises_every_base(name):
    rng, several = np.random.default_rng(8), 0
    for _, q, n in instances(9, 25):
        law, V = LAWS[name](q, n), len(q)
        r = mixed_base(rng, law, V)
        order = exact.ratio_order(r, q, range(V))
        rank = {x: k for k, x in enumerate(order)}
        law, r = {frozenset(rank[x] for x in s): m for s, m in law.items()}, [r[x] for x in order]
        segments, received = exact.nest(law, r)
        keys = [(c, -x) for c, x, _ in segments]
        assert received == r
        assert exact.priority_marginal(law, segments, V) == r
        assert len(segments) <= 2 * V - 1
        assert keys == sorted(set(keys))
        several += any(sum(c < x == t for c, x, _ in segments) > 1 for t in range(V))
    assert several  # blocks with several children came up


def test_the_worked_examples_of_the_nested_page():
    pairs = exact.sequential([Fr(1, 4)] * 4, 2)
    fifth, four = Fr(1, 5), Fr(4, 5)
    chain, _ = exact.nest(pairs, [Fr(k, 10) for k in (1, 2, 3, 4)])
    assert chain == [(0, 3, fifth), (0, 2, fifth), (0, 1, fifth), (0, 0, 1), (1, 1, four), (2, 2, four), (3, 3, four)]
    split, received = exact.nest(pairs, [Fr(k, 10) for k in (1, 1, 4, 4)])
    assert received == [Fr(k, 10) for k in (1, 1, 4, 4)]
    assert [s for s in split if s[1] == 3] == [(0, 3, Fr(1, 10)), (2, 3, Fr(3, 10)), (3, 3, Fr(3, 5))]
    assert len(split) == 7


def test_recursive_rejection_is_lossless_and_one_dimensional():
    for p, q, n in instances(10, 25, largest=4):

        def Z(level, p=p, q=q):
            return sum(exact.positive_part(a - level * b) for a, b in zip(p, q))

        law, rate = exact.rejection_sampling(p, q, n, replacement=True)
        level = Fr(0)
        for _ in range(n):
            level += Z(level)
        assert (law, rate) == (p, 1 - Z(level))
        law, rate = exact.rejection_sampling(p, q, n, replacement=False)
        assert law == p
        if n == 2 and Z(1):
            lost = sum(exact.positive_part(b - a) * Z(1 + Z(1) / (1 - b)) / Z(1) for a, b in zip(p, q))
            assert rate == 1 - lost


def test_the_worked_example_of_rejection_sampling():
    p, q = fractions([1, 1, 2]), fractions([2, 1, 1])
    assert exact.rejection_sampling(p, q, 2, replacement=True)[1] == Fr(13, 16)
    assert exact.rejection_sampling(p, q, 2, replacement=False)[1] == Fr(7, 8)
    assert exact.optimal_rate(exact.iid(q, 2), p) == Fr(15, 16)
    assert exact.optimal_rate(exact.sequential(q, 2), p) == 1


def random_tree(rng, kind, V=3):
    """Depth 2, different p and q at every node; the selection is the nest of the majorant."""
    tree = {}
    for depth in range(3):
        for s in product(range(V), repeat=depth):
            p, q = fractions(rng.integers(1, 6, V)), fractions(rng.integers(1, 6, V))
            if depth == 2:
                tree[s] = p
                continue
            fixed = frozenset()
            if kind == "greedy":
                fixed = frozenset({max(range(V), key=lambda x: (q[x], -x))})
                law = exact.top_then(q, fixed, partial(exact.iid, n=1))
            else:
                law = LAWS[kind](q, 2)
            order = exact.ratio_order(p, q, [x for x in range(V) if x not in fixed])
            L, Q = exact.prefix_values(law, p, order, fixed)
            selection = exact.select_by_nest(law, order, exact.majorant_marginal(L, Q), fixed)
            tree[s] = exact.Node(p, law, selection)
    return tree


def always_drafted(node):
    """The tokens that are always drafted and never selected."""
    return frozenset.intersection(*node.drafts) - {x for law in node.selection.values() for x in law}


def masses_by_theorem(tree, V):
    """(path rule, node by node): P(accepted node is s or below), by the recursions of the path page."""
    path, called, node = {(): Fr(1)}, {(): Fr(1)}, {(): Fr(1)}
    for s in [(), *((x,) for x in range(V))]:
        p, r, fixed = tree[s].p, tree[s].r, always_drafted(tree[s])
        for y in range(V):
            child = (*s, y)
            path[child] = path[s] * p[y] if y in fixed else min(called[s] * r[y], path[s] * p[y])
            called[child] = path[child] if y in fixed else called[s] * r[y]
            node[child] = node[s] * (p[y] if y in fixed else min(p[y], r[y]))
    return path, node


@pytest.mark.parametrize(
    ("kind", "resume"), [("iid", False), ("sequential", False), ("greedy", False), ("greedy", True)]
)
def test_the_path_rule_is_lossless(kind, resume):
    rng = np.random.default_rng(11)
    for _ in range(4):
        tree = random_tree(rng, kind)
        outcome = exact.path_rule(tree, (), Fr(1), resume)
        assert None not in outcome
        law = exact.text_law(tree, outcome, 3)
        for text in product(range(3), repeat=3):
            target = prod(getattr(tree[text[:i]], "p", tree[text[:i]])[text[i]] for i in range(3))
            assert law.get(text, 0) == target


@pytest.mark.parametrize("kind", ["iid", "sequential", "greedy"])
def test_the_path_rule_never_accepts_less_than_node_by_node(kind):
    rng, more = np.random.default_rng(12), 0
    for _ in range(15):
        tree = random_tree(rng, kind)
        outcome = exact.path_rule(tree, (), Fr(1), resume=True)
        if kind != "greedy":  # then a bonus is never a drafted child
            assert outcome == exact.path_rule(tree, (), Fr(1), resume=False)
        path, node = masses_by_theorem(tree, V=3)
        for s in path:
            assert path[s] == sum(m for (end, _), m in outcome.items() if end[: len(s)] == s)
            assert path[s] >= node[s]
        more += path != node
    assert more


def test_the_worked_example_of_the_path_page():
    half, p = [Fr(1, 2)] * 2, [Fr(3, 4), Fr(1, 4)]
    node = exact.Node(p, exact.iid(half, 1), {frozenset({x}): {x: Fr(1)} for x in range(2)})
    tree = {(): node, (0,): node, (1,): node, (0, 0): p, (0, 1): p, (1, 0): p, (1, 1): p}
    outcome = exact.path_rule(tree, (), Fr(1), resume=False)
    assert sum(len(s) * m for (s, _), m in outcome.items()) == Fr(22, 16)
    assert [sum(masses.values()) - 1 for masses in masses_by_theorem(tree, V=2)] == [Fr(22, 16), Fr(21, 16)]
