"""The driver, on small notebooks that it really runs."""

import json
import shutil

import nbformat
import pytest

from mdsd_study.report.results import exact, read_results, write_results
from mdsd_study.tools.notebooks.execute import Place, check_results, paths_shown
from mdsd_study.tools.notebooks.fingerprint import fingerprint, shared_parts
from mdsd_study.tools.notebooks.notebooks import Notebook, all_notebooks
from mdsd_study.tools.notebooks.project import ProjectError
from mdsd_study.tools.notebooks.run_notebooks import main, parse_value, run, tasks_to_run
from mdsd_study.tools.stage import check_notebooks, refuse_executed
from tests.study.tools.conftest import make_project, write_notebook

THREADS = "import os\nprint(os.environ['OMP_NUM_THREADS'], os.environ['NUMBA_NUM_THREADS'])"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """One run of five notebooks: project, number of failures, what was said."""
    project = make_project(tmp_path_factory.mktemp("driver") / "tiny")
    write_notebook(project, "01_good", THREADS)
    write_notebook(project, "02_fails", "first = 1", "# Text", "first / 0", "first = 2")
    write_notebook(project, "03_dies", "import os", "os._exit(3)")
    write_notebook(project, "05_timing", THREADS, tags=["timing"], threads=2)
    write_notebook(project, "06_timing", tags=["timing"])
    said = []
    failed = run(project, "ci", [], {}, say=said.append)
    return project, failed, "\n".join(said)


def executed(project, name):
    return nbformat.read(project.executed("ci") / f"{name}.ipynb", as_version=4)


def test_failures_are_counted_and_the_others_still_run(ran):
    project, failed, said = ran
    assert failed == 2
    assert all(f"{name} failed\n" in said for name in ("02_fails", "03_dies"))
    assert read_results("01_good", folder=project.results).profile == "ci"
    assert read_results("06_timing", folder=project.results).parameters == {"profile": "ci", "seed": 0}


def test_the_failing_cell_is_named(ran):
    *_, said = ran
    text = said.split("02_fails failed\n")[1]
    assert "cell 5 of the notebook (id 02_fails-4) failed:\n    first / 0" in text
    assert "ZeroDivisionError: division by zero" in text


def test_the_cell_in_which_the_kernel_died_is_named(ran):
    *_, said = ran
    text = said.split("03_dies failed\n")[1].split("failed\n")[0]
    assert "cell 4 of the notebook (id 03_dies-3)" in text
    assert "DeadKernelError" in text


def test_a_notebook_must_write_its_results_with_its_profile(tmp_path):
    place = Place(tmp_path, "x")
    place.results.mkdir()
    assert "it wrote no results file x.json" in check_results(place, "ci")
    values = {"rate": exact(0.75, atol=1e-4)}
    write_results("x", "quick", values, {"profile": "quick"}, folder=place.results)
    assert "says profile 'quick', but the notebook ran with 'ci'" in check_results(place, "ci")
    write_results("x", "ci", values, {"seed": 0}, folder=place.results)
    assert "does not list `profile`" in check_results(place, "ci")
    write_results("x", "ci", values, {"profile": "ci"}, folder=place.results)
    assert check_results(place, "ci") is None


def test_a_path_of_this_machine_is_not_shown(ran):
    project, *_ = ran
    path = project.executed("ci") / "01_good.ipynb"
    assert paths_shown(path, [project.root]) is None
    content = nbformat.read(path, as_version=4)
    content.cells[3].outputs = [nbformat.v4.new_output("stream", name="stderr", text=f"{project.root}/x.py: Warning")]
    nbformat.write(content, project.root / "spoilt.ipynb")
    assert "code cell 3 shows a path" in paths_shown(project.root / "spoilt.ipynb", [project.root])


@pytest.mark.parametrize("name", ["02_fails", "03_dies"])
def test_the_partial_output_stays_and_is_not_staged(ran, name):
    project, _, said = ran
    path = project.executed("ci") / f"{name}.ipynb"
    assert str(path) in said
    assert executed(project, name).cells[2].execution_count is not None
    assert not (project.executed("ci") / f"{name}.run.json").exists()
    assert refuse_executed(path)
    notebook = Notebook(path, executed(project, name))
    with pytest.raises(ProjectError, match=name):
        check_notebooks(project, [notebook], "ci")


def test_what_took_how_long_against_which_budget_is_said(ran):
    *_, said = ran
    assert "01_good: took " in said
    assert " s of processor time) of a budget of 30 s (ci)" in said


def test_timing_notebooks_run_alone(ran):
    project, *_ = ran
    spans = {}
    for path in project.notebooks.glob("*.ipynb"):
        note = executed(project, path.stem).metadata.papermill
        spans[path.stem] = (note.start_time, note.end_time)  # ISO dates of one zone: their order is that of time
    for name in ("05_timing", "06_timing"):
        start, end = spans.pop(name)
        assert all(end < other[0] or other[1] < start for other in spans.values()), name


def test_threads_are_fixed(ran):
    project, *_ = ran
    for name, threads in (("01_good", "1 1\n"), ("05_timing", "2 2\n")):
        cell = next(cell for cell in executed(project, name).cells if cell.source == THREADS)
        assert cell.outputs[0].text == threads


def test_the_profile_is_injected_and_no_path_of_the_machine_is_left(ran):
    project, *_ = ran
    content = executed(project, "01_good")
    assert any('profile = "ci"' in cell.source for cell in content.cells)
    assert str(project.root) not in (project.executed("ci") / "01_good.ipynb").read_text()
    assert content.metadata.kernelspec.name == "python3"


