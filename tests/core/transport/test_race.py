"""Q without replacement by the race integral: against rational arithmetic, enumeration and a plain recursion."""

import numpy as np
import pytest

from mdsd_core.schemes import WithoutReplacement
from mdsd_core.schemes.without_replacement._race_kernels import DUST, walk
from mdsd_core.schemes.without_replacement.race import SMALL, race_runs, race_steps
from mdsd_core.schemes.without_replacement.race_nodes import log_step, race_nodes
from mdsd_core.transport.order import ratio_order
from tests.instances import adversarial_pairs, dirichlet_pair, random_pairs, softmax_pair
from tests.laws import (
    exact_steps,
    race_steps_reference,
    relative_error,
    sequential_sets,
    sequential_steps_by_sets,
    skewed_weights,
)


def hard_weights():
    rng = np.random.default_rng(5)
    for _, q in adversarial_pairs().values():
        yield q
    for decades in (3, 20, 100, 300, 320):
        for V in (4, 6, 7):
            yield skewed_weights(rng, V, decades)
    yield np.array([1 - 1e-12, 3e-13, 5e-13, 2e-13])
    yield np.array([1e-300, 1.0, 1e-300, 1e-310, 5e-324])
    yield np.array([5e-324, 1e-323, 2e-323, 5e-324])  # nothing but subnormals
    yield np.array([0.3, 0.0, 1e-20, 0.0, 0.7, 1e-20])
    yield np.full(7, 1e-3)
    yield np.array([1.0, 1.0, 1.0, 1e-153, 1e-170])  # times up to 1e155, whose square overflows


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_every_step_equals_rational_arithmetic_relative_to_itself(n):
    for w in hard_weights():
        exact = exact_steps(sequential_sets(tuple(w.tolist()), n), w.size)
        assert relative_error(race_steps(w, n), exact) < 5e-13, w
        assert relative_error(race_steps_reference(w, n), exact) < 5e-13, w


@pytest.mark.parametrize("n", [4, 8, 12, 16])
@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0, 100.0, 250.0])
def test_many_drafts_equal_a_recursion_over_all_sets(n, spread):
    """Eighteen tokens with log q of standard deviation `spread`: at 100, a temperature of 0.03 for logits of 3."""
    rng = np.random.default_rng(int(spread) + n)
    z = spread * rng.normal(size=18)
    q = np.maximum(np.exp(z - z.max()), 1e-307)
    np.testing.assert_allclose(race_steps(q, n), sequential_steps_by_sets(q, n), rtol=1e-12, atol=1e-250)


@pytest.mark.parametrize("n", [3, 4, 8, 16])
@pytest.mark.parametrize("temperature", [1.5, 0.7, 0.2, 0.05])
def test_kernels_equal_the_plain_recursion(n, temperature):
    rng = np.random.default_rng(n)
    p, q = softmax_pair(rng, 1500, temperature=temperature)
    w = ratio_order(p, q).w
    steps, reference = race_steps(w, n), race_steps_reference(w, n)
    # relative to each step, but for tokens of next to no probability that share one slope with their neighbours
    assert (np.abs(steps - reference) <= 1e-12 * reference + 1e-13 * w).all()
    # what is left of a prefix is as accurate as the prefix
    left, left_reference = np.cumsum(steps[::-1])[::-1], np.cumsum(reference[::-1])[::-1]
    np.testing.assert_allclose(left, left_reference, rtol=1e-11)
    assert abs(steps.sum() - 1) < 1e-12


def test_many_tiny_weights_add_up():
    """Tokens that share a slope change it in the end: 20,000 of them between heavy ones, each of ``q t`` 9e-16."""
    heavy = np.array([1.0, 0.5, 0.3, 0.2])
    t_last = race_nodes(np.sort(heavy)[-3:], 0.2)[0][-1]
    w = np.concatenate((heavy[:1], np.full(20_000, 9e-16 / t_last), heavy[1:]))
    steps, reference = race_steps(w, 3), race_steps_reference(w, 3)
    assert (np.abs(steps - reference) <= 1e-12 * reference + 1.1e-14 * w * t_last).all()
    # the slope is that of the specks before, from nothing to 20,000 of them
    assert reference[15_000] > 1e3 * reference[10] > 0
    assert steps[15_000] > 50 * steps[200] > 0


@pytest.mark.parametrize("n", [3, 4, 8, 16])
@pytest.mark.parametrize("error", [1e-4, 1e-8, 1e-11])
def test_error_bound_holds(n, error):
    rng = np.random.default_rng(1)
    for q in (softmax_pair(rng, 300, temperature=0.1)[1], softmax_pair(rng, 300)[1], np.full(300, 1 / 300)):
        tight = race_steps(q, n, 1e-14)
        assert (np.abs(race_steps(q, n, error) - tight) <= error * tight + 1e-13 * q).all()


