"""The benchmark of the loop, and the tool that records it in full, on tiny random models."""

import json
import sys
from functools import partial

import numpy as np
import pytest

from mdsd_study.analysis.target_law_in_the_loop import lossless_cells
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


def test_every_rule_is_measured():
    nodes = {(scheme, name) for scheme, name, rule in decoding.rules() if rule == "node"}
    assert nodes == set(lossless_cells(decoding.TREE))
    assert {rule[:2] for rule in decoding.rules() if rule[2] == "path"} <= nodes


def test_a_recorded_part_goes_on_where_it_was_interrupted(tmp_path, monkeypatch, capsys):
    calls = []

    def pieces(fail):
        def measure(name):
            calls.append(name)
            if name == fail:
                raise KeyboardInterrupt
            return [{"name": name, "value": np.float64(1.0)}]

        return [(name, partial(measure, name)) for name in "abc"]

    path = tmp_path / "rows.json"
    with pytest.raises(KeyboardInterrupt):
        record_decoding.kept_rows(pieces("b"), path)
    rows = record_decoding.kept_rows(pieces(None), path)
    assert rows == [{"name": name, "value": 1.0} for name in "abc"]
    assert calls == ["a", "b", "b", "c"]

    monkeypatch.setitem(record_decoding.PARTS, "speed", (lambda: pieces(None), {"turns": 1}))
    monkeypatch.setattr(record_decoding, "HERE", type(record_decoding.HERE)(tmp_path))
    monkeypatch.setenv("MDSD_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(sys, "argv", ["record_decoding", "speed"])
    assert record_decoding.main() == 0
    content = json.loads((tmp_path / "results" / "recorded" / "decoding_speed.json").read_text())
    assert content["rows"] == rows
    assert content["parameters"]["profile"] == "full"
    assert content["parameters"]["turns"] == 1
    assert "keep_record decoding_speed" in capsys.readouterr().out


def test_the_martingale_has_a_row_for_every_verifier(setup, monkeypatch):
    cells = [("with_replacement", "rrs"), ("greedy", "greedy")]
    monkeypatch.setattr(record_decoding, "lossless_cells", lambda tree: cells)
    monkeypatch.setattr(decoding, "setup", lambda: setup)
    monkeypatch.setattr(decoding, "TREE", (2, 1))
    monkeypatch.setattr(record_decoding, "MOST_TOKENS", 200)
    monkeypatch.setattr(record_decoding, "PROMPTS", 2)
    monkeypatch.setattr(record_decoding, "NEW_TOKENS", 3)
    rows = [row for _, measure in record_decoding.martingale() for row in measure()]
    assert [(row["scheme"], row["verifier"]) for row in rows] == cells
    assert all(row["rounds"] > 0 for row in rows)
