"""Where enumeration cannot reach: the emitted law by chi-square, and acceptances at large V against simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from mdsd_core.schemes import (
    Deterministic,
    SpecHubPairs,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    greedy,
)
from mdsd_core.verifiers import Estimate, verifier, verifiers_for
from mdsd_core.verifiers.recursive_rejection.exact import rejection_exact
from mdsd_core.verifiers.recursive_rejection.sampled import rejection_sampled
from mdsd_core.verifiers.residual_table import ResidualTable
from tests.core.verifiers.cases import label
from tests.instances import fewer, softmax_pair


class Buffered:
    """A generator's uniforms, drawn many at a time."""

    def __init__(self, seed):
        self._rng, self._left = np.random.default_rng(seed), []

    def random(self):
        if not self._left:
            self._left = self._rng.random(1 << 16).tolist()
        return self._left.pop()


def interval(acceptance):
    return (acceptance.low, acceptance.high) if isinstance(acceptance, Estimate) else (acceptance, acceptance)


# --- the emitted law at V = 1000 --------------------------------------------------------------------------------------

STEPS, LEVEL, DISTANCE, POWER = 620_000, 0.05, 0.01, 0.999

CHI_SQUARE = [
    pytest.param("rrs", WithReplacement(2), marks=pytest.mark.slow),  # the code of the next one
    ("rrs_without", WithoutReplacement(2)),
    ("kseq", WithReplacement(2)),
    ("optimal", WithReplacement(2)),
    pytest.param("optimal", WithoutReplacement(3), marks=pytest.mark.slow),
    pytest.param("greedy", greedy(2), marks=pytest.mark.slow),
    pytest.param("spechub", SpecHubPairs(), marks=pytest.mark.slow),
    pytest.param("deterministic", Deterministic(2), marks=pytest.mark.slow),
    pytest.param("token_matching", WithReplacement(2), marks=pytest.mark.slow),
]


def test_chi_square_has_the_power_it_states():
    """A law at a total variation of .01 from p is found out with probability .999, whichever it is.

    Its noncentrality is ``N sum (law - p)^2 / p >= N (sum |law - p|)^2 = 4 N TV^2`` (Cauchy-Schwarz).
    """
    critical = stats.chi2.isf(LEVEL, df=999)
    assert stats.ncx2.sf(critical, df=999, nc=4 * STEPS * DISTANCE**2) >= POWER


@pytest.mark.large
@pytest.mark.parametrize(("name", "scheme"), CHI_SQUARE, ids=label)
def test_emitted_law_by_chi_square(name, scheme):
    p, q = softmax_pair(np.random.default_rng(17), 1000, scale=1.0, noise=0.5)
    assert STEPS * p.min() > 5
    plan, source = verifier(name).prepare(p, q, scheme), Buffered(18)
    counts = np.zeros(1000)
    for drafts in scheme.sample(q, np.random.default_rng(19), size=STEPS):
        counts[plan.verify(drafts, source).token] += 1
    statistic = ((counts - STEPS * p) ** 2 / (STEPS * p)).sum()
    assert statistic < stats.chi2.isf(LEVEL, df=999)


# --- acceptance at V = 49,152 -----------------------------------------------------------------------------------------

LARGE = [
    (name, scheme)
    for scheme in (
        WithReplacement(4),
        WithoutReplacement(2),
        WithoutReplacement(3),
        WithoutReplacement(4),
        greedy(3),
        SpecHubPairs(),
        Deterministic(3),
        TopThenSampled(2, 2),
        TopThenSampled(1, 2, True),
    )
    for name in verifiers_for(scheme)
]


def check_by_simulation(name, scheme, p, q, steps, seed):
    """The acceptance lies in the interval of a simulation, of four standard errors: wrong once in 16,000."""
    plan, source = verifier(name).prepare(p, q, scheme), Buffered(seed)
    drafts = scheme.sample(q, np.random.default_rng(seed + 1), size=steps)
    rate = sum(plan.verify(row, source).accepted for row in drafts) / steps
    low, high = interval(verifier(name).acceptance(p, q, scheme))
    assert low - 4 * math.sqrt(low * (1 - low) / steps) <= rate <= high + 4 * math.sqrt(high * (1 - high) / steps)


@pytest.mark.large
@pytest.mark.parametrize(("name", "scheme"), LARGE, ids=label)
def test_acceptance_lies_in_a_monte_carlo_interval(name, scheme):
    p, q = softmax_pair(np.random.default_rng(20), 49_152, noise=1.5)
    check_by_simulation(name, scheme, p, q, steps=1000, seed=21)


