"""The benchmark of the optimal transport runs, on sizes far below those it is for."""

import json

import pytest

from mdsd_core.schemes import WithReplacement
from mdsd_study.benchmarks import transport


@pytest.fixture
def small(monkeypatch):
    limits = {"rate": 1e9, "marginal": None, "plan": 1e-9}
    cases = [transport.Case(work, WithReplacement(2), 100, limit) for work, limit in limits.items()]
    monkeypatch.setattr(transport, "CASES", cases)
    monkeypatch.setattr(transport, "BY_VOCABULARY", [("plan", WithReplacement(2))])
    monkeypatch.setattr(transport, "VOCABULARIES", (100, 10_000, 20_000))
    monkeypatch.setattr(transport, "BY_DRAFTS", [("rate", WithReplacement)])
    monkeypatch.setattr(transport, "DRAFTS", (1, 2))
    monkeypatch.setattr(transport, "DRAFTS_VOCABULARY", 100)
    monkeypatch.setattr(transport, "LLAMA", 200)
    monkeypatch.setattr(transport, "PROGRAMS", ((6, 2),))


def test_tables_and_record(small, tmp_path, capsys):
    file = tmp_path / "record.json"
    transport.main(["--rounds", "1", "--json", str(file)])
    record = json.loads(file.read_text())
    assert [row["work"] for row in record["cases"]] == ["rate", "marginal", "plan"]
    assert all(row["milliseconds"] > 0 and row["argsorts"] > 0 for row in record["cases"] + record["vocabulary"])
    assert abs(record["cases"][2]["lost_acceptance"]) < 1e-12
    assert record["lp"][0]["difference"] < 1e-9
    assert record["published"]["rows"][0]["global_resolution"] == 5.27
    printed = capsys.readouterr().out
    assert "arXiv 2511.15898" in printed
