"""The claims against the references: every finding has one, every claim names values that exist, verdicts can flip."""

import dataclasses
from pathlib import Path

import pytest

from mdsd_core.study.claims import CLAIMS
from mdsd_core.study.published import PAPERS, TABLES
from mdsd_core.study.results import read_results
from mdsd_core.study.sources import Change, Differences, Turn
from mdsd_core.study.verdicts import ABSENT, CONDITION, FAILS, HOLDS, Above, AtMost, judge
from tools.pages.scorecard import page

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = [(claim, evidence) for claim in CLAIMS for evidence in claim.evidence]


def reference(profile):
    def read(name):
        path = ROOT / "reference" / profile / f"{name}.json"
        return read_results(path) if path.is_file() else None

    return read


def test_every_finding_of_both_papers_has_a_claim():
    claimed = [(claim.paper.key, claim.finding) for claim in CLAIMS if claim.finding is not None]
    assert sorted(claimed) == sorted((paper.key, finding) for paper in PAPERS for finding in paper.findings)
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        if claim.finding is not None:
            assert claim.statement == claim.paper.findings[claim.finding]


def test_criteria_are_those_of_the_statements():
    """Differences and gaps lie above zero; what is claimed to be nothing, or never to happen, is at most rounding."""
    at_most = {"hu-greedy-optimal": 1e-9, "hu-formula": 0.0, "yang-lossless": 1e-12}
    for claim, evidence in EVIDENCE:
        limit = at_most.get(claim.key)
        assert evidence.criterion == (Above(0.0) if limit is None else AtMost(limit)), claim.key


def test_papers_are_in_the_bibliography():
    entries = (ROOT / "book" / "references.bib").read_text()
    assert all(f"{{{paper.key}," in entries for paper in PAPERS)


@pytest.mark.parametrize("profile", ["ci", "quick"])
@pytest.mark.parametrize(("claim", "evidence"), EVIDENCE, ids=[f"{c.key}-{i}" for i, (c, _) in enumerate(EVIDENCE)])
def test_every_claim_names_values_that_exist(profile, claim, evidence):
    name = evidence.source.notebook
    assert (ROOT / "notebooks" / f"{name}.ipynb").is_file(), f"{claim.key} names the notebook {name}"
    results = reference(profile)(name)
    assert results is not None, f"{name} has no reference for {profile}"
    assert evidence.source.matching(results)
    if profile == "quick":  # ci may lack a place on an axis
        assert evidence.source.cells(results)


@pytest.mark.parametrize(("claim", "evidence"), EVIDENCE, ids=[f"{c.key}-{i}" for i, (c, _) in enumerate(EVIDENCE)])
def test_a_planted_change_of_the_results_changes_the_verdict(claim, evidence):
    """Every value moved to the other side of the limit, and then back: the verdict follows."""
    results = reference("quick")(evidence.source.notebook)
    source, limit = evidence.source, evidence.criterion.limit

    def at(value, plain):
        return dataclasses.replace(value, value=plain, interval=None, kind="exact")

    def planted(key, to):
        value = results[key]
        count = len(value.value) if isinstance(value.value, list) else None
        if isinstance(source, Change):
            axis = results[source.axis].value
            return {key: at(value, [to if place == source.first else 0.0 for place in axis])}
        if isinstance(source, Turn):
            first, last = source.between or (-1.0, float("inf"))
            top = next(i for i, t in enumerate(results["temperatures"].value[:-1]) if i and first <= t <= last)
            return {key: at(value, [to if i == top else 0.0 for i in range(count)] if to > 0 else list(range(count)))}
        to *= getattr(source, "sign", 1)
        changed = {key: at(value, to if count is None else [to] * count)}
        if isinstance(source, Differences):
            changed[source.partner(key)] = at(results[source.partner(key)], 0.0 if count is None else [0.0] * count)
        return changed

    def judged(to):
        changed = {k: v for key in source.matching(results) for k, v in planted(key, to).items()}
        values = {**results.values, **changed}
        return judge((evidence,), lambda name: dataclasses.replace(results, values=values)).verdict

    above = isinstance(evidence.criterion, Above)
    assert judged(limit + 1.0) == (HOLDS if above else FAILS)
    assert judged(limit - 1.0) == (FAILS if above else HOLDS)


def test_the_page_follows_the_results():
    read = reference("quick")
    before = page(CLAIMS, read, "quick")
    name = "06_verifiers"
    results = read(name)
    key = next(key for key in results if key.startswith("gap, greedy"))
    planted = {**results.values, key: dataclasses.replace(results[key], value=0.1, interval=(0.05, 0.2))}
    changed = dataclasses.replace(results, values=planted)
    after = page(CLAIMS, lambda n: changed if n == name else read(n), "quick")
    assert before != after
    assert before.count(f"**{HOLDS}**") == after.count(f"**{HOLDS}**") + 1
    nothing = page(CLAIMS, lambda n: None, "full")
    assert nothing.count(f"**{ABSENT}**") == len(CLAIMS) + 1  # one in the legend
    for claim in CLAIMS:
        assert f"({claim.key})=" in nothing
    for table in TABLES:
        assert table.source in nothing


def test_the_verdict_of_the_full_run_stands_beside():
    read = reference("quick")
    name = "06_verifiers"
    results = read(name)
    run = {"processor": "CPU X", "cores": 2, "commit": "0123456789", "date": "2026-01-02T03:04:05+00:00"}
    key = next(key for key in results if key.startswith("gap, greedy"))
    planted = {**results.values, key: dataclasses.replace(results[key], value=0.1, interval=(0.05, 0.2))}
    full = dataclasses.replace(results, values=planted, made=run)
    both = page(CLAIMS, read, "quick", lambda n: full if n == name else None)
    assert "| here (quick) | at full size, recorded |" in both
    row = next(line for line in both.splitlines() if "](#hu-greedy-optimal)" in line)
    assert row.endswith(f"| **{HOLDS}** | **{CONDITION}** |")
    row = next(line for line in both.splitlines() if "](#hu-turn)" in line)
    assert row.endswith("| **not recorded** |")
    section = both.split("(hu-greedy-optimal)=")[1].split("\n(")[0]
    assert "Recorded on 2026-01-02 on CPU X (2 cores), commit 0123456789." in section
    assert "*Full run*: none is recorded." in both
    section = both.split("(hu-gap)=")[1].split("\n(")[0]
    assert "- Not recorded, so without a part in this verdict: 10_main_table." in section
    assert "Full run" not in page(CLAIMS, read, "full")
