"""The wall between the rooms, and the budgets of lines: kept by the code as it is, broken by what they are to stop."""

import os
import shutil
import subprocess
import sys

import pytest

from mdsd_study.tools.check import code_lines
from mdsd_study.tools.notebooks.project import HERE, Project

RUN = "from importlinter.cli import lint_imports_command as run; run()"

UPWARD = "A room of mdsd_core imports only rooms below it"
PLANTED = {
    "upward": ("mdsd_core/schemes/base.py", "import mdsd_core.transport.subset", UPWARD),
    "upward, inside a function": ("mdsd_core/trees/shape.py", "def f():\n    from mdsd_core import decoding", UPWARD),
    "upward, through the names of the package": ("mdsd_core/trees/shape.py", "from mdsd_core import generate", UPWARD),
    "upward in the study": (
        "mdsd_study/statistics.py",
        "from mdsd_study.report import results",
        "A room of mdsd_study imports only rooms below it",
    ),
    "a room without a layer": ("mdsd_core/attic.py", "", UPWARD),
    "the study": (
        "mdsd_core/decoding/loop.py",
        "import mdsd_study.statistics",
        "Nothing in mdsd_core knows of mdsd_study",
    ),
    "torch": (
        "mdsd_core/verifiers/kseq.py",
        "import torch",
        "The core up to trees needs numpy, scipy and numba only",
    ),
    "private": (
        "mdsd_core/transport/subset.py",
        "from mdsd_core.schemes import _tables",
        "A private module is imported only inside its package",
    ),
    "private of the library": (
        "mdsd_study/measure/work.py",
        "from mdsd_core._jit import kernel",
        "A private module is imported only inside its package",
    ),
    "a circle": (
        "mdsd_core/verifiers/node.py",
        "from mdsd_core.verifiers.interface import Verifier",
        "No circle, at any depth",
    ),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A folder with a copy of both packages and of their declaration."""
    folder = tmp_path_factory.mktemp("wall")
    for name in ("mdsd_core", "mdsd_study"):
        shutil.copytree(HERE.root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE.root / "pyproject.toml", folder)
    return folder


def lint(folder):
    command = [sys.executable, "-c", RUN, "--no-cache", "--no-logo"]
    environment = os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "200"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_wall_stands(copy):
    status, text = lint(copy)
    assert status == 0, text
    assert "6 kept, 0 broken" in text


@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_import_breaks_the_wall(copy, case):
    file, line, name = PLANTED[case]
    path = copy / file
    before = path.read_text() if path.exists() else None
    path.write_text(f"{before or ''}\n{line}\n")
    try:
        status, text = lint(copy)
    finally:
        path.unlink() if before is None else path.write_text(before)
    assert status == 1, text
    assert f"{name} BROKEN" in text


def test_every_module_counts_once():
    budgets = HERE.declared()["tool"]["mdsd"]["budgets"].values()
    counted = [path for budget in budgets for name in budget["modules"] for path in code_lines.sources(HERE, name)]
    files = [path for name in ("mdsd_core", "mdsd_study") for path in code_lines.sources(HERE, name)]
    assert sorted(counted) == sorted(set(files) - {HERE.root / "mdsd_core" / "__init__.py"})


@pytest.mark.parametrize(("budget", "status", "words"), [(3, 0, "3 of 3 lines"), (2, 1, "(TOO MANY)")])
def test_a_part_above_its_budget_fails(tmp_path, monkeypatch, capsys, budget, status, words):
    (tmp_path / "pyproject.toml").write_text(f'[tool.mdsd.budgets.part]\nlines = {budget}\nmodules = ["one", "two"]\n')
    (tmp_path / "one.py").write_text('"""Words."""\n\nA = """\n"""  # two lines\n')
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "three.py").write_text("# a comment\nB = 1\n")
    monkeypatch.setattr(code_lines, "HERE", Project(tmp_path))
    assert code_lines.main() == status
    assert words in capsys.readouterr().out
