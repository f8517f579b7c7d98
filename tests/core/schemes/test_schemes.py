"""Laws of drafts: their Q against enumeration and rational arithmetic, their fixed sets, their checks."""

from itertools import permutations

import numpy as np
import pytest

from mdsd_core.schemes import (
    NO_DRAFT,
    Deterministic,
    DistinctConditioned,
    SpecHubPairs,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    greedy,
    odds,
    top_tokens,
)
from mdsd_core.transport.oracle.linear_programme import draft_sets
from tests.instances import adversarial_pairs, random_pairs
from tests.laws import all_schemes, conditioned_sets, exact_steps, relative_error, sequential_sets, skewed_weights
from tests.transport_oracles import subset_masses

DRAFT_LAWS = [q for _, q in random_pairs(11, 25)] + [q for _, q in adversarial_pairs().values()]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_set_function_is_that_of_the_enumerated_law(n):
    for q in DRAFT_LAWS:
        for scheme in all_schemes(n):
            tuples, probability = scheme.enumerate(q)
            assert abs(probability.sum() - 1) < 1e-14
            assert (probability > 0).all()
            exact = subset_masses(draft_sets(tuples, probability), q.size)
            for index in range(n, exact.size, 1 + exact.size // 8):
                subset = [x for x in range(q.size) if index >> x & 1]
                assert abs(scheme.set_mass(q, subset) - exact[index]) < 1e-13, (scheme, q, subset)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_enumeration_lists_possible_draws_once(n):
    for q in DRAFT_LAWS[::4]:
        for scheme in all_schemes(n):
            tuples, _ = scheme.enumerate(q)
            assert np.unique(tuples, axis=0).shape == tuples.shape
            for row in tuples[:: max(1, len(tuples) // 20)]:
                drawn = scheme.check_drafts(q, row)
                assert drawn.size == scheme.fixed_set(q).size + scheme.sampled_from(scheme.weights(q))
                assert set(scheme.fixed_set(q)) <= set(drawn.tolist())


def test_enumerated_probabilities_equal_rational_arithmetic():
    rng = np.random.default_rng(0)
    for decades in (1, 30, 250):
        q = skewed_weights(rng, 5, decades)
        q = q / q.sum()
        for scheme, law in (
            (WithoutReplacement(3), sequential_sets(tuple(q.tolist()), 3)),
            (DistinctConditioned(3), conditioned_sets(q, 3)),
        ):
            sets = draft_sets(*scheme.enumerate(q))
            for members, mass in zip(sets.members, sets.probability):
                assert relative_error([mass], [law[frozenset(members.tolist())]]) < 1e-13


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_steps_of_the_conditioned_law_equal_rational_arithmetic(n):
    rng = np.random.default_rng(n)
    for V in (5, 6, 7):
        for decades in (0.1, 5, 60, 300, 320):
            w = skewed_weights(rng, V, decades)
            exact = exact_steps(conditioned_sets(w, n), V)
            assert relative_error(DistinctConditioned(n).prefix_steps(w), exact) < 1e-13, w


@pytest.mark.large
def test_conditioned_law_of_a_large_vocabulary_neither_overflows_nor_loses_mass():
    rng = np.random.default_rng(0)
    for w in (np.full(200_000, 5e-6), 10.0 ** -rng.uniform(0, 300, 50_000), np.exp(-np.arange(30_000.0) / 50)):
        for n in (2, 16, 60):
            steps = DistinctConditioned(n).prefix_steps(w)
            assert np.isfinite(steps).all()
            assert abs(steps.sum() - 1) < 1e-12


def test_steps_of_independent_drafts_equal_rational_arithmetic():
    from fractions import Fraction

    w = skewed_weights(np.random.default_rng(0), 7, 30)
    exact = [Fraction(x) for x in w]
    prefix = [sum(exact[: k + 1]) / sum(exact) for k in range(7)]
    for n in (1, 2, 5):
        steps = [t**n - (s**n) for t, s in zip(prefix, [Fraction(0), *prefix[:-1]])]
        assert relative_error(WithReplacement(n).prefix_steps(w), steps) < 1e-14


def test_many_top_tokens_are_found_as_a_few_are():
    """Beyond 16 tokens by partition, up to 16 in one pass, over blocks of 512."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        q = rng.integers(0, 12, 40) / 100.0
        for m in (15, 16, 17, 18, 39, 40):
            expected = [x for x in np.lexsort((np.arange(40), -q)).tolist() if q[x] > 0][:m]
            assert top_tokens(q, m).tolist() == expected
    for V in (511, 512, 513, 1024, 1500):
        q = rng.integers(0, 400, V) / 1000.0
        order = np.lexsort((np.arange(V), -q)).tolist()
        for m in (1, 2, 5, 16, 17):
            assert top_tokens(q, m).tolist() == order[:m]


def test_top_tokens_break_ties_by_lowest_id():
    assert top_tokens(np.array([0.1, 0.3, 0.3, 0.3]), 2).tolist() == [1, 2]
    assert top_tokens(np.array([0.3, 0.1, 0.3, 0.3]), 3).tolist() == [0, 2, 3]
    assert top_tokens(np.array([0.25, 0.25, 0.5]), 2).tolist() == [2, 0]
    assert top_tokens(np.array([0.5, 0.0, 0.5]), 3).tolist() == [0, 2]
    assert top_tokens(np.array([0.5, 0.5]), 0).size == 0
    rng = np.random.default_rng(0)
    for _ in range(200):
        q = rng.integers(0, 4, 9) / 10
        for m in range(10):
            expected = [x for x in np.lexsort((np.arange(9), -q)) if q[x] > 0][:m]
            assert top_tokens(q, m).tolist() == expected


def test_choice_of_the_fixed_set_among_ties_is_what_the_rate_is_for():
    """q = (.4, .4, .2), p on token 0: the optimal rate is 1 or .667 by the choice of T."""
    q = np.array([0.4, 0.4, 0.2])
    assert greedy(2).fixed_set(q).tolist() == [0]
    assert greedy(2).sample(q, np.random.default_rng(0), 100)[:, 0].tolist() == [0] * 100


def test_spechub_and_greedy_pairs_have_one_unordered_law():
    for q in DRAFT_LAWS:
        ours, theirs = (draft_sets(*scheme.enumerate(q)) for scheme in (SpecHubPairs(), greedy(2)))
        np.testing.assert_array_equal(ours.members, theirs.members)
        np.testing.assert_allclose(ours.probability, theirs.probability, rtol=1e-14)


def test_first_draft_of_spechub_has_law_q():
    q = np.array([0.2, 0.5, 0.3])
    tuples, probability = SpecHubPairs().enumerate(q)
    np.testing.assert_allclose(np.bincount(tuples[:, 0], probability), q)


def test_top_zero_is_the_inner_law():
    q = np.array([0.2, 0.5, 0.3])
    for replacement, inner in ((True, WithReplacement(2)), (False, WithoutReplacement(2))):
        scheme = TopThenSampled(0, 2, replacement)
        for ours, theirs in zip(scheme.enumerate(q), inner.enumerate(q)):
            np.testing.assert_array_equal(ours, theirs)
        assert scheme.fixed_set(q).size == 0


def test_short_supports():
    q = np.array([0.0, 0.6, 0.0, 0.4])
    for scheme, rows in (
        (WithoutReplacement(3), [[1, 3, NO_DRAFT], [3, 1, NO_DRAFT]]),
        (DistinctConditioned(3), [[1, 3, NO_DRAFT], [3, 1, NO_DRAFT]]),
        (TopThenSampled(1, 2), [[1, 3, NO_DRAFT]]),
        (TopThenSampled(2, 1, True), [[1, 3, NO_DRAFT]]),
        (TopThenSampled(1, 2, True), [[1, 3, 3]]),
        (Deterministic(3), [[1, 3, NO_DRAFT]]),
    ):
        assert scheme.enumerate(q)[0].tolist() == rows
        drawn = scheme.sample(q, np.random.default_rng(0), 50)
        assert {tuple(row) for row in drawn.tolist()} == {tuple(row) for row in rows}
    assert SpecHubPairs().sample([0.0, 1.0], np.random.default_rng(0)).tolist() == [1, NO_DRAFT]


@pytest.mark.parametrize("wrong", [0, -1])
def test_number_of_drafts_is_checked(wrong):
    for make in (WithReplacement, WithoutReplacement, DistinctConditioned, Deterministic, greedy):
        with pytest.raises(ValueError, match=f"n must be an integer >= 1, got {wrong}"):
            make(wrong)
    with pytest.raises(ValueError, match="sampled must be an integer >= 1"):
        TopThenSampled(2, wrong)


@pytest.mark.parametrize("wrong", [2.0, "2", None, True])
def test_number_of_drafts_is_an_integer(wrong):
    for make in (WithReplacement, WithoutReplacement, DistinctConditioned, Deterministic, greedy):
        with pytest.raises(TypeError, match="n must be an integer"):
            make(wrong)
    with pytest.raises(TypeError, match="replacement must be True or False"):
        TopThenSampled(1, 1, replacement=1)


@pytest.mark.parametrize(
    ("scheme", "drafts", "message"),
    [
        (WithReplacement(2), [0], "must hold 2 ids, got 1"),
        (WithReplacement(2), [0, 4], r"must lie in \[0, 4\)"),
        (WithReplacement(2), [0, -2], r"must lie in \[0, 4\)"),
        (WithReplacement(2), [0, -1], "2 ids and then only -1"),
        (WithReplacement(2), [0, 3], "positive probability, got token 3"),
        (WithoutReplacement(2), [1, 1], "different tokens"),
        (WithoutReplacement(4), [-1, 0, 1, 2], "3 ids and then only -1"),
        (WithoutReplacement(4), [0, 1, 2, 2], "3 ids and then only -1"),
        (DistinctConditioned(2), [2, 2], "different tokens"),
        (TopThenSampled(1, 2, True), [1, 2, 2], r"each of the fixed set \[0\] once"),
        (TopThenSampled(1, 2, True), [0, 0, 1], r"each of the fixed set \[0\] once"),
        (greedy(3), [0, 0, 1], "different tokens"),
        (SpecHubPairs(), [1, 2], r"each of the fixed set \[0\] once"),
        (Deterministic(2), [0, 2], "positive probability, got token 2"),
    ],
)
def test_impossible_drafts_are_refused(scheme, drafts, message):
    with pytest.raises(ValueError, match=message):
        scheme.check_drafts([0.5, 0.3, 0.2, 0.0], drafts)


def test_possible_drafts_pass_in_any_order_of_the_law():
    q = np.array([0.5, 0.3, 0.2, 0.0])
    for row in permutations([0, 1, 2]):
        assert WithoutReplacement(4).check_drafts(q, [*row, -1]).tolist() == list(row)
        assert WithoutReplacement(4).check_drafts(q, row).tolist() == list(row)
    assert WithReplacement(3).check_drafts(q, [2, 2, 0]).tolist() == [2, 2, 0]
    assert SpecHubPairs().check_drafts(q, [1, 0]).tolist() == [1, 0]
    with pytest.raises(TypeError, match="drafts must hold integers"):
        WithReplacement(1).check_drafts(q, [0.0])
    with pytest.raises(ValueError, match="drafts must have 1 axis"):
        WithReplacement(1).check_drafts(q, [[0]])


def test_weights_are_checked():
    q = np.array([0.5, 0.5, 0.0])
    for rule, message in (
        (lambda q: q[:2], "keep the shape"),
        (lambda q: q - 0.6, "finite weights >= 0"),
        (lambda q: q + 1, "0 where q is 0; token 2"),
        (lambda q: q * np.nan, "finite weights >= 0"),
        (lambda q: q * 0, "only zeros"),
    ):
        with pytest.raises(ValueError, match=message):
            DistinctConditioned(2, rule).weights(q)
    assert DistinctConditioned(2, odds).weights(np.array([1.0, 0.0])).tolist() == [1.0, 0.0]
    one = DistinctConditioned(2, lambda q: np.where(q == q.max(), q, 0))
    assert one.sampled_from(one.weights(np.array([0.3, 0.7]))) == 1


def test_odds_of_a_nearly_certain_token():
    rest = np.array([3e-17, 1e-17])
    w = odds(np.array([1.0, *rest]))
    # o / o_top with 1 - q_top = 4e-17
    np.testing.assert_allclose(w, [1.0, *(rest * 4e-17)], rtol=1e-12)


def test_large_enumerations_are_refused():
    q = np.full(5000, 1 / 5000)
    for scheme in (WithReplacement(2), WithoutReplacement(2), DistinctConditioned(2), TopThenSampled(1, 2)):
        with pytest.raises(ValueError, match=r"enumerate lists at most .* Feasible"):
            scheme.enumerate(q)


def test_inputs_are_not_changed():
    q = np.array([0.2, 0.5, 0.3, 0.0])
    w = np.array([0.3, 0.5, 0.2])
    q.flags.writeable = w.flags.writeable = False
    for n in (1, 2, 3):
        for scheme in all_schemes(n):
            scheme.enumerate(q)
            scheme.sample(q, np.random.default_rng(0), 3)
            scheme.set_mass(q, [0, 1])
            scheme.prefix_mass(w)
            scheme.weights(q)
            scheme.fixed_set(q)


def test_subsets_are_checked():
    with pytest.raises(ValueError, match=r"subset must lie in \[0, 2\)"):
        WithReplacement(1).set_mass([0.5, 0.5], [2])
    with pytest.raises(TypeError, match="subset must hold token ids"):
        WithReplacement(1).set_mass([0.5, 0.5], [0.5])
    assert WithReplacement(1).set_mass([0.5, 0.5], []) == 0.0
