"""`make check` on a checkout in which one thing is wrong."""

import json
import shutil
import subprocess
import sys

import pytest

from mdsd_study.report.results import estimate, exact, timing, write_results
from mdsd_study.tools.notebooks.execute import Place
from mdsd_study.tools.notebooks.project import ProjectError
from mdsd_study.tools.pages.execution import full_run
from mdsd_study.tools.reference.reproduce import differences, names_to_check
from mdsd_study.tools.reference.write_reference import keep_figures, keep_full_run, read_full_run, write_reference
from tests.study.tools.conftest import REPOSITORY, write_notebook


@pytest.fixture
def checked(project):
    """One notebook with its results and a reference that agrees."""
    write_notebook(project, "01_good")
    values = {
        "rate": exact(0.75, atol=1e-4),
        "mean": estimate(0.5, (0.4, 0.6), atol=1e-4),
        "seconds": timing(3.0),
    }
    write_results("01_good", "ci", values, {"profile": "ci"}, folder=project.results)
    assert write_reference(project, "ci", []) == ["reference/ci/01_good.json is new"]
    assert differences(project, "01_good") == []
    return project


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def found(project):
    return [text for name in names_to_check(project) for text in differences(project, name)]


@pytest.mark.parametrize(
    ("key", "field", "value", "good"),
    [
        ("rate", "value", 0.7502, False),
        ("rate", "value", 0.75005, True),
        ("mean", "interval", [0.4, 0.61], False),
        ("rate", "tolerance", None, False),
        ("seconds", "value", 300.0, True),
    ],
)
def test_a_planted_change_in_the_reference_is_found(checked, key, field, value, good):
    def plant(content):
        content["values"][key][field] = value

    edit(checked.reference / "ci" / "01_good.json", plant)
    assert (found(checked) == []) is good


def test_missing_files_are_named_with_what_makes_them(checked):
    (checked.reference / "ci" / "01_good.json").unlink()
    assert "reference/ci/01_good.json is missing: `make reference PROFILE=ci`" in found(checked)[0]
    (checked.results / "01_good.json").unlink()
    assert found(checked) == ["results/01_good.json is missing: `make notebooks` or `make book` writes it"]


def test_a_reference_without_a_notebook_is_found_and_cleared(checked):
    shutil.copy(checked.reference / "ci" / "01_good.json", checked.reference / "ci" / "02_gone.json")
    assert found(checked) == ["results/02_gone.json is missing: `make notebooks` or `make book` writes it"]
    assert write_reference(checked, "ci", []) == ["reference/ci/02_gone.json is gone with its notebook"]
    assert found(checked) == []


def test_the_reference_of_one_notebook_can_be_written_alone(checked):
    write_notebook(checked, "02_new")  # has no results yet
    assert write_reference(checked, "ci", ["01_good"]) == []
    with pytest.raises(FileNotFoundError, match="02_new"):
        write_reference(checked, "ci", [])


def test_results_of_another_profile_do_not_become_the_reference(checked):
    with pytest.raises(ProjectError, match=r"results/01_good\.json is of the profile ci, not quick"):
        write_reference(checked, "quick", [])


def test_the_check_itself_fails_on_a_planted_change(checked):
    for name in ("mdsd_core", "mdsd_study", "tests/built", "pyproject.toml"):
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copyfile
        options = {"dirs_exist_ok": True} if copy is shutil.copytree else {}
        copy(REPOSITORY / name, checked.root / name, **options)

    def check():
        command = [sys.executable, "-m", "pytest", "-q", "tests/built/test_reproduction.py"]
        return subprocess.run(command, cwd=checked.root, capture_output=True, text=True)

    good = check()
    assert good.returncode == 0, good.stdout
    assert "1 passed" in good.stdout
    edit(checked.reference / "ci" / "01_good.json", lambda content: content["values"]["rate"].update(value=0.76))
    bad = check()
    assert bad.returncode == 1
    assert "rate is 0.75, the reference 0.76, the tolerance 0.0001" in bad.stdout


def test_the_figure_of_the_readme_is_kept_small_and_with_its_origin(checked):
    figures = checked.results / "figures"
    figures.mkdir()
    (figures / "06_ladder.png").write_bytes(b"x" * 200_001)
    (figures / "06_ladder.json").write_text("{}")
    keep_figures(checked, ["02_other"])
    assert not (checked.reference / "figures").exists()
    with pytest.raises(ProjectError, match=r"has 200001 bytes; README\.md shows at most 200,000"):
        keep_figures(checked, [])
    (figures / "06_ladder.png").write_bytes(b"x")
    keep_figures(checked, ["06_verifiers"])
    kept = sorted(path.name for path in (checked.reference / "figures").iterdir())
    assert kept == ["06_ladder.json", "06_ladder.png"]


def test_what_the_full_run_took_is_kept_and_shown(checked):
    assert full_run(checked) == ""
    with pytest.raises(ProjectError, match="01_good has no finished run of the profile full"):
        keep_full_run(checked, ["01_good"])
    write_notebook(checked, "02_timing", tags=["timing"])
    made = {"commit": "0123456789", "date": "2026-01-02T03:04:05+00:00", "processor": "CPU X", "cores": 2, "system": ""}
    for name, alone in (("01_good", False), ("02_timing", True)):
        place = Place(checked.executed("full"), name)
        place.folder.mkdir(parents=True, exist_ok=True)
        run = {"seconds": 900.0, "processor_seconds": 600.0, "threads": 1, "alone": alone, "made": made}
        place.record.write_text(json.dumps(run))
        shutil.copyfile(checked.notebooks / f"{name}.ipynb", place.executed)
        keep_full_run(checked, [name])  # one after the other: the first stays
    assert list(read_full_run(checked)) == ["01_good", "02_timing"]
    page = full_run(checked)
    assert "at least\n15 minutes" in page  # half of ten, and ten
    assert "| [02_timing](notebooks/02_timing.ipynb) | 900 | 600 | 1, alone | `0123456789` | 2026-01-02 03:04 |" in page
