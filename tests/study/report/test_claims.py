"""The claims against the references: every finding has one, every claim names values that exist, verdicts can flip."""

import dataclasses
import json
from pathlib import Path

import pytest

from mdsd_study.report.published import PAPERS
from mdsd_study.report.results import read_results
from mdsd_study.report.scorecard.claim_values import SCORES, At, Change, Turn
from mdsd_study.report.scorecard.claims import CLAIMS, read_claim
from mdsd_study.report.scorecard.verdicts import CONDITION, FAILS, HOLDS, OPEN, UNSEEN, UNTESTED, Above, AtMost, judge
from mdsd_study.tools.notebooks.project import HERE
from mdsd_study.tools.pages.scorecard import read_recorded

ROOT = Path(__file__).resolve().parents[3]
EVIDENCE = [(claim, evidence) for claim in CLAIMS for evidence in claim.evidence]
EACH = pytest.mark.parametrize(
    ("claim", "evidence"), EVIDENCE, ids=[f"{c.key}-{i}" for i, (c, _) in enumerate(EVIDENCE)]
)


def reference(profile):
    def read(name):
        if name == SCORES:
            return read_recorded(HERE, name)
        path = ROOT / "reference" / profile / f"{name}.json"
        return read_results(path) if path.is_file() else None

    return read


def claim_of(key):
    return next(claim for claim in CLAIMS if claim.key == key)


def full(key):
    return claim_of(key).judge(reference("full"))


def test_every_finding_of_both_papers_has_a_claim():
    claimed = [(claim.paper.key, claim.finding) for claim in CLAIMS if claim.finding is not None]
    assert sorted(claimed) == sorted((paper.key, finding) for paper in PAPERS for finding in paper.findings)
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        if claim.finding is not None:
            assert claim.statement == claim.paper.findings[claim.finding]


def test_what_was_not_tested_has_rows_that_say_what_it_needs():
    untested = {claim.key: claim for claim in CLAIMS if not claim.evidence}
    assert sorted(untested) == ["hu-heads", "hu-pairs", "hu-speed", "yang-pairs", "yang-speed"]
    for claim in CLAIMS:
        assert bool(claim.needs) == (claim.key in untested)
        assert (claim.judge(reference("full")).verdict == UNTESTED) == (claim.key in untested)


PLAIN = {"key": "own-gap", "title": "Gaps", "statement": "there is a gap"}
GAP = {"how": "the gap", "notebook": "06_verifiers", "keys": "gap, {rules}, n=4"}
RULES = {"rules": "(?P<rule>RRS|K-SEQ)"}


def test_an_entry_of_the_file_is_what_it_says():
    along = {
        "axis": "drafts",
        "minus": [r"gap, \g<rule>, n=2"],
        "turn": {"n": [2.0, 4.0]},
        "at_most": 1,
        "points": True,
    }
    (evidence,) = read_claim({**PLAIN, "evidence": [{**GAP, **along}]}, RULES).evidence
    assert (evidence.criterion, evidence.points) == (AtMost(1), True)
    assert (type(evidence.source), evidence.source.name, evidence.source.between) == (Turn, "n", (2.0, 4.0))
    leaf = evidence.source.source
    assert (leaf.keys, leaf.axis) == ("gap, (?P<rule>RRS|K-SEQ), n=4", "drafts")
    assert leaf.partners("gap, RRS, n=4") == ["gap, RRS, n=2"]
    of_paper = {"key": "yang-lossless", "title": "Kept", "paper": "yang2024", "finding": "lossless", "needs": "a look"}
    assert read_claim(of_paper, {}).statement == PAPERS[1].findings["lossless"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"titel": "x"}, "claim 'own-gap' must not have the field titel = 'x'; it must have key, title"),
        ({"law": "yes"}, "claim 'own-gap': law must be true or false, got 'yes'"),
        ({"paper": "hu"}, "claim 'own-gap': paper must be one of hu2025, yang2024, got 'hu'"),
        ({"paper": "hu2025", "finding": "gap"}, "must have either the finding of a paper, or a statement"),
    ],
)
def test_a_wrong_field_of_a_claim_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        read_claim({**PLAIN, **change}, {})
    with pytest.raises(ValueError, match=r"finding must be one of several, .*, got 'gap'"):
        read_claim({"key": "x", "title": "x", "paper": "yang2024", "finding": "gap"}, {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"minsu": ["x"]}, r"must not have the field minsu = \['x'\]; it must have how, notebook, keys, and may"),
        ({"minus": "x"}, "minus must be a list, got 'x'"),
        ({"keys": "gap, (RRS"}, r"keys must be a regular expression, got 'gap, \(RRS': missing \)"),
        ({"keys": "gap, {rule}"}, "a pattern in keys must be one of rules, got 'rule'"),
        ({"minus": [r"gap, \g<n>"]}, "a group of keys in .* must be one of rule, got 'n'"),
        ({"of": r"gap, \g<n>"}, "a group of keys in .* must be one of rule, got 'n'"),
        ({"above": 0.1, "at_most": 0.2}, "must have above or at_most, got 0.1 and 0.2"),
        ({"at": {"T": 0.1}, "turn": {"T": "anywhere"}}, "must have at most one of at, change, turn, got at and turn"),
        ({"at": {"T": [0.1]}}, r"at must be like \{ PROPERTY = 0.1 \}, got \{'T': \[0.1\]\}"),
        ({"change": {"T": [0.1]}}, r"change must be like \{ PROPERTY = \[0.1, 1.0\] \}"),
        ({"turn": {"T": "here"}}, "turn must be like .* or .*anywhere"),
    ],
)
def test_a_wrong_field_of_an_evidence_is_named(change, message):
    with pytest.raises(ValueError, match=f"claim 'own-gap', evidence 2:? {message}"):
        read_claim({**PLAIN, "evidence": [GAP, {**GAP, **change}]}, RULES)


