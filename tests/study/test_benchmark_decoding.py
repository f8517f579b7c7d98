"""The benchmark of the loop, and the tool that records it in full, on tiny random models."""

import json
import sys

import numpy as np
import pytest

from mdsd_core.decoding.drafters.base import ModelDrafter
from mdsd_study.analysis.target_law_in_the_loop import lossless_cells, watched_run
from mdsd_study.benchmarks import decoding
from mdsd_study.tools.reference import record_decoding


@pytest.fixture(scope="module")
def setup():
    return decoding.setup("tiny-random", "tiny-random-draft")


def test_the_own_work_of_a_round_is_what_lies_outside_the_models(setup):
    chosen = [("with_replacement", "rrs", "node"), ("without_replacement", "optimal", "path")]
    rows = list(decoding.measure_overhead(*setup, 12, 2, chosen))
    assert [(row["scheme"], row["verifier"], row["tree_rule"]) for row in rows] == chosen
    assert [row["limit"] for row in rows] == [0.15, 0.30]
    for row in rows:
        assert 0 < row["share"] < 1
        assert set(row["milliseconds_by_kind"]) == {"scheme", "verify", "cache"}
        assert min(row["milliseconds_by_kind"].values()) > 0


def test_all_ways_of_decoding_give_one_text(setup):
    rows = decoding.measure_speed(*setup, 8, 1)
    assert len(rows) == 7
    assert all(row["same_text"] for row in rows)
    assert {row["run"]: row["our_draft_is_faster"] for row in rows}["one draft, gamma 3"] == 1.0


def test_prompts_that_were_read_once_change_nothing(setup):
    _, scorer, drafter, _, _ = setup
    prompts = [[97, 98, 99], [100], [101, 102]]
    runs = []
    for target, source in (
        (scorer, drafter),
        (record_decoding.HasRead(scorer, prompts), ModelDrafter(record_decoding.HasRead(drafter.scorer, prompts))),
    ):
        for _ in range(2):  # a second run starts anew
            run = watched_run(
                target, source, prompts, "with_replacement", "rrs", (2, 2), decoding.SAMPLING,
                max_new_tokens=8, batch_size=3,
            )  # fmt: skip
            runs.append([(one.depth, one.accepted, round(one.given_drafts, 9)) for one in run.visits])
    assert len(runs[0]) > 5
    assert runs.count(runs[0]) == 4


def test_every_rule_is_measured():
    nodes = {(scheme, name) for scheme, name, rule in decoding.rules() if rule == "node"}
    assert nodes == set(lossless_cells(decoding.TREE))
    assert {rule[:2] for rule in decoding.rules() if rule[2] == "path"} <= nodes


def test_a_recorded_part_goes_on_where_it_was_interrupted(tmp_path, monkeypatch, capsys):
    calls = []

    def work(fail):
        def measure(name):
            calls.append(name)
            if name == fail:
                raise KeyboardInterrupt
            return [{"name": name, "value": np.float64(1.0).item()}]

        return {name: lambda name=name: measure(name) for name in ("a", "b", "c")}

    path = tmp_path / "rows.jsonl"
    with pytest.raises(KeyboardInterrupt):
        list(record_decoding.measured(work("b"), path))
    rows = list(record_decoding.measured(work(None), path))
    assert [row["name"] for row in rows] == ["a", "b", "c"]
    assert calls == ["a", "b", "b", "c"]

    monkeypatch.setitem(record_decoding.PARTS, "speed", lambda: (work(None), {"turns": 1}))
    monkeypatch.setattr(record_decoding, "HERE", type(record_decoding.HERE)(tmp_path))
    monkeypatch.setenv("MDSD_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(sys, "argv", ["record_decoding", "speed"])
    assert record_decoding.main() == 0
    content = json.loads((tmp_path / "results" / "recorded" / "decoding_speed.json").read_text())
    assert content["rows"] == rows
    assert content["parameters"]["profile"] == "full"
    assert "keep_record decoding_speed" in capsys.readouterr().out
