"""Random-priority selection: the law by formula, by enumeration of all segments, and as drawn."""

from itertools import pairwise, product

import numpy as np
import pytest

from mdsd_core.schemes import NO_DRAFT, WithReplacement
from mdsd_core.transport.priority import PriorityPlan
from tests.core.transport.checks import checked
from tests.instances import normalised, total_variation


class Replay:
    """A source of uniforms that are given beforehand."""

    def __init__(self, uniforms):
        self.uniforms = list(uniforms)

    def random(self):
        return self.uniforms.pop(0)


def random_plan(rng, V, silent=()):
    """A plan with random segments, some of probability zero, stored in a random order of the tokens."""
    count = rng.integers(1, 5, V)
    count[list(silent)] = 0
    keys = rng.permutation(3 * count.sum())[: count.sum()] - count.sum()
    row, start = np.full(V, -1, dtype=np.int32), [0]
    key, cumulative = [], []
    for x in rng.permutation(np.flatnonzero(count)):
        row[x] = len(start) - 1
        at = start[-1]
        key.extend(np.sort(keys[at : at + count[x]]))
        fraction = rng.random(count[x]) * (rng.random(count[x]) < 0.7)
        fraction[rng.integers(count[x])] += 0.5
        cumulative.extend(np.cumsum(fraction) / fraction.sum())
        cumulative[-1] = 1.0
        start.append(at + count[x])
    marginal = normalised(rng.random(V) * (count > 0))
    return PriorityPlan(row, np.array(start), np.array(key), np.array(cumulative), marginal)


def law_by_enumeration(plan, drafts):
    """Every draft's segment is enumerated; the first of the largest keys wins."""
    law = np.zeros(len(drafts))
    places = [i for i, x in enumerate(drafts) if x != NO_DRAFT]
    segments = [list(zip(*plan.segments(drafts[i]))) for i in places]
    for chosen in product(*segments):
        keys = [key for key, _ in chosen]
        law[places[keys.index(max(keys))]] += np.prod([fraction for _, fraction in chosen])
    return law


@pytest.mark.parametrize("seed", range(40))
def test_selection_law_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    plan = checked(random_plan(rng, 5))
    rows = rng.integers(0, 5, (6, int(rng.integers(1, 5))))
    rows[0] = rows[0, 0]  # one token drawn again and again
    expected = np.array([law_by_enumeration(plan, row) for row in rows])
    np.testing.assert_allclose(plan.selection_law(rows), expected, atol=1e-15)
    np.testing.assert_allclose(plan.selection_law(rows[1]), expected[1], atol=1e-15)


def test_selection_law_with_missing_drafts():
    plan = random_plan(np.random.default_rng(1), 4)
    for row in ([2, NO_DRAFT, 0], [NO_DRAFT, 1], [3, 1, NO_DRAFT, NO_DRAFT]):
        np.testing.assert_allclose(plan.selection_law(row), law_by_enumeration(plan, row), atol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_select_follows_its_law_uniform_by_uniform(seed):
    """The unit cube of uniforms is cut at the segments: a corner and the middle of each box, weighted by its volume."""
    plan = random_plan(np.random.default_rng(seed), 4)
    for drafts in ([0, 1, 2], [3, 3], [2, NO_DRAFT, 1], [1, 2, 1]):
        edges = []
        for x in drafts:
            own = slice(*plan.start[plan.row[x] : plan.row[x] + 2])
            cuts = np.concatenate(([0.0], plan.cumulative[own])) if x != NO_DRAFT else np.array([0.0, 1.0])
            edges.append([(a, b) for a, b in pairwise(cuts) if b > a])
        law = np.zeros(len(drafts))
        for box in product(*edges):
            volume = np.prod([b - a for a, b in box])
            for corner in (0.0, 0.5):  # the lower end belongs to the segment
                point = [a + corner * (b - a) for a, b in box]
                source = Replay([u for u, x in zip(point, drafts) if x != NO_DRAFT])
                law[plan.select(drafts, source)] += 0.5 * volume
                assert not source.uniforms  # one uniform for each draft
        np.testing.assert_allclose(law, plan.selection_law(drafts), atol=1e-15)


def test_law_of_winner_is_the_sum_over_tuples():
    rng = np.random.default_rng(5)
    plan, q = random_plan(rng, 4), normalised(rng.random(4))
    law = np.zeros(4)
    for row in product(range(4), repeat=3):
        np.add.at(law, list(row), np.prod(q[list(row)]) * law_by_enumeration(plan, row))
    assert total_variation(plan.law_of_winner(WithReplacement(3), q), law) < 1e-15


def test_errors_name_the_token():
    plan = random_plan(np.random.default_rng(2), 4, silent=[3])
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="token 3, which the scheme of this plan never draws"):
        plan.select([0, 3], rng)
    with pytest.raises(ValueError, match=r"ids in \[0, 4\).*got 4"):
        plan.selection_law([4])
    with pytest.raises(ValueError, match="got -2"):
        plan.select([0, -2], rng)
    with pytest.raises(ValueError, match="none in row 1"):
        plan.selection_law([[0, 1], [NO_DRAFT, NO_DRAFT]])
    with pytest.raises(ValueError, match="drafts must be token ids"):
        plan.select([0.0], rng)
    assert [a.size for a in plan.segments(3)] == [0, 0]


FAULTS = {
    "size": lambda f: f.update(marginal=f["marginal"][:-1]),
    "dtype": lambda f: f.update(start=f["start"].astype(np.int32)),
    "two tokens in a row": lambda f: f["row"].__setitem__(1, 0),
    "a row of nobody": lambda f: f["row"].__setitem__(1, -1),
    "a row below -1": lambda f: f["row"].__setitem__(3, -2),
    "an empty row": lambda f: f["start"].__setitem__(1, 0),
    "segments left": lambda f: f["start"].__setitem__(3, 5),
    "equal keys": lambda f: f["key"].__setitem__(0, f["key"][-1]),
    "falling keys": lambda f: f.update(key=-f["key"]),
    "falling cumulative": lambda f: f["cumulative"].__setitem__(1, 0.1),
    "negative": lambda f: f["cumulative"].__setitem__(0, -0.1),
    "end below 1": lambda f: f["cumulative"].__setitem__(-1, 0.9),
    "nan": lambda f: f["cumulative"].__setitem__(0, np.nan),
    "marginal": lambda f: f["marginal"].__setitem__(0, 0.9),
    "marginal off the segments": lambda f: f.update(marginal=np.array([0.3, 0.3, 0.3, 0.1])),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_plan_is_refused(fault):
    fields = dict(
        row=np.array([0, 1, 2, -1], dtype=np.int32),
        start=np.array([0, 2, 4, 6]),
        key=np.array([4, 5, 0, 6, 1, 2]),
        cumulative=np.array([0.25, 1, 0.5, 1, 0, 1]),
        marginal=np.array([0.3, 0.3, 0.4, 0.0]),
    )
    checked(PriorityPlan(**fields))
    FAULTS[fault](fields)
    with pytest.raises((ValueError, TypeError), match=r"must"):
        checked(PriorityPlan(**fields))
