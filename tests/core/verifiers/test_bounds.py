"""Acceptance against what is possible: the optimal rate, other rules, and closed forms."""

import numpy as np
import pytest

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
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_core.verifiers import Estimate, Optimal, verifier
from tests.core.verifiers.cases import PAIRS, combinations, label, schemes
from tests.instances import COMPILED, adversarial_pairs, dirichlet_pair, random_pairs, softmax_pair

SIZE = 1000 if COMPILED else 70

#: Contexts as large as the exact rates of all schemes can be had in a test.
CONTEXTS = [
    pair
    for seed in range(2)
    for pair in (
        *(softmax_pair(np.random.default_rng(seed), SIZE, temperature=t) for t in (0.3, 1.0, 2.0)),
        dirichlet_pair(np.random.default_rng(seed), 300 if COMPILED else 40),
    )
]

#: All adversarial pairs and a third of the random ones.
SOME = [*PAIRS[: len(adversarial_pairs())], *PAIRS[len(adversarial_pairs()) :: 3]]


def bounds_of(acceptance):
    """The interval an acceptance lies in, the exact ones included."""
    if isinstance(acceptance, Estimate):
        assert acceptance.low <= acceptance.value <= acceptance.high
        return acceptance.low, acceptance.high
    return acceptance, acceptance


@pytest.mark.parametrize(("rule", "scheme"), combinations(), ids=label)
def test_never_above_the_optimal_rate(rule, scheme):
    for p, q in SOME:
        low, high = bounds_of(rule.acceptance(p, q, scheme))
        assert low <= high <= optimal_acceptance(p, q, scheme).rate + 1e-12
        assert -1e-15 <= low <= high <= 1 + 1e-14


@pytest.mark.parametrize(("rule", "scheme"), combinations((2, 3, 4)), ids=label)
def test_never_above_the_optimal_rate_of_large_vocabularies(rule, scheme):
    for p, q in CONTEXTS:
        low, high = bounds_of(rule.acceptance(p, q, scheme))
        assert low <= optimal_acceptance(p, q, scheme).rate + 1e-9
        assert 0.0 <= low <= high <= 1.0 + 1e-12


EXACT = Optimal(tolerance=1e-12)

OPTIMAL = [
    *[("greedy", greedy(n)) for n in (1, 2, 3, 4)],
    *[("rrs", greedy(n)) for n in (1, 2, 3)],
    *[("rrs_without", greedy(n)) for n in (1, 2, 3)],
    ("spechub", SpecHubPairs()),
    *[("deterministic", Deterministic(n)) for n in (1, 2, 3, 4)],
    *[("token_matching", Deterministic(n)) for n in (1, 2, 3, 4)],
    *[("optimal", scheme) for n in (1, 2, 3, 4) for scheme in schemes(n)],
]


@pytest.mark.parametrize(("name", "scheme"), OPTIMAL, ids=label)
def test_rules_that_attain_the_optimal_rate(name, scheme):
    rule = EXACT if name == "optimal" else verifier(name)
    for p, q in [*SOME, *CONTEXTS]:
        best = optimal_acceptance(p, q, scheme).rate
        assert bounds_of(rule.acceptance(p, q, scheme))[0] == pytest.approx(best, abs=1e-11)


@pytest.mark.large
@pytest.mark.parametrize("scheme", [WithoutReplacement(3), DistinctConditioned(3), TopThenSampled(1, 3)], ids=label)
def test_a_tolerance_costs_what_the_plan_says(scheme):
    losses = []
    for tolerance in (1e-12, 1e-5, 1e-3):
        rule, loss = Optimal(tolerance), 0.0
        for p, q in CONTEXTS:
            plan = rule.prepare(p, q, scheme)
            best = optimal_acceptance(p, q, scheme).rate
            low, high = bounds_of(rule.acceptance(p, q, scheme))
            assert plan.acceptance == low
            assert high - low == pytest.approx(max(plan.loss, 0.0) if high > low else 0.0, abs=1e-15)
            assert plan.acceptance + plan.loss == pytest.approx(best, abs=1e-11)
            assert -1e-13 <= plan.loss <= 10 * tolerance
            loss += plan.loss
        losses.append(loss)
    assert losses[0] < losses[1] < losses[2]


@pytest.mark.parametrize("tolerance", [0.0, 1.5, float("nan")])
def test_a_tolerance_out_of_range_is_refused(tolerance):
    with pytest.raises(ValueError, match="tolerance must be in"):
        Optimal(tolerance)