def test_coarser_nodes_do_make_errors():
    """The bound is not so generous that any number of nodes would pass."""
    q = softmax_pair(np.random.default_rng(1), 300)[1]
    n, tight = 4, race_steps(q, 4, 1e-14)
    t, dt = race_nodes(np.sort(q)[-n:], float(np.sort(q)[:-n].sum()), 1e-4)
    coarse, steps = slice(None, None, 2), np.empty(q.size)
    walk(q, n, t[coarse], 2 * dt[coarse], steps)
    assert (np.abs(steps - tight) > 1e-4 * tight).any()
    assert log_step(4, 1e-14) < log_step(4, 1e-4) < 2 * log_step(4, 1e-8)


def test_two_drafts_in_closed_form_equal_the_integral():
    rng = np.random.default_rng(2)
    for temperature in (1.0, 0.3):
        q = softmax_pair(rng, 400, temperature=temperature)[1]
        t, dt = race_nodes(np.sort(q)[-2:], float(np.sort(q)[:-2].sum()))
        steps = np.empty(q.size)
        walk(q, 2, t, dt, steps)
        np.testing.assert_allclose(race_steps(q, 2), steps, rtol=1e-12, atol=1e-15)


def test_integral_equals_enumeration():
    for _, q in random_pairs(3, 250) + list(adversarial_pairs().values()):
        for n in (2, 3, 4):
            tuples, probability = WithoutReplacement(n).enumerate(q)
            steps = np.zeros(q.size)
            np.add.at(steps, tuples.max(axis=1), probability)
            assert np.abs(race_steps(q, n) - steps).max() < 1e-12


def test_dust_and_heavy_tokens_are_both_exercised():
    q = softmax_pair(np.random.default_rng(0), 1500)[1]
    t, _ = race_nodes(np.sort(q)[-4:], float(np.sort(q)[:-4].sum()))
    assert 4 < (q * t[-1] > DUST).sum() < q.size / 2


def shapes():
    """Pairs large enough for runs: smooth, coarse, tied, close, disjoint, many crossings of slope and ratio."""
    rng = np.random.default_rng(7)
    V = 2 * SMALL
    for temperature in (1.5, 1.0, 0.3, 0.1, 0.05):
        yield softmax_pair(rng, V, temperature=temperature)
    yield dirichlet_pair(rng, V)
    p, q = softmax_pair(rng, V)
    yield p, p * (1 + 1e-3 * rng.normal(size=V))
    yield q.copy(), q
    yield np.round(p, 4) + 1e-6, np.round(q, 4) + 1e-6
    yield np.where(np.arange(V) % 2 == 0, p, 0.0), q
    # the ratio follows the slope of Q itself, bent up and down, so that Q - L has many nearly equal maxima
    q = np.full(V, 1.0 / V)
    slope = race_steps(q, 4) * V
    yield np.maximum.accumulate(slope * (1 + 0.02 * np.sin(np.arange(V) / 40))), q


@pytest.mark.parametrize("n", [2, 3, 4, 8, 16])
def test_runs_find_the_maximum_of_the_whole_walk(n):
    for p, q in shapes():
        order = ratio_order(p / p.sum(), q / q.sum())
        full = np.cumsum(race_steps(order.w, n))
        ends, steps = race_runs(order.w, order.p, n)
        if n == 2:
            assert ends is None
            ends = np.arange(1, order.w.size + 1)
        assert ends[-1] == order.w.size
        assert (np.diff(ends, prepend=0) > 0).all()
        mass = np.cumsum(steps)
        np.testing.assert_allclose(mass, full[ends - 1], rtol=0, atol=3e-13)
        target = np.cumsum(order.p)
        assert abs((mass - target[ends - 1]).max() - (full - target).max()) < 3e-13


def test_runs_leave_most_tokens_unresolved():
    p, q = softmax_pair(np.random.default_rng(0), 20_000)
    order = ratio_order(p, q)
    assert race_runs(order.w, order.p, 4)[0].size < 3000


def test_zero_weights_take_no_part():
    w = softmax_pair(np.random.default_rng(3), 40)[1]
    holes = np.zeros(80)
    holes[1::2] = w
    for n in (1, 2, 3, 5):
        steps = race_steps(holes, n)
        assert not steps[::2].any()
        np.testing.assert_array_equal(steps[1::2], race_steps(w, n))


def test_all_is_drawn_where_the_support_is_small():
    for n in (3, 4, 9):
        assert race_steps(np.array([0.2, 0.0, 0.5, 0.3, 0.0]), n).tolist() == [0, 0, 0, 1, 0]
    assert race_steps(np.zeros(3), 2).tolist() == [0, 0, 0]
    assert race_steps(np.empty(0), 2).size == 0


def test_steps_do_not_depend_on_the_unit_of_the_weights():
    w = softmax_pair(np.random.default_rng(4), 50)[1]
    for n in (2, 3, 6):
        np.testing.assert_allclose(race_steps(w * 1e-200, n), race_steps(w, n), rtol=1e-13)
        np.testing.assert_array_equal(race_steps(w * 8.0, n), race_steps(w, n))


@pytest.mark.parametrize("error", [0.0, 1e-15, 0.1, np.nan])
def test_impossible_error_is_refused(error):
    with pytest.raises(ValueError, match="error must be in"):
        race_steps(np.full(5, 0.2), 3, error)