def test_criteria_are_those_of_the_statements():
    """Differences and gaps lie above zero; what is claimed to be nothing, or never to happen, is at most rounding."""
    at_most = {
        "hu-greedy-optimal": 1e-9,
        "hu-formula": 0.0,
        "yang-lossless": 1e-12,
        "own-optimal": 1e-4,
        "own-loop": 4.0,
    }
    for claim, evidence in EVIDENCE:
        limit = at_most.get(claim.key)
        above = 0.2 if claim.finding in ("twenty", "twenty-without") else 0.0
        assert evidence.criterion == (Above(above) if limit is None else AtMost(limit)), claim.key
        assert claim.law == (claim.key in at_most)


def test_papers_are_in_the_bibliography():
    entries = (ROOT / "book" / "references.bib").read_text()
    assert all(f"{{{paper.key}," in entries for paper in PAPERS)


@pytest.mark.parametrize("profile", ["ci", "quick", "full"])
@EACH
def test_every_claim_names_values_that_exist(profile, claim, evidence):
    name = evidence.source.notebook
    assert name == SCORES or (ROOT / "notebooks" / f"{name}.ipynb").is_file(), f"{claim.key} names the notebook {name}"
    results = reference(profile)(name)
    assert results is not None, f"{name} has no reference for {profile}"
    assert evidence.source.matching(results)
    if profile != "ci":  # ci may lack a place on an axis
        assert evidence.source.cells(results)


@EACH
def test_cells_say_where_they_were_measured(claim, evidence):
    """On which pair, or on none; no two cells of an evidence have the same properties."""
    cells = evidence.source.cells(reference("full")(evidence.source.notebook))
    for cell in cells:
        assert ("draft" in cell.properties) == (not cell.label.startswith("small example"))
        assert " " not in str(cell.properties.get("draft", ""))
    if "T=0.5" not in str([cell.label for cell in cells]):  # there the draft's own temperature differs
        assert len({cell.without("") for cell in cells}) == len(cells)


@EACH
def test_a_planted_change_of_the_results_changes_the_verdict(claim, evidence):
    """Every value moved to the other side of the limit, and then back: the verdict follows."""
    results = reference("quick")(evidence.source.notebook)
    source, limit = evidence.source, evidence.criterion.limit
    leaf = source.source if isinstance(source, At | Change | Turn) else source

    def shaped(to, places):
        if isinstance(source, Change):
            return [to if place == source.first else 0.0 for place in places]
        if isinstance(source, Turn):
            first, last = source.between or (-1.0, float("inf"))
            top = next(i for i, t in enumerate(places[:-1]) if i and first <= t <= last)
            return [to if i == top else 0.0 for i in range(len(places))] if to > 0 else list(range(len(places)))
        return [to] * len(places)

    def at(key, to, places=None):
        value = results[key]
        if isinstance(value.value, list):
            to = [to] * len(value.value) if places is None else shaped(to, places)
        return dataclasses.replace(value, value=to, interval=None, kind="exact")

    def judged(to):
        to *= leaf.sign
        changed = {}
        for key in leaf.matching(results):
            changed[key] = at(key, to, results[leaf.axis].value if leaf.axis else None)
            changed |= {partner: at(partner, 1.0 if leaf.of else 0.0) for partner in leaf.partners(key)}
        values = {**results.values, **changed}
        read = {evidence.source.notebook: dataclasses.replace(results, values=values)}.get
        return judge((evidence,), read, law=claim.law).verdict

    above, against = isinstance(evidence.criterion, Above), FAILS if claim.law else UNSEEN
    assert judged(limit + 1.0) == (HOLDS if above else against)
    assert judged(limit - 1.0) == (against if above else HOLDS)


