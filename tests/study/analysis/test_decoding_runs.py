"""Runs over prompts: counts that equal the loop's own metrics, resumption after a kill, streams by prompt."""

import dataclasses
import time

import numpy as np
import pytest

from mdsd_core.decoding import ModelDrafter, generate
from mdsd_core.decoding.generate import as_scorer
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import tiny_random_pair
from mdsd_core.models.prompts import Prompt
from mdsd_study.analysis import decoding_runs
from mdsd_study.analysis.decoding_runs import (
    Configuration,
    block_efficiency,
    decode_prompts,
    prompt_seed,
    time_split,
    tokens_per_second,
)

PROMPTS = [Prompt("toy", str(i), text, False, "MIT", True) for i, text in enumerate(("abc", "a word", "xyz"))]
CONFIGURATION = Configuration("tiny", "2,2", temperature=1.0)


@pytest.fixture(scope="module")
def setup():
    pair = tiny_random_pair()
    return pair.target, as_scorer(pair.target), ModelDrafter(as_scorer(pair.draft))


def counts(runs):
    return [(run.key, run.visits, run.emitted) for run in runs]


def test_counts_are_those_of_the_loop(setup):
    target, scorer, drafter = setup
    (run,) = decode_prompts(target, scorer, drafter, CONFIGURATION, PROMPTS[:1], max_new_tokens=12)
    metrics = generate(
        scorer, drafter, [target.encode("abc", chat=PROMPTS[0].chat)], "2,2",
        sampling=SamplingParams(1.0), max_new_tokens=12, seeds=[prompt_seed(0, "toy/0")], eos_token_ids=target.eos_ids,
    ).metrics  # fmt: skip
    assert (run.rounds, run.accepted, run.emitted) == (len(metrics.rounds), metrics.accepted, metrics.emitted)
    assert block_efficiency([run]).mean == pytest.approx(metrics.block_efficiency)
    for depth in (1, 2):
        decided = [row[depth - 1][1] >= 0 for row in run.visits if len(row) >= depth]
        assert np.mean(decided) == pytest.approx(metrics.acceptance_by_depth[depth - 1])


def test_the_order_of_the_prompts_changes_no_text(setup):
    target, scorer, drafter = setup
    alone = decode_prompts(target, scorer, drafter, CONFIGURATION, PROMPTS, max_new_tokens=8)
    backwards = decode_prompts(target, scorer, drafter, CONFIGURATION, PROMPTS[::-1], max_new_tokens=8)
    assert counts(alone) == counts(backwards[::-1])
    other = decode_prompts(target, scorer, drafter, CONFIGURATION, PROMPTS, max_new_tokens=8, seed=1)
    assert counts(alone) != counts(other)


def test_finished_prompts_are_not_run_again_after_a_kill(setup, tmp_path, monkeypatch):
    target, scorer, drafter = setup
    whole = decode_prompts(target, scorer, drafter, CONFIGURATION, PROMPTS, max_new_tokens=8)
    store = tmp_path / "runs"
    decode_prompts(target, scorer, drafter, CONFIGURATION, PROMPTS[:1], max_new_tokens=8, store=store)
    (kept,) = store.iterdir()
    decode_prompts(target, scorer, drafter, CONFIGURATION, PROMPTS[1:2], max_new_tokens=8, store=store)
    (second,) = set(store.iterdir()) - {kept}
    second.write_text(second.read_text()[:20])  # the disk was full, say

    calls = []
    real = decoding_runs.generate
    monkeypatch.setattr(decoding_runs, "generate", lambda *a, **k: calls.append(a[2]) or real(*a, **k))
    again = decode_prompts(target, scorer, drafter, CONFIGURATION, PROMPTS, max_new_tokens=8, store=store)
    assert counts(again) == counts(whole)
    assert len(calls) == 2
    assert counts(
        decode_prompts(target, scorer, drafter, CONFIGURATION, PROMPTS, max_new_tokens=8, store=store)
    ) == counts(whole)
    assert len(calls) == 2
    # another setting is another run
    decode_prompts(target, scorer, drafter, dataclasses.replace(CONFIGURATION, tree="2"), PROMPTS[:1], max_new_tokens=8,
             store=store)  # fmt: skip
    assert len(calls) == 3


def test_plain_decoding_and_time(setup):
    target, scorer, _ = setup
    runs = decode_prompts(
        target, scorer, None, Configuration("none", "none", temperature=1.0), PROMPTS, max_new_tokens=5
    )
    assert block_efficiency(runs).mean == 1.0
    split = time_split(runs)
    assert split["target"] > 0
    assert sum(split.values()) == pytest.approx(sum(r.seconds["wall"] for r in runs) / sum(r.rounds for r in runs))
    assert 0 < tokens_per_second(runs).mean < np.inf
    processor = tokens_per_second(runs, clock="processor").mean
    assert processor == pytest.approx(sum(r.emitted for r in runs) / sum(r.seconds["processor"] for r in runs))


def test_processor_time_leaves_out_waiting(setup, monkeypatch):
    target, scorer, _ = setup
    real = decoding_runs.generate
    monkeypatch.setattr(decoding_runs, "generate", lambda *a, **k: time.sleep(0.2) or real(*a, **k))
    monkeypatch.setattr(decoding_runs.time, "process_time", iter((1.0, 1.25)).__next__)
    (run,) = decode_prompts(target, scorer, None, Configuration("none", "none"), PROMPTS[:1], max_new_tokens=1)
    assert run.seconds["wall"] > 0.2
    assert run.seconds["processor"] == 0.25
