"""The oracles: known answers, trivial inputs that never reach a solver, guards, solutions that are inspected."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from mdsd_core.schemes import Deterministic, WithoutReplacement, WithReplacement
from mdsd_core.transport.oracle import linear_programme
from mdsd_core.transport.oracle.linear_programme import OracleError, draft_sets, solve_lp
from tests import transport_oracles
from tests.instances import random_pairs, softmax_pair
from tests.transport_oracles import (
    flow_rate,
    lp_rate,
    max_flow,
    search_rate,
    search_subsets,
    solve_flow,
    subset_masses,
)


def test_flow_of_the_lp_is_feasible_and_optimal():
    for p, q in random_pairs(2, 40):
        sets = draft_sets(*WithoutReplacement(3).enumerate(q))
        solution = solve_lp(p, sets)
        drafted = sets.members >= 0
        assert (solution.flow >= 0).all()
        assert not solution.flow[~drafted].any()
        assert (solution.flow.sum(axis=1) <= sets.probability * (1 + 1e-15)).all()
        column = np.bincount(sets.members[drafted], solution.flow[drafted], p.size)
        assert (column <= p * (1 + 1e-15)).all()
        assert abs(solution.flow.sum() - solution.rate) < 1e-15
        assert solution.upper - solution.rate < 1e-12


def test_tiny_probabilities_count():
    """Masses far below the solver's tolerances are transported all the same."""
    p, q = np.array([1 - 3e-12, 1e-12, 2e-12]), np.array([1 - 5e-12, 4e-12, 1e-12])
    sets = draft_sets(*WithReplacement(2).enumerate(q))
    exact = float(solve_flow(p, sets))
    assert abs(solve_lp(p, sets).rate - exact) < 1e-14


def test_independent_drafts_of_different_drafters():
    """A law that is no scheme: prod_j q_j(H). The oracles need its tuples only."""
    rng = np.random.default_rng(0)
    p, a, b = rng.dirichlet(np.ones((3, 4)).T[0].repeat(4).reshape(3, 4)[0], 3)
    tuples = np.array([[x, y] for x in range(4) for y in range(4)])
    sets = draft_sets(tuples, np.outer(a, b).ravel())
    masses = subset_masses(sets, 4)
    for index in range(16):
        inside = np.array([index >> x & 1 for x in range(4)], dtype=bool)
        assert abs(masses[index] - a[inside].sum() * b[inside].sum()) < 1e-15
    assert abs(solve_lp(p, sets).rate - search_subsets(p, sets)[0]) < 1e-12


def test_subset_of_the_search_is_a_smallest_one():
    sets = draft_sets([[0]], [1.0])
    rate, subset = search_subsets([0.25, 0.0, 0.75], sets)
    assert rate == 0.25
    assert subset.tolist() == [0]
    assert search_subsets([1.0, 0.0], sets)[1].tolist() == []


@pytest.mark.parametrize(
    ("p", "q", "scheme", "rate"),
    [
        ([1.0], [1.0], WithReplacement(3), 1.0),
        ([0.3, 0.7], [0.6, 0.4], WithReplacement(1), 0.7),
        ([0.5, 0.3, 0.2], [0.5, 0.3, 0.2], WithReplacement(2), 1.0),
        ([0.5, 0.3, 0.2], [0.5, 0.3, 0.2], WithoutReplacement(2), 1.0),
        ([0.3, 0.7], [1.0, 0.0], WithReplacement(2), 0.3),
        ([0.3, 0.7], [0.6, 0.4], Deterministic(1), 0.3),
        ([0.0, 1.0], [1.0, 0.0], WithoutReplacement(1), 0.0),
    ],
)
def test_trivial_problems_never_reach_a_solver(monkeypatch, p, q, scheme, rate):
    monkeypatch.setattr(linear_programme, "linprog", None)
    assert abs(lp_rate(p, q, scheme) - rate) < 1e-15
    monkeypatch.undo()
    assert abs(flow_rate(p, q, scheme) - rate) < 1e-15
    assert abs(search_rate(p, q, scheme) - rate) < 1e-15


