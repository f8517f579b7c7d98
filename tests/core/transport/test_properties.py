"""Properties that hold for every p, q and n, searched for counterexamples by hypothesis."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdsd_core.schemes import (
    DistinctConditioned,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    greedy,
)
from mdsd_core.schemes.without_replacement.race import SMALL, race_steps
from mdsd_core.transport.oracle.linear_programme import draft_sets
from mdsd_core.transport.subset import optimal_acceptance
from tests.instances import COMPILED
from tests.laws import all_schemes, conditioned_sets, exact_steps, relative_error, sequential_sets
from tests.transport_oracles import subset_masses

EXAMPLES = settings(max_examples=60 if COMPILED else 8, deadline=None, derandomize=True)

#: Weights that tie, vanish and spread over many orders of magnitude.
weight = st.one_of(
    st.integers(0, 4).map(float),
    st.floats(1e-3, 1.0),
    st.integers(-300, 0).map(lambda exponent: 10.0**exponent),
)


@st.composite
def distributions(draw, V, positive=False):
    w = np.array(draw(st.lists(weight, min_size=V, max_size=V)))
    if positive:
        w = np.where(w > 0, w, 1e-3)
    if not w.any():
        w[draw(st.integers(0, V - 1))] = 1.0
    return w / w.sum()


@st.composite
def pairs(draw, least=1, most=6, positive=False):
    V = draw(st.integers(least, most))
    return draw(distributions(V, positive)), draw(distributions(V, positive))


drafts = st.integers(1, 4)


@EXAMPLES
@given(pairs(2), drafts)
def test_every_scheme_is_convex_off_its_fixed_set(pair, n):
    """``(Q(H+x) - Q(H)) / w_x <= (Q(H+x+y) - Q(H+x)) / w_y``, H any set that holds T, x and y outside it."""
    _, q = pair
    V = q.size
    for scheme in all_schemes(n):
        Q = subset_masses(draft_sets(*scheme.enumerate(q)), V)
        w = scheme.weights(q)
        T = sum(1 << int(x) for x in scheme.fixed_set(q))
        for H in range(1 << V):
            if H & T != T:
                continue
            outside = [x for x in range(V) if not H >> x & 1 and w[x] > 0]
            for x in outside:
                for y in outside:
                    if x != y:
                        first = (Q[H | 1 << x] - Q[H]) * w[y]
                        second = (Q[H | 1 << x | 1 << y] - Q[H | 1 << x]) * w[x]
                        assert first <= second + 1e-14, (scheme, H, x, y)


def test_convexity_fails_on_the_fixed_set():
    """The check bites: for greedy drafts, adding T = {0} to {1, 2} gains more than adding 3 after it."""
    q = np.array([0.28, 0.24, 0.24, 0.24])
    Q = subset_masses(draft_sets(*greedy(2).enumerate(q)), 4)
    assert (Q[0b0111] - Q[0b0110]) / q[0] == pytest.approx(0.48 / 0.72 / 0.28)
    assert (Q[0b1111] - Q[0b0111]) / q[3] == pytest.approx(0.24 / 0.72 / 0.24)


@EXAMPLES
@given(pairs(), drafts)
def test_drafts_without_replacement_are_never_worse_than_with(pair, n):
    """Drafts without replacement are never worse than drafts with replacement."""
    p, q = pair
    without = optimal_acceptance(p, q, WithoutReplacement(n)).rate
    assert without >= optimal_acceptance(p, q, WithReplacement(n)).rate - 1e-14


def test_conditioned_drafts_can_be_worse_than_with_replacement():
    p, q = np.array([1.0, 0, 0, 0, 0, 0]), np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    assert optimal_acceptance(p, q, WithReplacement(2)).rate == pytest.approx(0.75)
    assert optimal_acceptance(p, q, DistinctConditioned(2)).rate == pytest.approx(5 / 7)


@EXAMPLES
@given(pairs(), drafts)
def test_more_drafts_are_never_worse(pair, n):
    p, q = pair
    for family in (
        WithReplacement,
        WithoutReplacement,
        DistinctConditioned,
        lambda k: TopThenSampled(1, k),
        lambda k: TopThenSampled(1, k, True),
    ):
        fewer, more = (optimal_acceptance(p, q, family(k)).rate for k in (n, n + 1))
        assert more >= fewer - 1e-14, family(n)


@EXAMPLES
@given(pairs(positive=True), drafts, st.randoms(use_true_random=False))
def test_names_of_the_tokens_do_not_matter(pair, n, random):
    p, q = pair
    if np.unique(q).size < q.size:
        q = q * (1 + 1e-3 * np.arange(q.size))  # ties in q are broken by id
        q = q / q.sum()
    if np.unique(q).size < q.size:
        return
    places = list(range(q.size))
    random.shuffle(places)
    for scheme in all_schemes(n):
        ours, theirs = optimal_acceptance(p, q, scheme), optimal_acceptance(p[places], q[places], scheme)
        assert abs(ours.rate - theirs.rate) < 1e-14, scheme


@EXAMPLES
@given(pairs(), drafts)
def test_equal_distributions_are_always_accepted(pair, n):
    _, q = pair
    for scheme in (
        WithReplacement(n),
        WithoutReplacement(n),
        DistinctConditioned(n),
        greedy(n),
        TopThenSampled(1, n),
        TopThenSampled(1, n, True),
    ):
        assert optimal_acceptance(q, q, scheme).rejection < 1e-15, scheme


@EXAMPLES
@given(pairs())
def test_one_draft_is_single_draft_speculative_sampling(pair):
    p, q = pair
    for scheme in (WithReplacement(1), WithoutReplacement(1), DistinctConditioned(1), greedy(1)):
        assert abs(optimal_acceptance(p, q, scheme).rate - np.minimum(p, q).sum()) < 1e-15, scheme


@EXAMPLES
@given(pairs(), drafts)
def test_no_law_beats_the_inclusion_probabilities(pair, n):
    """``alpha* <= sum_x min(p_x, P(x in S))``."""
    p, q = pair
    for scheme in all_schemes(n):
        sets = draft_sets(*scheme.enumerate(q))
        drafted = sets.members >= 0
        weight = np.broadcast_to(sets.probability[:, None], sets.members.shape)[drafted]
        included = np.bincount(sets.members[drafted], weight, q.size)
        assert optimal_acceptance(p, q, scheme).rate <= np.minimum(p, included).sum() + 1e-14, scheme


@EXAMPLES
@given(st.lists(weight, min_size=2, max_size=6), st.integers(1, 5))
def test_steps_equal_rational_arithmetic(weights, n):
    w = np.array(weights)
    if not w.any():
        return
    sequential = exact_steps(sequential_sets(tuple(weights), n), w.size)
    assert relative_error(WithoutReplacement(n).prefix_steps(w), sequential) < 1e-12
    conditioned = exact_steps(conditioned_sets(w, n), w.size)
    assert relative_error(DistinctConditioned(n).prefix_steps(w), conditioned) < 1e-13


@settings(max_examples=12 if COMPILED else 1, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 4, 8]), st.floats(0.0, 40.0), st.floats(0.0, 5.0))
def test_rate_from_runs_equals_the_whole_curve(seed, n, spread, noise):
    """Any spread of q, any relation of p to q, at a size where runs of tokens are taken together."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=2 * SMALL) * spread / 4
    d = z + noise * rng.normal(size=z.size)
    p, q = (np.exp(x - x.max()) for x in (z, d))
    best = optimal_acceptance(p / p.sum(), q / q.sum(), WithoutReplacement(n))
    assert abs(best.curve.max() - best.rejection) < 1e-12
    w = best.q[best.order]
    slope = race_steps(w, n) / w
    assert (slope[1:] >= slope[:-1] * (1 - 1e-9)).all()
