"""The notebooks of the study: which there are, what they declare, what they may cost.

A notebook has a cell tagged ``parameters`` that sets at least ``profile``. In its metadata, ``"tags": ["timing"]`` says
that it measures time and must run alone, ``"threads": 2`` that it needs more than one thread.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from mdsd_study.report.results import PROFILES
from mdsd_study.tools.notebooks.project import Project, ProjectError


@dataclass(frozen=True)
class Notebook:
    """One notebook's source."""

    path: Path
    content: nbformat.NotebookNode

    @property
    def name(self) -> str:
        """The file's name without suffix."""
        return self.path.stem

    @property
    def timing(self) -> bool:
        """Whether it measures time, so that nothing else may run beside it."""
        return "timing" in self.content.metadata.get("tags", [])

    @property
    def threads(self) -> int:
        """The number of threads of its numerical libraries."""
        return int(self.content.metadata.get("threads", 1))

    def source(self) -> dict[str, Any]:
        """All that a reader wrote: cells and metadata, without what a run or an editor leaves behind."""
        cells = [
            {"type": cell.cell_type, "source": cell.source, "tags": cell.metadata.get("tags", [])}
            for cell in self.content.cells
        ]
        return {"cells": cells, "tags": self.content.metadata.get("tags", []), "threads": self.threads}


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """A notebook of format 4, or a :class:`ProjectError` that names the file."""
    try:
        return nbformat.read(path, as_version=4)
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, OSError) as error:
        raise ProjectError(f"{path} cannot be read as a notebook: {error}") from error


def all_notebooks(project: Project) -> list[Notebook]:
    """All notebooks of `project`, in the order of their names."""
    paths = sorted(project.notebooks.glob("*.ipynb"))
    if not paths:
        raise ProjectError(f"there are no notebooks in {project.notebooks}")
    return [Notebook(path, read_notebook(path)) for path in paths]


def chosen_notebooks(project: Project, names: list[str]) -> list[Notebook]:
    """Those called `names` (with or without ``.ipynb``), or all if `names` is empty."""
    notebooks = all_notebooks(project)
    wanted = {Path(name).name.removesuffix(".ipynb") for name in names}
    unknown = wanted - {notebook.name for notebook in notebooks}
    if unknown:
        known = ", ".join(notebook.name for notebook in notebooks)
        raise ProjectError(f"no notebook called {', '.join(sorted(unknown))}; there are {known}")
    return [notebook for notebook in notebooks if not wanted or notebook.name in wanted]


def check_parameters(notebook: Notebook, parameters: dict[str, Any]) -> None:
    """Refuse a parameter that the notebook does not declare: papermill itself only warns."""
    import papermill

    declared = papermill.inspect_notebook(str(notebook.path))
    unknown = [name for name in parameters if name not in declared]
    if unknown:
        known = ", ".join(sorted(declared)) or "none: it has no cell tagged `parameters`"
        raise ProjectError(f"{notebook.name} has no parameter {', '.join(unknown)}; it declares {known}")


def read_budget(project: Project) -> dict[str, dict[str, float]]:
    """Seconds that each notebook may take, by notebook and profile, from ``notebooks/budget.toml``."""
    path = project.notebooks / "budget.toml"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ProjectError(f"the budget {path} cannot be read: {error}") from error
    for name, seconds in content.items():
        if not isinstance(seconds, dict) or set(seconds) != set(PROFILES):
            raise ProjectError(f"{path}: {name} must give seconds for each of {', '.join(PROFILES)}")
    return content


def budget_of(budget: dict[str, dict[str, float]], name: str, profile: str) -> float:
    """The seconds of one notebook; a notebook without a budget is an error."""
    if name not in budget:
        raise ProjectError(f"{name} has no budget; add a line to notebooks/budget.toml")
    return float(budget[name][profile])