def test_anything_but_an_optimum_raises(monkeypatch):
    monkeypatch.setattr(
        linear_programme, "linprog", lambda *a, **k: SimpleNamespace(status=4, message="numerical trouble")
    )
    with pytest.raises(OracleError, match="status 4, numerical trouble"):
        lp_rate([0.3, 0.7], [0.6, 0.4], WithReplacement(2))


@pytest.mark.parametrize("spoil", ["plan", "prices"])
def test_a_wrong_solution_called_optimal_raises(monkeypatch, spoil):
    real = linear_programme.linprog

    def broken(*args, **options):
        result = real(*args, **options)
        if spoil == "plan":
            result.x = result.x * 0.9
        else:
            result.ineqlin.marginals = result.ineqlin.marginals * 0.9
        return result

    monkeypatch.setattr(linear_programme, "linprog", broken)
    with pytest.raises(OracleError, match="only prove"):
        lp_rate([0.3, 0.7], [0.6, 0.4], WithReplacement(2))


def test_an_infeasible_plan_is_cut_down(monkeypatch):
    """A plan that ships too much is no proof of a higher rate."""
    real = linear_programme.linprog

    def generous(*args, **options):
        result = real(*args, **options)
        result.x = result.x * 2 + 1.0
        return result

    p, q = np.array([0.3, 0.7]), np.array([0.6, 0.4])
    exact = lp_rate(p, q, WithReplacement(2))
    monkeypatch.setattr(linear_programme, "linprog", generous)
    monkeypatch.setattr(linear_programme, "LP_GAP", 1.0)
    assert lp_rate(p, q, WithReplacement(2)) <= exact


def test_guards_say_what_is_feasible(monkeypatch):
    monkeypatch.setattr(linear_programme, "LP_ARCS", 1000)
    monkeypatch.setattr(transport_oracles, "FLOW_ARCS", 500)
    p, q = softmax_pair(np.random.default_rng(0), 40)
    with pytest.raises(ValueError, match=r"the LP takes at most 1000 arcs, got 1560\. Feasible: about V=300 at n=2"):
        lp_rate(p, q, WithoutReplacement(2))
    with pytest.raises(ValueError, match=r"the exact flow takes at most 500 arcs, got 1560\. .* about V=100 at n=2"):
        flow_rate(p, q, WithoutReplacement(2))
    with pytest.raises(ValueError, match="the search over all subsets takes at most 22 tokens, got 40"):
        search_rate(p, q, WithoutReplacement(2))


def test_sizes_called_feasible_are():
    p, q = softmax_pair(np.random.default_rng(0), 100)
    flow = flow_rate(p, q, WithReplacement(2))
    assert abs(lp_rate(p, q, WithReplacement(2)) - flow) < 1e-12
    p, q = softmax_pair(np.random.default_rng(0), 14)
    assert abs(search_rate(p, q, WithReplacement(4)) - flow_rate(p, q, WithReplacement(4))) < 1e-12


def test_flow_of_small_networks():
    assert max_flow([], [1], []) == 0
    assert max_flow([5], [3], [[0]]) == 3
    assert max_flow([5, 5], [3, 3], [[0], [0]]) == 3
    # the first path must be undone: row 0 takes column 0, row 1 has no other
    assert max_flow([1, 1], [1, 1], [[0, 1], [0]]) == 2
    assert max_flow([10**400, 1], [10**400, 1], [[0, 1], [1]]) == 10**400 + 1


def test_flow_is_exact():
    sets = draft_sets([[0, 1], [1, 2]], [0.1, 0.2])
    assert solve_flow([0.7, 0.2, 0.1], sets) == Fraction(0.1) + Fraction(0.2)
    assert solve_flow([1.0, 0.0, 0.0], sets) == Fraction(0.1)
