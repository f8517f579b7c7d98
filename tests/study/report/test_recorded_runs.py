"""Recorded tables: written by a full run, taken over into the repository, shown with machine, commit and date."""

import json

import pytest

from mdsd_study.report.recorded_runs import full_results, read_record, recorded_file, write_record
from mdsd_study.report.results import exact, write_results
from mdsd_study.tools.notebooks.project import Project, ProjectError
from mdsd_study.tools.reference.keep_record import keep_record

ROWS = [{"cell": "a", "speed": 2.0}, {"cell": "b", "speed": 3.0}]


def test_a_record_goes_from_a_full_run_into_the_repository(tmp_path):
    project = Project(tmp_path)
    assert read_record("15_x", path=recorded_file("15_x", project.reference)) is None
    write_record("15_x", ROWS, {"profile": "full", "prompts": 12}, folder=project.results / "recorded")
    kept = keep_record(project, "15_x")
    record = read_record("15_x", path=kept)
    assert record.rows == ROWS
    assert record.row(cell="b")["speed"] == 3.0
    assert record.parameters["prompts"] == 12
    assert record.made["commit"] in record.line
    assert record.made["processor"] in record.line
    assert kept in project.reference.glob("*/*/**/*")  # what makes notebooks run anew when it changes
    assert record.line.endswith(".")
    with_remark = read_record("15_x", path=keep_record(project, "15_x", "Other work ran beside it."))
    assert with_remark.rows == ROWS
    assert with_remark.line == f"{record.line} Other work ran beside it."
    with pytest.raises(KeyError, match="0 rows"):
        record.row(cell="c")


def test_what_is_no_full_record_is_refused(tmp_path):
    project = Project(tmp_path)
    with pytest.raises(ProjectError, match="--profile full"):
        keep_record(project, "15_x")
    write_record("15_x", ROWS, {"profile": "quick"}, folder=project.results / "recorded")
    with pytest.raises(ProjectError, match="profile quick"):
        keep_record(project, "15_x")
    write_record("15_x", [{"text": "x" * 300_000}], {"profile": "full"}, folder=project.results / "recorded")
    with pytest.raises(ProjectError, match="at most"):
        keep_record(project, "15_x")
    with pytest.raises(ValueError, match="at least one row"):
        write_record("15_x", [], {}, folder=tmp_path)
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"format": 1, "name": "16_x", "rows": ROWS, "parameters": {}, "made": {}}))
    with pytest.raises(ValueError, match="not a record of 15_x"):
        read_record("15_x", path=path)


def test_the_results_of_the_full_run_are_read_where_they_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("MDSD_RESULTS", str(tmp_path / "results"))
    kept = tmp_path / "reference" / "full"
    assert full_results("12_x", "quick", reference=kept.parent) is None
    write_results("12_x", "full", {"rate": exact(0.5, atol=0.0)}, {"profile": "full"}, folder=kept)
    write_results("12_x", "full", {"rate": exact(0.75, atol=0.0)}, {"profile": "full"})
    assert full_results("12_x", "quick", reference=kept.parent)["rate"].value == 0.5
    assert full_results("12_x", "full", reference=kept.parent)["rate"].value == 0.75  # the run that is just made
