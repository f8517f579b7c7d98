"""The recorded full run holds what the experiments ask for: pairs, tasks, temperatures, n, designs, trees."""

from pathlib import Path

import pytest

from mdsd_study.report.recorded_runs import full_results, read_record
from mdsd_study.statistics import ENOUGH_PROMPTS

REFERENCE = Path(__file__).resolve().parents[3] / "reference"


def full(name):
    found = full_results(name, reference=REFERENCE)
    assert found is not None, f"no full run of {name} is kept"
    return found


def test_the_main_table_has_all_pairs_tasks_and_rules_with_intervals_and_marks():
    run = full("10_main_table")
    drafts, tasks = run["drafts"].value, run["tasks"].value
    assert drafts == ["skip2", "skip4", "skip6", "skip8", "ngram"]
    assert {"mt_bench", "human_eval", "asdiv", "xsum"} <= set(tasks)  # German where its Debian package is installed
    assert min(run["prompts"].value) >= ENOUGH_PROMPTS
    assert run.parameters["temperature"] == 0.7
    assert run.parameters["n"] == 3
    rules = ("RRS", "K-SEQ", "token matching", "RRS without", "greedy")
    bounds = ("with replacement: bound", "without replacement: bound", "greedy drafts: bound")
    for cell in (f"{draft}, {task}" for draft in drafts for task in tasks):
        assert all(run[f"acceptance, {cell}, {label}"].interval for label in (*rules, *bounds))
        assert all(run[f"gap, {cell}, {label}"].interval for label in rules if label != "greedy")
        assert all(run[f"more than one draft, {cell}, {label}"].interval for label in ("RRS", "K-SEQ", "RRS without"))
        own = run[f"acceptance, {cell}, greedy"].value
        assert own == pytest.approx(run[f"acceptance, {cell}, greedy drafts: bound"].value, abs=1e-9)
        for label in ("bound: without - with replacement", "RRS: without - with replacement", "greedy - RRS without"):
            assert run[f"{label}, {cell}"].interval
            assert 0 <= run[f"Holm p, {label}, {cell}"].value <= 1


def test_the_temperatures_on_text_of_the_same_and_on_fixed_text():
    run = full("11_temperature")
    temperatures = run["temperatures"].value
    assert temperatures == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5]
    assert run["prompts"].value >= ENOUGH_PROMPTS
    for kind in ("same", "fixed"):
        for label in ("bound, without replacement", "RRS, with replacement", "greedy drafts (bound and rule)"):
            assert len(run[f"acceptance, {kind} text, {label}"].value) == len(temperatures)
        assert len(run[f"greedy - RRS without, {kind} text"].value) == len(temperatures)
        assert len(run[f"overlap, {kind} text"].value) == len(temperatures)


def test_one_to_ten_drafts():
    run = full("12_number_of_drafts")
    assert run["drafts"].value == list(range(1, 11))
    assert run["prompts"].value >= ENOUGH_PROMPTS
    for label in ("RRS, with replacement", "RRS, without replacement", "K-SEQ"):
        assert len(run[f"gap, {label}"].value) == 10


def test_the_designs_and_the_rules_for_the_draft_temperature():
    run = full("13_design_of_drafts")
    designs = ("sequential", "with replacement", "conditioned", "greedy", "top 1 + sequential", "top 2 + sequential")
    sources = [key.removeprefix("rate, greedy, n=4, ") for key in run if key.startswith("rate, greedy, n=4, ")]
    assert len(sources) >= 3
    for source in sources:
        assert all(run[f"rate, {design}, n=4, {source}"].interval for design in designs)
        for rule in ("held out", "leader", "best in hindsight"):
            assert run[f"gain, beta, {rule}, n=4, {source}"].interval
    assert any(key.startswith("expectation, ") for key in run)


def test_three_ways_above_the_bound():
    run = full("17_above_the_bound")
    for cause in ("duplicates skipped", "formula of the other law", "noise alone"):
        assert run[f"counted, {cause}"].interval
        assert run[f"expected, {cause}"].interval is None


def test_the_optimal_verifiers_in_trees_and_what_they_cost():
    record = read_record("16_closing_the_gap", path=REFERENCE / "recorded" / "16_closing_the_gap" / "table.json")
    assert record.parameters["texts"] >= ENOUGH_PROMPTS
    for drafts in ("with", "without"):
        for rule in ("node", "path"):
            for tree in ("2,2,2,2", "4,4,4"):
                gains = [row for row in record.rows if row["rule"] == f"optimal ({rule}), {drafts}" and "gain" in row]
                assert tree in {row["tree"] for row in gains}
        assert any(row["rule"] == f"optimal (node), {drafts}" and "decision" in row for row in record.rows)