def test_the_record_says_what_ran(ran):
    project, *_ = ran
    record = json.loads((project.executed("ci") / "05_timing.run.json").read_text())
    assert record["alone"] is True
    assert record["threads"] == 2
    assert record["parameters"] == {"profile": "ci"}
    assert 0 < record["processor_seconds"] < 10 * record["seconds"]
    assert {"commit", "date", "processor", "versions"} <= record["made"].keys()


def tasks(project, given=None, **options):
    found, _ = tasks_to_run(project, all_notebooks(project), "ci", given or {}, **options)
    return {task.notebook.name: task.why for task in found}


@pytest.fixture
def finished(ran, tmp_path):
    """A copy of the project of `ran` in which all is up to date."""
    project = make_project(tmp_path / "tiny")
    shutil.copytree(ran[0].root, project.root, dirs_exist_ok=True)
    for name in ("02_fails", "03_dies"):
        (project.notebooks / f"{name}.ipynb").unlink()
    assert tasks(project) == {}
    return project


def test_results_of_a_reused_run_are_put_back(finished):
    shutil.rmtree(finished.results)
    assert run(finished, "ci", [], {}, say=lambda text: None) == 0
    assert read_results("01_good", folder=finished.results)["rate"].value == 0.75


@pytest.mark.parametrize(
    ("path", "text", "part"),
    [
        ("mdsd_core/rules.py", "rule = 2\n", "mdsd_core"),
        ("mdsd_core/new.py", "", "mdsd_core"),
        ("mdsd_study/new.py", "", "mdsd_study"),
        ("mdsd_study/benchmarks/speed.py", "", "mdsd_study"),
        ("requirements.lock", "numpy==2.4.7\n", "lock"),
        ("reference/ci/continuations/mt_bench.json", "[]", "inputs"),
        ("notebooks/helper.py", "x = 1", "inputs"),
    ],
)
def test_a_change_of_what_they_depend_on_runs_them_again(finished, path, text, part):
    target = finished.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    assert tasks(finished) == dict.fromkeys(("01_good", "05_timing", "06_timing"), f"changed: {part}")


def test_what_they_do_not_depend_on_does_not_run_them_again(finished):
    (finished.reference / "ci").mkdir(parents=True)
    (finished.reference / "ci" / "01_good.json").write_text("{}")  # they are compared with it, they do not read it
    (finished.root / "README.md").write_text("new")
    (finished.root / "mdsd_study" / "tools").mkdir(parents=True)
    (finished.root / "mdsd_study" / "tools" / "stage.py").write_text("")
    for path in finished.root.rglob("*.py"):
        path.touch()
    path = finished.notebooks / "01_good.ipynb"
    content = nbformat.read(path, as_version=4)
    content.cells[1].execution_count = 7
    content.cells[1].outputs = [nbformat.v4.new_output("stream", text="left by an editor")]
    nbformat.write(content, path)
    assert tasks(finished) == {}


def test_a_notebook_runs_again_when_the_full_run_it_shows_changes(finished):
    (finished.reference / "full").mkdir(parents=True)
    (finished.reference / "full" / "01_good.json").write_text("{}")
    assert tasks(finished) == {"01_good": "changed: full run"}
    shared = shared_parts(finished)
    notebook = all_notebooks(finished)[0]
    assert "full run" not in fingerprint(finished, notebook, {"profile": "full"}, shared)  # it makes that file


def test_a_changed_notebook_other_parameters_or_force_run_it_again(finished):
    path = finished.notebooks / "01_good.ipynb"
    content = nbformat.read(path, as_version=4)
    content.cells[2].source += "\n# more"
    nbformat.write(content, path)
    assert tasks(finished) == {"01_good": "changed: notebook"}
    assert tasks(finished, {"seed": 1})["06_timing"] == "changed: parameters"
    assert tasks(finished, force=True)["06_timing"] == "forced"
    (finished.executed("ci") / "06_timing.ipynb").unlink()
    assert tasks(finished)["06_timing"] == "no finished run"


def test_an_unknown_parameter_is_refused(finished):
    with pytest.raises(ProjectError, match="01_good has no parameter sede; it declares profile, seed"):
        run(finished, "ci", ["01_good"], {"sede": 1})
    write_notebook(finished, "07_bare", results=False)
    path = finished.notebooks / "07_bare.ipynb"
    content = nbformat.read(path, as_version=4)
    content.cells[1].metadata.tags = []
    nbformat.write(content, path)
    with pytest.raises(ProjectError, match="07_bare has no parameter profile; it declares none"):
        run(finished, "ci", ["07_bare"], {})


def test_an_unknown_notebook_and_a_missing_budget_are_refused(finished):
    with pytest.raises(ProjectError, match="no notebook called 09; there are 01_good"):
        run(finished, "ci", ["09"], {})
    (finished.notebooks / "budget.toml").write_text("")
    with pytest.raises(ProjectError, match="01_good has no budget"):
        run(finished, "ci", [], {})
    (finished.notebooks / "budget.toml").write_text('"01_good" = { ci = 3 }')
    with pytest.raises(ProjectError, match="seconds for each of ci, quick, full"):
        run(finished, "ci", [], {})


def test_two_writers_of_one_file_are_refused(finished):
    shutil.copy(
        finished.executed("ci") / "01_good.results" / "01_good.json", finished.executed("ci") / "06_timing.results"
    )
    with pytest.raises(ProjectError, match=r"01_good and 06_timing both write results/01_good\.json"):
        run(finished, "ci", [], {}, say=lambda text: None)


def test_values_on_the_command_line():
    assert [parse_value(text) for text in ("3", "0.5", "true", "[1, 2]", "smollm2-135m")] == [
        3,
        0.5,
        True,
        [1, 2],
        "smollm2-135m",
    ]


def test_a_wrong_call_ends_with_2(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["--profile", "ci", "no_such_notebook"])
    assert "error: " in capsys.readouterr().err