def test_spechub_accepts_as_much_as_greedy():
    for p, q in [*PAIRS, *CONTEXTS]:
        pair = verifier("spechub").acceptance(p, q, SpecHubPairs())
        assert pair == pytest.approx(verifier("greedy").acceptance(p, q, greedy(2)), abs=1e-13)


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("rrs", WithReplacement(1)),
        ("rrs_without", WithoutReplacement(1)),
        ("kseq", WithReplacement(1)),
        ("greedy", TopThenSampled(0, 1)),
    ],
    ids=label,
)
def test_one_draft_is_leviathans_rule(name, scheme):
    for p, q in [*PAIRS, *CONTEXTS]:
        rule = verifier(name)
        assert rule.acceptance(p, q, scheme) == pytest.approx(np.minimum(p, q).sum(), abs=1e-12)
        plan = rule.prepare(p, q, scheme)
        for x in np.flatnonzero(q)[:5]:
            accepted = min(1.0, p[x] / q[x])
            residual = np.maximum(p - q, 0)
            if residual.sum() > 1e-12:  # else rejection never happens but by rounding
                law = (1 - accepted) * residual / residual.sum()
                law[x] += accepted
                np.testing.assert_allclose(plan.output_law([x]), law, atol=1e-12)


def test_one_draft_token_matching_and_deterministic_child():
    for p, q in [*PAIRS, *CONTEXTS]:
        matched = verifier("token_matching").acceptance(p, q, WithReplacement(1))
        assert matched == pytest.approx(float(p @ q), abs=1e-12)
        child = verifier("deterministic").acceptance(p, q, Deterministic(1))
        assert child == pytest.approx(p[np.argmax(q)], abs=1e-15)


@pytest.mark.parametrize("n", [2, 3, pytest.param(4, marks=pytest.mark.large)])
def test_rrs_without_replacement_accepts_at_least_as_much_in_every_context(n):
    """Proved: the level of the residual rises by s Z with s >= 1, and l + Z(l) never falls in l, so that after any
    history of rejections less is left than with replacement. No counterexample was found in 6,000 pairs."""
    without, replaced = verifier("rrs_without"), verifier("rrs")
    gains = []
    for p, q in [*SOME, *random_pairs(7, 150, range(2, 8)), *CONTEXTS]:
        low, high = bounds_of(without.acceptance(p, q, WithoutReplacement(n)))
        base = replaced.acceptance(p, q, WithReplacement(n))
        assert high >= base - 1e-12
        gains.append(low - base)
    assert np.mean(gains) > 0.01


def test_rrs_accepts_more_with_more_drafts():
    for p, q in [*PAIRS[::3], *CONTEXTS]:
        rates = [verifier("rrs").acceptance(p, q, WithReplacement(n)) for n in range(1, 9)]
        assert (np.diff(rates) >= -1e-13).all()


def test_kseq_accepts_at_least_a_constant_share_of_the_optimum():
    """SpecTr proves (1 - 1/e) of the optimum."""
    for n in (2, 3, 4, 8):
        for p, q in [*PAIRS[::3], *CONTEXTS]:
            rate = verifier("kseq").acceptance(p, q, WithReplacement(n))
            assert rate >= (1 - np.exp(-1)) * optimal_acceptance(p, q, WithReplacement(n)).rate - 1e-12


def test_token_matching_without_replacement_by_the_pair_formula():
    for p, q in CONTEXTS:
        rest = np.array([q[:x].sum() + q[x + 1 :].sum() for x in range(q.size)])
        first = q / rest
        drafted = q * (1 + first.sum() - first)
        rate = verifier("token_matching").acceptance(p, q, WithoutReplacement(2))
        assert rate == pytest.approx(float(p @ drafted), abs=1e-12)


@pytest.mark.parametrize(
    "scheme", [WithoutReplacement(4), DistinctConditioned(4), DistinctConditioned(3, odds)], ids=str
)
def test_inclusion_probabilities_add_up_to_the_number_of_drafts(scheme):
    for p, q in CONTEXTS:
        drafted = scheme.inclusion(scheme.weights(q))
        assert drafted.sum() == pytest.approx(scheme.drafts, abs=1e-11)
        assert drafted.min() >= 0
        assert drafted.max() <= 1
        rate = verifier("token_matching").acceptance(p, q, scheme)
        assert rate == pytest.approx(float(p @ drafted), abs=1e-13)
