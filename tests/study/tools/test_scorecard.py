"""The scorecard's page for every profile: it follows the results, and its table is short."""

import dataclasses
import re

import pytest

from mdsd_study.report.published import TABLES
from mdsd_study.report.results import read_results
from mdsd_study.report.scorecard.claim_values import SCORES
from mdsd_study.report.scorecard.claims import CLAIMS
from mdsd_study.report.scorecard.verdicts import ABSENT, FAILS, HOLDS, UNTESTED
from mdsd_study.tools.notebooks.project import HERE, Project
from mdsd_study.tools.pages.scorecard import page, read_recorded, render


def read_full(name):
    return read_recorded(HERE, name)


def reference(profile):
    def read(name):
        path = HERE.reference / profile / f"{name}.json"
        return read_results(path) if path.is_file() else None

    return read_full if profile == "full" else read


def rendered(profile):
    return page(CLAIMS, reference(profile), profile, None if profile == "full" else read_full)


def row(text, key):
    (line,) = [line for line in text.splitlines() if line.startswith("|") and f"](#{key})" in line]
    return [cell.strip() for cell in line.strip("|").split("|")]


def section(text, key):
    return text.split(f"\n({key})=\n")[1].split("\n(")[0]


@pytest.mark.parametrize("profile", ["ci", "quick", "full"])
def test_every_claim_has_a_short_row_and_a_section(profile):
    text = rendered(profile)
    for claim in CLAIMS:
        title, *verdicts = row(text, claim.key)
        assert title == f"[{claim.title}](#{claim.key})"
        assert len(claim.title) <= 52
        judged = [claim.judge(reference(profile))] + ([] if profile == "full" else [claim.judge(read_full)])
        for cell, judgement in zip(verdicts, judged, strict=True):
            assert len(cell) <= 80, "a long cell does not fit a phone: the section has room"
            words = {ABSENT: "not ", UNTESTED: UNTESTED}.get(judgement.verdict, f"**{judgement.verdict}**")
            assert cell.startswith(words)
            if judgement.cells:
                assert cell.endswith(f"({', '.join(map(str, judgement.counts))})")
        assert claim.statement in section(text, claim.key)
    assert "-0.00 " not in text


@pytest.mark.parametrize("profile", ["ci", "quick", "full"])
def test_a_section_says_counts_pairs_and_condition(profile):
    text = rendered(profile)
    for claim in CLAIMS:
        for judgement in [claim.judge(reference(profile))] + ([] if profile == "full" else [claim.judge(read_full)]):
            if not judgement.cells:
                continue
            told = section(text, claim.key)
            for_, undecided, against = judgement.counts
            assert f"Cells for it: {for_}, open: {undecided}, against it: {against}." in told
            for target, drafts in judgement.pairs.items():
                assert f"Measured on {target} with " in told
                assert all(draft in told for draft in drafts)
            for condition in judgement.conditions:
                inside = sum(condition.met(cell) for cell, stance in judgement.cells if stance == 0)
                assert f"{judgement.verdict}: {condition.words()}" in told
                assert f"and {inside} of the {undecided} open ones" in told


def test_what_is_not_tested_says_what_it_needs():
    text = rendered("full")
    for claim in CLAIMS:
        if not claim.evidence:
            assert f"**Not tested here.** *Needed*: {claim.needs}" in section(text, claim.key)


def test_every_notebook_is_linked():
    text = rendered("quick")
    for target in re.findall(r"\]\(notebooks/([^)]+)\)", text):
        assert (HERE.notebooks / target).is_file()
    for claim in CLAIMS:
        for evidence in claim.evidence:
            name = evidence.source.notebook
            shown = "08_decoding_with_trees" if name == SCORES else name
            assert f"](notebooks/{shown}.ipynb)" in section(text, claim.key)


def planted(results):
    """One gap of the greedy verifier that is none of rounding."""
    key = next(key for key in results if key.startswith("gap, greedy"))
    values = {**results.values, key: dataclasses.replace(results[key], value=0.1, interval=(0.05, 0.2))}
    return dataclasses.replace(results, values=values)


def test_the_page_follows_the_results():
    read = reference("quick")
    before = page(CLAIMS, read, "quick")
    after = page(CLAIMS, lambda name: planted(read(name)) if name == "06_verifiers" else read(name), "quick")
    assert row(before, "hu-greedy-optimal")[1] == f"**{HOLDS}** (4, 0, 0)"
    assert row(after, "hu-greedy-optimal")[1] == f"**{FAILS}** (3, 0, 1)"
    changed = [claim.key for claim in CLAIMS if row(before, claim.key) != row(after, claim.key)]
    assert changed == ["hu-greedy-optimal"]
    nothing = page(CLAIMS, lambda name: None, "full")
    for claim in CLAIMS:
        assert row(nothing, claim.key)[1] == ("not measured" if claim.evidence else UNTESTED)
    for table in TABLES.values():
        assert table.source in nothing


def test_the_verdict_of_the_full_run_stands_beside():
    read = reference("quick")
    run = {"processor": "CPU X", "cores": 2, "commit": "0123456789", "date": "2026-01-02T03:04:05+00:00"}
    full = dataclasses.replace(planted(read("06_verifiers")), made=run)
    both = page(CLAIMS, read, "quick", lambda name: full if name == "06_verifiers" else None)
    assert row(both, "hu-greedy-optimal")[1:] == [f"**{HOLDS}** (4, 0, 0)", f"**{FAILS}** (3, 0, 1)"]
    assert row(both, "hu-turn")[2] == "not recorded"
    told = section(both, "hu-greedy-optimal")
    assert f"**Full run: {FAILS}.** Cells for it: 3, open: 0, against it: 1. Against it: n = " in told
    assert "**Full run: not recorded.**" in section(both, "hu-turn")
    recorded = both.split("## Where the full run was recorded")[1]
    assert "Recorded on 2026-01-02 on CPU X (2 cores), commit 0123456789." in recorded
    assert "10_main_table.ipynb): Not recorded, so without a part in the verdicts." in recorded
    assert "Full run" not in page(CLAIMS, read, "full")


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_the_page_reads_what_the_notebooks_left(tmp_path, profile):
    """Nothing was executed there: every claim is unmeasured, but for the record that the repository keeps."""
    (tmp_path / "reference").symlink_to(HERE.reference)
    text = render(Project(tmp_path), profile)
    measured = [claim.key for claim in CLAIMS if row(text, claim.key)[1] not in ("not measured", UNTESTED)]
    assert measured == (["own-loop"] if profile == "full" else [])
    assert ("| full run |" in text) == (profile != "full")
