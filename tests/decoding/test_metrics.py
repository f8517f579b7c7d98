"""Golden values for every number: the worked example of the module, spelled out."""

import json
import math
import time

import numpy as np
import pytest

from mdsd_core.decoding.drafters.base import ModelDrafter
from mdsd_core.decoding.generate import generate
from mdsd_core.decoding.metrics import Metrics, RoundRecord, Times, Visit
from tests.decoding.tiny import TableModel

ROUNDS = (
    RoundRecord(0, 6, (Visit(1, 2, -1),), 0, 1),
    RoundRecord(0, 6, (Visit(1, 2, 0), Visit(2, 2, -1)), 1, 2),
    RoundRecord(1, 6, (Visit(1, 2, 1), Visit(2, 2, 0)), 2, 2),
)
EXAMPLE = Metrics(ROUNDS, gamma=2, target_calls=3, draft_calls=6, times=Times(draft=1.0, target=2.0))

GOLDEN = {
    "accepted": 3,
    "emitted": 5,
    "drawn": 18,
    "accepted_per_round": 1.0,
    "block_efficiency": 2.0,
    "emitted_per_round": 5 / 3,
    "accepted_per_draft": 3 / 18,
    "alpha_mcsd": 3 / 6,
    "alpha_node": 3 / 5,
    "acceptance_by_depth": (2 / 3, 1 / 2),
    "accepted_by_depth": (2 / 3, 1 / 3),
    "acceptance_by_rank": (2 / 5, 1 / 5),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_values(name):  # F3, F6: accepted per round and block efficiency differ by one, and are named apart
    assert getattr(EXAMPLE, name) == pytest.approx(GOLDEN[name], abs=1e-15)


def test_depths_add_up_to_accepted_per_round():
    assert sum(EXAMPLE.accepted_by_depth) == pytest.approx(EXAMPLE.accepted_per_round)


def test_the_two_alphas_differ_where_depths_are_not_reached():
    """A draft accepted with probability 1/2 at every node: per node 1/2, per drafted depth 3/8."""
    rounds = (
        [RoundRecord(0, 2, (Visit(1, 1, -1),), 0, 1)] * 4
        + [RoundRecord(0, 2, (Visit(1, 1, 0), Visit(2, 1, -1)), 1, 2)] * 2
        + [RoundRecord(0, 2, (Visit(1, 1, 0), Visit(2, 1, 0)), 2, 3)] * 2
    )
    metrics = Metrics(tuple(rounds), 2, 8, 16)
    assert metrics.alpha_node == 0.5
    assert metrics.alpha_mcsd == 6 / 16


def test_nothing_drafted_is_nan_not_perfect():  # F11
    metrics = Metrics((RoundRecord(0, 0, (), 0, 1),), gamma=3, target_calls=1, draft_calls=0)
    assert math.isnan(metrics.accepted_per_draft)
    assert math.isnan(metrics.alpha_node)
    assert metrics.block_efficiency == 1.0
    assert metrics.drawn == 0


class Slow(TableModel):
    """0 for ever; a pass takes at least so many seconds."""

    seconds = 0.0

    def p(self, context):
        return np.array([1.0, 0.0])

    def feed(self, blocks):
        time.sleep(self.seconds)
        return super().feed(blocks)


def test_what_the_loop_counts_and_times():
    """Two prompts, chains of two, a perfect draft, six tokens each: two rounds of 2 + 1, whatever is counted."""
    target, draft = Slow(2, 0), Slow(2, 0)
    target.seconds, draft.seconds = 0.02, 0.005
    started = time.perf_counter()
    found = generate(target, ModelDrafter(draft), [[0], [1, 0]], (1, 1), max_new_tokens=6, seeds=0).metrics
    wall = time.perf_counter() - started
    assert (found.target_calls, found.draft_calls, found.prefill_calls) == (2, 4, 0)  # a batch counts once
    assert (len(found.rounds), found.drawn, found.accepted, found.emitted) == (4, 8, 8, 12)
    assert found.block_efficiency == 3.0
    assert found.alpha_mcsd == found.alpha_node == found.accepted_per_draft == 1.0
    assert found.times.target >= 2 * target.seconds
    assert found.times.draft >= 4 * draft.seconds
    assert min(vars(found.times).values()) > 0
    assert found.times.total <= wall


def test_the_summary_is_json():
    summary = json.loads(json.dumps(EXAMPLE.summary()))
    assert summary["block_efficiency"] == 2.0
    assert summary["seconds"] == {"draft": 1.0, "scheme": 0, "target": 2.0, "verify": 0, "cache": 0, "total": 3.0}
    empty = Metrics((), 0, 0, 0).summary()
    assert empty["alpha_node"] is None
    assert EXAMPLE.of_request(1) == ROUNDS[2:]
