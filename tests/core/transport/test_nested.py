"""The nested plan: exact laws by enumeration, rational arithmetic and an independent race integral; bounded work."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from mdsd_core.schemes import DistinctConditioned, TopThenSampled, WithoutReplacement, WithReplacement, odds
from mdsd_core.transport.nest import nested_plan
from mdsd_core.transport.oracle.linear_programme import draft_sets
from mdsd_core.transport.subset import optimal_acceptance
from tests.core.transport.checks import checked
from tests.core.transport.race_tree import race_marginal
from tests.instances import (
    COMPILED,
    adversarial_pairs,
    normalised,
    random_pair,
    softmax_pair,
    steep_pairs,
    total_variation,
)
from tests.laws import sequential_sets
from tests.transport_oracles import search_subsets

TOLERANCES = (1e-12, 1e-6, 1e-2)


def flat(q):
    """Weights of their own: the order of p/w differs from that of p/q."""
    return np.sqrt(q)


def small_instances():
    """Pairs and numbers of drafts: all adversarial pairs, and random ones with V up to 7, n up to 6."""
    for p, q in adversarial_pairs().values():
        for n in (1, 2, 3):
            yield p, q, n
    rng = np.random.default_rng(5)
    for i in range(450 if COMPILED else 30):
        V = int(rng.integers(2, 8))
        yield *random_pair(rng, V), 2 + i % 5
    for i, (p, q) in enumerate(steep_pairs(6, 60 if COMPILED else 12)):
        yield p, q, 2 + i % 4


def emitted(p, winner, r):
    """Law of the emitted token if the winner has the law `winner` and the rule goes by r."""
    accepted = winner * np.minimum(1, np.divide(p, r, out=np.ones_like(p), where=r > 0))
    residual = np.maximum(p - r, 0)
    rejected = max(1 - accepted.sum(), 0.0)
    return accepted + (rejected * residual / residual.sum() if residual.sum() > 0 else 0.0)


def check(p, q, scheme, optimum):
    """All that must hold of the plans at three tolerances."""
    for tolerance in TOLERANCES:
        found = nested_plan(p, q, scheme, tolerance)
        plan = checked(found.plan)
        fraction = np.concatenate([plan.segments(x)[1] for x in range(p.size)])
        assert (fraction >= 0).all()
        assert (fraction <= 1).all()
        assert plan.key.size <= 2 * p.size
        winner = plan.law_of_winner(scheme, q)
        assert total_variation(winner, plan.marginal) <= 1e-12
        assert total_variation(emitted(p, winner, plan.marginal), p) <= 1e-12
        off = np.ones(p.size, dtype=bool)
        off[scheme.fixed_set(q)] = False
        acceptance = p[~off].sum() + np.minimum(p, plan.marginal)[off].sum()
        assert found.acceptance == pytest.approx(acceptance, abs=1e-13)
        assert found.bound == pytest.approx(optimum, abs=1e-12)
        assert found.bound - found.acceptance == pytest.approx(found.loss, abs=1e-13)
        assert -1e-13 <= found.loss <= max(1e-10, 10 * tolerance)
        assert found.work.tolerance == tolerance
        assert not found.work.fell_back


@pytest.mark.parametrize("law", ["sequential", "conditioned"])
def test_enumeration_of_all_drafts_and_segments(law):
    """The plan is lossless at any tolerance, and optimal at the tightest: 579 instances a law."""
    count = 0
    for i, (p, q, n) in enumerate(small_instances()):
        scheme = WithoutReplacement(n) if law == "sequential" else DistinctConditioned(n, (None, odds, flat)[i % 3])
        check(p, q, scheme, search_subsets(p, draft_sets(*scheme.enumerate(q)))[0])
        count += 1
    assert count >= (500 if COMPILED else 100)


FEW = {
    "sequential": WithoutReplacement(3),
    "pairs": WithoutReplacement(2),
    "conditioned": DistinctConditioned(3),
    "fixed": TopThenSampled(1, 2),
}


@pytest.mark.parametrize("law", FEW)
def test_a_few_steep_instances(law):
    """Quick enough for `tests/mutations.py`: labels with several blocks, and at 1e-2 clipped ones."""
    scheme, repairs = FEW[law], 0
    for p, q in steep_pairs(7, 12):
        check(p, q, scheme, search_subsets(p, draft_sets(*scheme.enumerate(q)))[0])
        repairs += nested_plan(p, q, scheme, 1e-12).work.repairs
    assert repairs > 0


def test_fixed_sets_by_enumeration():
    for i, (p, q, n) in enumerate(small_instances()):
        if i % 3 == 0 or i < 69:
            scheme = TopThenSampled(1 + i % 2, n)
            check(p, q, scheme, search_subsets(p, draft_sets(*scheme.enumerate(q)))[0])


def conditioned_sets(w, n):
    """The conditioned law in rational arithmetic: {frozenset: Fraction}."""
    exact = [Fraction(x) for x in w]
    law = {frozenset(s): np.prod([exact[x] for x in s]) for s in combinations(np.flatnonzero(w).tolist(), n)}
    total = sum(law.values())
    return {s: mass / total for s, mass in law.items()}


def exact_marginal(plan, law):
    """The law of the winner, in rational arithmetic, of the segments as they are stored."""
    segments = {}
    for x in range(plan.row.size):
        own = slice(plan.start[plan.row[x]], plan.start[plan.row[x] + 1])
        steps = [Fraction(0), *map(Fraction, plan.cumulative[own])]
        segments[x] = [(key, b - a) for key, a, b in zip(plan.key[own], steps, steps[1:])]
    r = [Fraction(0)] * plan.row.size
    for drafts, mass in law.items():
        for x in drafts:
            for key, share in segments[x]:
                win = mass * share
                for y in drafts - {x}:
                    win *= sum((f for other, f in segments[y] if other < key), Fraction(0))
                r[x] += win
    return r


def test_marginal_in_rational_arithmetic():
    """Skewed weights over up to 15 decades: 50 instances of each law, every token relative to 1."""
    rng = np.random.default_rng(11)
    for i in range(50 if COMPILED else 8):
        V, n = int(rng.integers(4, 8)), 2 + i % 3
        q = normalised(10.0 ** -rng.uniform(0, 1 + i % 15, V))
        p = normalised(q * 10.0 ** rng.uniform(-2, 2, V))
        for scheme, law in (
            (WithoutReplacement(n), sequential_sets(tuple(q.tolist()), n)),
            (DistinctConditioned(n), conditioned_sets(q, n)),
        ):
            plan = nested_plan(p, q, scheme, 1e-12).plan
            error = max(abs(float(Fraction(a) - b)) for a, b in zip(plan.marginal, exact_marginal(plan, law)))
            assert error <= 2e-14


@pytest.mark.large
@pytest.mark.parametrize("n", [pytest.param(3, marks=pytest.mark.slow), 8])
def test_a_finer_quadrature_finds_the_same_marginal(n):
    """V = 1000: the race integral of the finished plan, on other nodes, by another algorithm."""
    p, q = softmax_pair(np.random.default_rng(n), 1000, noise=0.5)
    found = nested_plan(p, q, WithoutReplacement(n), 1e-9)
    assert found.work.repairs > 0
    assert np.abs(race_marginal(found.plan, q, n, 8) - found.plan.marginal).max() <= 1e-11
    assert abs(found.bound - optimal_acceptance(p, q, WithoutReplacement(n)).rate) <= 1e-11
    assert found.loss <= 1e-7


def waves(V, count, height, decay):
    """A target that goes up and down `count` times against the draft, in rank order of q."""
    x = np.arange(V) / V
    q = normalised(np.exp(-decay * x))
    return normalised(q * np.exp(height * np.sin(2 * np.pi * count * x) + 0.3 * np.cos(37 * x))), q


def stairs(V, levels, ratio):
    """A few values of p/q only: all tokens of a level are tied, and the levels are far apart."""
    rng = np.random.default_rng(levels)
    q = normalised(rng.dirichlet(np.full(V, 0.3)) + 1e-12)
    return normalised(q * ratio ** rng.integers(0, levels, V)), q


HARD = {
    "waves": waves(800, 5, 1.5, 6),
    "many waves": waves(800, 40, 0.5, 2),
    "steep waves": waves(600, 3, 6.0, 12),
    "stairs": stairs(700, 6, 3.0),
    "stairs of ulps": stairs(700, 50, 1.0 + 1e-9),
    "flat draft": (softmax_pair(np.random.default_rng(0), 900)[0], np.full(900, 1 / 900)),
    "flat target": (np.full(900, 1 / 900), softmax_pair(np.random.default_rng(1), 900)[1]),
    "cold": softmax_pair(np.random.default_rng(2), 900, temperature=0.05),
    "power law": (normalised(1.0 / np.arange(1, 1001) ** 1.1), normalised(1.0 / np.arange(1, 1001) ** 1.3)),
    "reversed": (normalised(1.0 / np.arange(1, 501)), normalised(1.0 / np.arange(500, 0, -1.0))),
}


@pytest.mark.large
@pytest.mark.parametrize("name", HARD)
def test_work_is_bounded(name):
    """Forty steps a token are enough at any tolerance: what the default limit allows for large V."""
    p, q = HARD[name]
    for n in (2, 4, 8, 16):
        for scheme in (WithoutReplacement(n), DistinctConditioned(n)):
            for tolerance in (1e-12, 1e-7, 1e-3):
                found = nested_plan(p, q, scheme, tolerance)
                work = found.work
                assert work.chain_steps + work.scan_steps <= 40 * p.size
                assert work.chain_steps <= 4 * p.size
                assert not work.fell_back
                assert found.loss <= max(1e-11, 10 * tolerance)


@pytest.mark.large
@pytest.mark.parametrize(("name", "n"), [("waves", 4), ("steep waves", 8), ("stairs", 8), ("many waves", 2)])
@pytest.mark.parametrize("law", [WithoutReplacement, DistinctConditioned])
def test_past_the_limit_the_plan_is_coarser_and_still_lossless(name, n, law):
    p, q = HARD[name]
    free = nested_plan(p, q, law(n), 1e-12)
    limit = (free.work.chain_steps + free.work.scan_steps) // 4
    tight = nested_plan(p, q, law(n), 1e-12, work_limit=limit)
    assert not free.work.fell_back
    assert tight.work.fell_back
    assert tight.work.tolerance > 1e-12
    assert tight.work.repairs < free.work.repairs
    assert free.loss < tight.loss <= 30 * tight.work.tolerance
    # one limit, a quarter of it for each of at most 13 tenfold tolerances, and what one search and one chain take
    assert tight.work.chain_steps + tight.work.scan_steps <= 5 * limit + 30 * p.size
    plan = checked(tight.plan)
    if law is WithoutReplacement:
        assert np.abs(race_marginal(plan, q, n, 6) - plan.marginal).max() <= 1e-11


@pytest.mark.parametrize("name", HARD)
@pytest.mark.slow
def test_hard_instances_against_another_integral(name):
    p, q = HARD[name]
    for n in (2, 3, 5):
        for tolerance in (1e-10, 1e-3):
            found = nested_plan(p, q, WithoutReplacement(n), tolerance)
            plan = checked(found.plan)
            assert np.abs(race_marginal(plan, q, n, 6) - plan.marginal).max() <= 1e-11
            assert found.loss <= 30 * found.work.tolerance


def test_bad_input_is_refused():
    p, q = normalised([1, 2, 3]), normalised([3, 2, 1])
    with pytest.raises(TypeError, match="without replacement"):
        nested_plan(p, q, WithReplacement(2))
    with pytest.raises(TypeError, match="without replacement"):
        nested_plan(p, q, TopThenSampled(1, 2, True))
    for tolerance in (0.0, -1e-9, 2.0, float("nan")):
        with pytest.raises(ValueError, match=r"tolerance must be in \[1e-14, 1\]"):
            nested_plan(p, q, WithoutReplacement(2), tolerance)
    with pytest.raises(ValueError, match="work_limit must be at least 1, got 0"):
        nested_plan(p, q, WithoutReplacement(2), work_limit=0)
    with pytest.raises(ValueError, match="p"):
        nested_plan([np.nan, 1.0, 0.0], q, WithoutReplacement(2))


def test_inputs_are_not_changed():
    p, q = softmax_pair(np.random.default_rng(0), 50)
    before = p.copy(), q.copy()
    for array in (p, q):
        array.flags.writeable = False
    nested_plan(p, q, WithoutReplacement(3))
    assert np.array_equal(before[0], p)
    assert np.array_equal(before[1], q)