def test_the_turn_rests_on_one_cell_of_twelve():
    found = full("hu-turn")
    assert found.verdict == OPEN
    assert found.counts == (1, 11, 0)
    assert found.parts[1].stances == (0,) * 6  # those that test 0.8 to 1


def test_greedy_against_rrs_at_low_temperature_is_a_claim_of_its_own():
    table = json.loads((ROOT / "reference/full/11_temperature.json").read_text())["values"]
    for key, other in (
        ("hu-greedy-cold", "RRS without"),
        ("hu-greedy-cold-with", "bound with"),
        ("hu-greedy-cold-without", "bound without"),
    ):
        entry = table[f"greedy - {other}, same text"]
        assert table["temperatures"]["value"][0] == 0.1
        (cell,) = [cell for cell, _ in full(key).cells]
        assert (cell.value, cell.low, cell.high) == (entry["value"][0], *(end[0] for end in entry["interval"]))


def test_greedy_leads_up_to_a_temperature():
    found = full("hu-greedy")
    assert found.verdict == CONDITION
    (condition,) = found.conditions
    assert condition.name == "T"
    for cell, stance in found.cells:
        if stance:
            assert (cell.properties["T"] <= condition.high) == (stance == 1), cell.label


def test_the_gap_is_that_of_the_papers_rules():
    """Not of token matching, which is none of them."""
    table = json.loads((ROOT / "reference/full/10_main_table.json").read_text())["values"]
    rules = ("RRS", "K-SEQ", "RRS without")
    gaps = [e["value"] for key, e in table.items() if key.startswith("gap, ") and key.split(", ", 3)[3] in rules]
    part = full("hu-gap").parts[1]
    assert len(gaps) == len(part.cells)
    assert [cell.value for cell in part.extremes] == [min(gaps), max(gaps)]


@pytest.mark.parametrize(("finding", "rule"), [("twenty", "RRS"), ("twenty-without", "RRS without")])
def test_twenty_percent_by_value_and_by_interval(finding, rule):
    table = json.loads((ROOT / "reference/full/10_main_table.json").read_text())["values"]
    one = {key.split(", ", 1)[1]: entry["value"] for key, entry in table.items() if key.startswith("one draft, ")}
    by_value = sum(
        table[f"acceptance, {where}, {rule}"]["value"] / alone >= 1.2 - 1e-12 for where, alone in one.items()
    )
    (part,) = full(f"yang-{finding}").parts
    assert len(part.cells) == len(one)
    assert part.met_by_value == by_value
    assert part.stances.count(1) <= by_value


def test_the_lead_of_without_shrinks_with_temperature():
    table = json.loads((ROOT / "reference/full/11_temperature.json").read_text())["values"]
    ends = [table["temperatures"]["value"].index(t) for t in (0.1, 1.5)]
    for cell, _ in full("own-shrinks").cells:
        rule = cell.properties["rule"]
        with_, without = (
            table[f"acceptance, same text, {rule}, {w} replacement"]["value"] for w in ("with", "without")
        )
        cold, hot = (without[i] - with_[i] for i in ends)
        assert cell.value == pytest.approx(cold - hot)


def test_scores_of_the_loop_are_those_of_the_record():
    rows = json.loads((ROOT / f"reference/recorded/{SCORES}/table.json").read_text())["rows"]
    scores = [abs(one["z"]) for row in rows for one in row["scores"]]
    found = full("own-loop")
    assert sorted(cell.value for cell, _ in found.cells) == sorted(scores)
    assert found.pairs == {"smollm2-135m": ["skip4"]}


def test_papers_are_not_contradicted_by_small_models():
    """A claim about models is never refuted here, a formula may be."""
    for profile in ("ci", "quick", "full"):
        for claim in CLAIMS:
            verdict = claim.judge(reference(profile)).verdict
            assert verdict != FAILS or claim.law
            assert verdict != UNSEEN or not claim.law