@pytest.mark.model
def test_acceptance_in_real_contexts(smollm2_pair):
    """At three positions of a text, T = 0.7."""
    import torch

    from mdsd_core.distributions import SamplingParams, probabilities

    ids = torch.tensor([smollm2_pair.target.encode("The capital of France is a city on the river Seine, and its name")])
    with torch.no_grad():
        rows = [model.model(ids).logits[0] for model in (smollm2_pair.target, smollm2_pair.draft)]
    sampling = SamplingParams(temperature=0.7)
    for position in (2, 7, ids.shape[1] - 1):
        p, q = (probabilities(logits[position], sampling) for logits in rows)
        for name, scheme in LARGE:
            check_by_simulation(name, scheme, p, q, steps=300, seed=position)


# --- estimates --------------------------------------------------------------------------------------------------------


def exact_rejection(p, q, draws):
    """P(all drafts without replacement are rejected), by all histories, however many."""
    return rejection_exact(ResidualTable.of(p, q), draws, most=np.inf)


@pytest.mark.parametrize("temperature", [0.2, 0.5, 1.0, 2.0, 5.0])
def test_three_drafts_are_bracketed(temperature):
    rng = np.random.default_rng(22)
    for V in fewer((66, 90, 150), 3):
        p, q = softmax_pair(rng, V, temperature=temperature)
        expected = 1 - exact_rejection(p, q, 3)
        estimate = verifier("rrs_without").acceptance(p, q, WithoutReplacement(3))
        low, high = interval(estimate)
        assert low <= expected + 1e-12
        assert expected - 1e-12 <= high
        assert high - low <= 1e-6
        assert not isinstance(estimate, Estimate) or estimate.level == 1.0


@pytest.mark.large
@pytest.mark.parametrize("temperature", [0.1, 0.3, 0.7, 1.0, 1.5])
def test_bracket_is_narrow_at_any_size(temperature):
    p, q = softmax_pair(np.random.default_rng(23), 49_152, temperature=temperature)
    without, pairs = verifier("rrs_without"), WithoutReplacement(2)
    estimate = without.acceptance(p, q, WithoutReplacement(3))
    assert isinstance(estimate, Estimate)
    assert estimate.high - estimate.low <= 1e-6
    assert without.acceptance(p, q, pairs) <= estimate.high
    assert verifier("rrs").acceptance(p, q, WithReplacement(3)) <= estimate.high


@pytest.mark.large
def test_intervals_from_sampled_histories_cover():
    """At level .99, more than 8 misses in 200 are less likely than one in 2,000."""
    rng = np.random.default_rng(24)
    assert stats.binom.sf(8, 200, 0.01) < 5e-4
    misses, widths = 0, []
    for i in range(200):
        p, q = softmax_pair(rng, int(rng.choice([36, 45])), temperature=rng.choice([0.3, 1.0, 3.0]))
        mean, half = rejection_sampled(ResidualTable.of(p, q), 3 if i % 4 else 4, 1024, rng)
        misses += abs(mean - exact_rejection(p, q, 3 if i % 4 else 4)) > half + 1e-13
        widths.append(half)
    assert misses <= 8
    assert np.median(widths) < 1e-4


@pytest.mark.large
def test_sampled_histories_of_small_supports():
    """All tokens heavy; as many drafts as tokens; histories that are all alike."""
    rng = np.random.default_rng(27)
    for V, draws in ((8, 6), (5, 5), (7, 4)):
        for _ in range(5):
            p, q = softmax_pair(rng, V)
            mean, half = rejection_sampled(ResidualTable.of(p, q), draws, 4096, rng)
            assert half > 0
            assert abs(mean - exact_rejection(p, q, draws)) <= 2 * half + 1e-13
    # only a token that is hardly ever drafted lets anything be rejected in the end: it is not seen, and not excluded
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.5 - 1e-9, 1e-9])
    mean, half = rejection_sampled(ResidualTable.of(p, q), 2, 64, rng)
    assert mean - half <= exact_rejection(p, q, 2) <= mean + half


@pytest.mark.large
def test_estimates_come_again_and_follow_the_generator_given():
    p, q = softmax_pair(np.random.default_rng(25), 5000)
    rule, scheme = verifier("rrs_without"), WithoutReplacement(5)
    first = rule.acceptance(p, q, scheme)
    assert isinstance(first, Estimate)
    assert first.level == 0.99
    assert first.low < first.value < first.high
    assert rule.acceptance(p, q, scheme) == first
    other = rule.acceptance(p, q, scheme, rng=np.random.default_rng(26))
    assert other != first
    assert abs(other.value - first.value) < (other.high - other.low) + (first.high - first.low)
    finer = rule.acceptance(p, q, scheme, histories=65_536)
    assert finer.high - finer.low < first.high - first.low


def test_supports_of_one_two_and_three_tokens_stay_exact():
    for size in (1, 2, 3):
        p = np.full(6, 1 / 6)
        q = np.zeros(6)
        q[:size] = 1 / size
        assert verifier("rrs_without").acceptance(p, q, WithoutReplacement(5)) == pytest.approx(size / 6, abs=1e-14)
