"""One context with shared work: digit for digit what the plain calls give."""

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
from mdsd_core.verifiers import Estimate, verifier, verifiers_for
from mdsd_study.measure.grid import Entry
from mdsd_study.measure.one_position import measure_position

SCHEMES = [
    *(WithReplacement(n) for n in (1, 2, 3)),
    *(WithoutReplacement(n) for n in (1, 2, 3)),
    *(greedy(n) for n in (1, 3)),
    TopThenSampled(2, 2, replacement=True),
    TopThenSampled(1, 2),
    DistinctConditioned(2),
    DistinctConditioned(2, odds),
    SpecHubPairs(),
    Deterministic(3),
]
ENTRIES = [Entry("", rule, s.drafts, s) for s in SCHEMES for rule in ("bound", *verifiers_for(s)) if rule != "optimal"]


def pairs():
    rng = np.random.default_rng(5)
    for size in (1, 2, 5, 90):
        yield rng.dirichlet(np.full(size, 0.3)), rng.dirichlet(np.full(size, 0.3))
    p = np.array([0.0, 0.5, 0.5, 0.0, 0.0])
    yield p, np.array([0.5, 0.0, 0.25, 0.25, 0.0])  # p off q's support, ties, zeros of both
    yield p, p
    yield np.array([0.6, 0.4]), np.array([1.0, 0.0])
    tiny = np.array([1.0, 1e-310, 1e-200])
    yield np.array([0.2, 0.3, 0.5]), tiny / tiny.sum()
    yield rng.dirichlet(np.ones(200)), rng.dirichlet(np.full(200, 0.05))


@pytest.mark.parametrize("pair", list(pairs()), ids=range(9))
def test_shared_work_changes_no_digit(pair):
    p, q = pair
    before = p.copy(), q.copy()
    rng = np.random.default_rng(0)
    values = measure_position(p, q, ENTRIES, rng, histories=256)
    for (_, rule, _, scheme), row in zip(ENTRIES, values, strict=True):
        bound = optimal_acceptance(p, q, scheme).rate
        found = bound if rule == "bound" else verifier(rule).acceptance(p, q, scheme)
        if isinstance(found, Estimate):
            expected = [found.value, found.low, found.high, found.level, bound]
        else:
            expected = [found, found, found, 1.0, bound]
        assert row.tolist() == expected, (rule, scheme)
    assert np.array_equal(p, before[0])
    assert np.array_equal(q, before[1])


@pytest.mark.large
def test_sampled_histories_come_from_the_generator_and_hold_the_plain_value():
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.full(500, 0.2)), rng.dirichlet(np.full(500, 0.2))
    entries = [Entry("without_replacement", "rrs_without", 5, WithoutReplacement(5))]
    first, again, other = (
        measure_position(p, q, entries, np.random.default_rng(s), histories=4096)[0] for s in (1, 1, 2)
    )
    assert first.tolist() == again.tolist()
    assert first[0] != other[0]
    assert first[3] == 0.99
    plain = verifier("rrs_without").acceptance(p, q, WithoutReplacement(5), histories=100_000)
    for row in (first, other):
        assert row[1] < row[0] < row[2]
        assert row[1] - 1e-4 < plain.value < row[2] + 1e-4
