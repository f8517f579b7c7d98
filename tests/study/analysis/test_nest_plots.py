"""The picture and the shape of a nest, from labels that other code made; the gap that is closed; what a plan costs."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from mdsd_core.schemes import DistinctConditioned, TopThenSampled, WithoutReplacement
from mdsd_core.transport.marginal import optimal_marginal
from mdsd_core.transport.nest import nested_plan
from mdsd_study.analysis.nest_plots import closed_share, draw_nest, measure_plan, shape_of, sums_in_order
from tests.instances import random_pair, softmax_pair, steep_pairs

SCHEMES = {
    "sequential": WithoutReplacement(3),
    "conditioned": DistinctConditioned(2),
    "fixed": TopThenSampled(1, 2),
    "one": WithoutReplacement(1),
}


def pairs_of_tokens(count=40):
    rng = np.random.default_rng(3)
    yield from (random_pair(rng, int(rng.integers(1, 8))) for _ in range(count))
    yield from steep_pairs(4, count // 2)
    yield softmax_pair(rng, 400)


@pytest.mark.parametrize("name", SCHEMES)
def test_segments_are_those_of_the_plan_in_rank_order(name):
    """Token by token what `PriorityPlan.segments` says; tokens left out are those with the lowest keys."""
    for p, q in pairs_of_tokens():
        made = nested_plan(p, q, SCHEMES[name], 1e-9)
        found = made.segments()
        w = SCHEMES[name].weights(q)[found.tokens]
        ratio = p[found.tokens] / w
        assert (np.diff(ratio) >= -1e-12 * ratio[1:]).all()
        assert (np.diff(found.rank) >= 0).all()
        assert ((found.share > 0) & (found.share <= 1)).all()
        assert (found.base <= found.rank).all()
        for rank, token in enumerate(found.tokens):
            keys, share = made.plan.segments(token)
            own = found.rank == rank
            assert np.allclose(found.share[own], share, atol=1e-15)
            assert (np.diff(found.base[own]) > 0).all()
            assert own.sum() == keys.size
        last = np.setdiff1d(np.flatnonzero(made.plan.row >= 0), found.tokens)
        assert all(made.plan.segments(t)[0].tolist()[0] < 0 for t in last)


def crossing(segments):
    """Contacts, depth, tokens with several blocks and the most of them, by going through all segments and ranks."""
    m = segments.tokens.size
    arcs = [(b, x) for b, x in zip(segments.base.tolist(), segments.rank.tolist()) if b < x]
    contacts = tuple(k for k in range(m + 1) if not any(b < k <= x for b, x in arcs))
    depth = max((len({x for b, x in arcs if b <= k < x}) for k in range(m)), default=0)
    blocks = [sum(y == x for _, y in arcs) for x in range(m)]
    return contacts, depth, sum(count > 1 for count in blocks), max(blocks, default=0)


@pytest.mark.parametrize("name", SCHEMES)
def test_shape_by_looking_at_all_arcs(name):
    several = 0
    for p, q in pairs_of_tokens():
        made = nested_plan(p, q, SCHEMES[name], 1e-12)
        shape = shape_of(made.segments())
        assert (shape.contacts, shape.depth, shape.several, shape.blocks) == crossing(made.segments())
        assert shape.segments == made.segments().share.size <= 2 * max(shape.tokens, 1)
        assert shape.widest == max(np.diff(shape.contacts), default=0)
        several += shape.several
    assert (several > 0) == (name != "one")


def test_contacts_of_the_marginal_are_contacts_of_the_nest():
    """Where r has only what must be won, no label may reach over."""
    found = 0
    for p, q in steep_pairs(9, 30):
        made = nested_plan(p, q, WithoutReplacement(2), 1e-12)
        wanted = optimal_marginal(p, q, WithoutReplacement(2)).contacts
        assert set(wanted.tolist()) <= set(shape_of(made.segments()).contacts)
        found += wanted.size > 2
    assert found > 5


def test_arcs_stand_on_their_block_and_their_token():
    p, q = np.array([0.1, 0.1, 0.4, 0.4]), np.full(4, 0.25)
    segments = nested_plan(p, q, WithoutReplacement(2), 1e-12).segments()
    edges = sums_in_order(q, segments)
    drawn = draw_nest(Figure().subplots(), segments, edges)
    feet = [(round(line[0, 0], 9), round(line[-1, 0], 9)) for line in drawn.get_segments()]
    assert feet == [(0.0, 0.375), (0.0, 0.875), (0.5, 0.875)]
    assert np.allclose(drawn.get_array(), [0.5, 0.1, 0.3])
    assert all(line[:, 1].max() <= 1.0 for line in drawn.get_segments())


def test_a_large_nest_is_drawn_coarsely():
    p, q = softmax_pair(np.random.default_rng(0), 2000)
    segments = nested_plan(p, q, WithoutReplacement(4), 1e-7).segments()
    edges = np.linspace(0.0, 1.0, segments.tokens.size + 1)
    lines = draw_nest(Figure().subplots(), segments, edges, finest=1 / 50).get_segments()
    assert 5 < len(lines) <= 50 * 51 / 2
    feet = {(round(50 * line[0, 0]), round(50 * line[-1, 0])) for line in lines}
    assert len(feet) == len(lines)
    assert all(line[-1, 0] - line[0, 0] >= 1 / 50 - 1e-12 for line in lines)
    with pytest.raises(ValueError, match="edges must be"):
        draw_nest(Figure().subplots(), segments, edges[:-1])
    with pytest.raises(ValueError, match="edges must be"):
        draw_nest(Figure().subplots(), segments, edges[::-1])


def test_share_of_the_gap():
    rng = np.random.default_rng(0)
    start = rng.uniform(0.4, 0.6, 24)
    bound = start + rng.uniform(0.01, 0.1, 24)
    prompts = [str(i // 2) for i in range(24)]
    for share in (0.0, 0.5, 1.0):
        found = closed_share(start + share * (bound - start), start, bound, prompts)
        assert (found.low, found.mean, found.high) == pytest.approx((share,) * 3, abs=1e-12)
    bound[:2] = start[:2]  # one prompt has no gap
    found = closed_share(bound, start, bound, prompts)
    assert found.mean == pytest.approx(1.0)
    assert np.isnan(found.low)
    assert np.isnan(closed_share(start, start, start, prompts).mean)


def test_the_cost_of_a_plan_comes_with_what_it_attains():
    p, q = softmax_pair(np.random.default_rng(1), 500)
    plan = nested_plan(p, q, WithoutReplacement(3), 1e-4)
    cost = measure_plan(p, q, WithoutReplacement(3), 1e-4, repeats=2)
    assert (cost.acceptance, cost.bound, cost.loss, cost.work) == (plan.acceptance, plan.bound, plan.loss, plan.work)
    assert cost.seconds > 0
    assert cost.argsorts == cost.seconds / cost.argsort
    with pytest.raises(ValueError, match="repeats must be an integer >= 1, got 0"):
        measure_plan(p, q, WithoutReplacement(3), repeats=0)
