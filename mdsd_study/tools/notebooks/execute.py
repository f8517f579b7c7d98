"""Run one notebook in a process of its own, with the number of threads fixed."""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mdsd_study.report.provenance import describe_run, versions
from mdsd_study.report.results import read_results, write_json
from mdsd_study.tools.notebooks.notebooks import Notebook, read_notebook
from mdsd_study.tools.notebooks.project import Project

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "RAYON_NUM_THREADS",
)
_ADDED = {"injected-parameters", "papermill-error-cell-tag"}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Outcome:
    """How the run of one notebook ended."""

    name: str
    seconds: float
    processor_seconds: float = 0.0
    failure: str | None = None


@dataclass(frozen=True)
class Place:
    """Where one notebook's run leaves what it makes."""

    folder: Path
    name: str
    executed: Path = field(init=False)
    record: Path = field(init=False)
    results: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "executed", self.folder / f"{self.name}.ipynb")
        object.__setattr__(self, "record", self.folder / f"{self.name}.run.json")
        object.__setattr__(self, "results", self.folder / f"{self.name}.results")

    def clear(self) -> None:
        """Forget the last run."""
        self.record.unlink(missing_ok=True)
        self.executed.unlink(missing_ok=True)
        shutil.rmtree(self.results, ignore_errors=True)

    def read_record(self) -> dict[str, Any] | None:
        """The record of the last run that went through, or None."""
        if not (self.record.is_file() and self.executed.is_file()):
            return None
        return dict(json.loads(self.record.read_text(encoding="utf-8")))


def _prepare_environment(project: Project, place: Place, threads: int) -> None:
    """For the kernel, which inherits it. Nothing of the user's own configuration may reach a figure or a number."""
    os.environ.update(dict.fromkeys(_THREADS, str(threads)))
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # tqdm without widgets: a page has no use for either
    os.environ["MDSD_RESULTS"] = str(place.results)
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    os.environ["IPYTHONDIR"] = str(project.build / "ipython")
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(project.root), *filter(None, [os.environ.get("PYTHONPATH")])]
    )  # the notebooks run against this checkout, whatever is installed


def _cell_at_fault(cells: list[Any]) -> int | None:
    """The index of the cell that raised, else of the last one that was begun (in it the kernel died)."""
    notes = [cell.metadata.get("papermill", {}) for cell in cells]
    raised = [index for index, note in enumerate(notes) if note.get("exception")]
    begun = [index for index, note in enumerate(notes) if note.get("start_time")]
    return raised[0] if raised else begun[-1] if begun else None


def _describe(error: Exception, executed: Path) -> str:
    """Which cell failed, with what, and where to look."""
    lines = []
    cells = read_notebook(executed).cells if executed.is_file() else []
    index = _cell_at_fault(cells)
    if index is not None:
        # papermill adds the injected parameters and, on an error, cells that tell of it
        added = sum(bool(_ADDED & set(cell.metadata.get("tags", []))) for cell in cells[:index])
        source = cells[index].source.strip().splitlines()
        lines.append(f"cell {index - added + 1} of the notebook (id {cells[index].get('id', '?')}) failed:")
        lines += [f"    {line}" for line in source[:6]] + ["    ..."] * (len(source) > 6)
    name, value = getattr(error, "ename", type(error).__name__), getattr(error, "evalue", str(error))
    lines.append(f"{name}: {value}")
    trace = getattr(error, "traceback", None) or []
    lines += [f"    {line}" for line in _COLOURS.sub("", "\n".join(trace)).splitlines()[-12:]]
    lines.append(f"outputs up to there: {executed}")
    return "\n".join(lines)


def check_results(place: Place, profile: str) -> str | None:
    """What is wrong with the results file that a notebook has to write; None if nothing is."""
    path = place.results / f"{place.name}.json"
    if not path.is_file():
        return f"it wrote no results file {place.name}.json; end it with write_results({place.name!r}, profile, ...)"
    results = read_results(path)
    if results.profile != profile:
        return f"its results file says profile {results.profile!r}, but the notebook ran with {profile!r}"
    if results.parameters.get("profile") != profile:
        return "its results file does not list `profile` among the parameters"
    return None


def paths_shown(executed: Path, paths: Iterable[Path]) -> str | None:
    """Say which code cell shows one of `paths`, folders of this machine that no reader has; None if none does."""
    cells = [cell for cell in read_notebook(executed).cells if cell.cell_type == "code"]
    for number, cell in enumerate(cells, 1):
        text = json.dumps(cell.outputs)
        for path in paths:
            if str(path) in text:
                return f"code cell {number} shows a path of this machine, {path}; print names, and mend what warns"
    return None


def _scrub(executed: Path) -> None:
    """Take this machine's paths out of the executed notebook, which readers download."""
    content = json.loads(executed.read_text(encoding="utf-8"))
    note = content["metadata"]["papermill"]
    note["input_path"] = note["output_path"] = executed.name
    note["environment_variables"] = {}
    executed.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _processor_seconds() -> float:
    """Processor time of this process and of those it started that have ended: the kernel, with all its threads."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def run_one(
    project: Project, notebook: Notebook, profile: str, parameters: dict[str, Any], parts: dict[str, str]
) -> Outcome:
    """Execute `notebook`; leave its outputs, results and record in ``_build/executed/<profile>/``.

    Changes the environment of the process it runs in, so call it in a fresh one. When a cell fails, the outputs up to
    there stay, without a record: such a run is neither reused nor staged.
    """
    import papermill
    from traitlets.config import Config

    place = Place(project.executed(profile), notebook.name)
    place.clear()
    place.results.mkdir(parents=True)
    _prepare_environment(project, place, notebook.threads)
    start, busy = time.perf_counter(), _processor_seconds()
    try:
        papermill.execute_notebook(
            str(notebook.path),
            str(place.executed),
            parameters=parameters,
            kernel_name="python3",
            cwd=str(project.notebooks),
            progress_bar=False,
            log_output=False,
            start_timeout=300,
            config=Config({"KernelManager": {"transport_encryption": "auto"}}),
        )
        failure = check_results(place, profile) or paths_shown(place.executed, (project.root, Path(sys.prefix)))
    except Exception as error:
        failure = _describe(error, place.executed)
    seconds, busy = time.perf_counter() - start, _processor_seconds() - busy
    if failure is None:
        _scrub(place.executed)
        record = {
            "notebook": notebook.name,
            "profile": profile,
            "parameters": parameters,
            "seconds": round(seconds, 2),
            "processor_seconds": round(busy, 2),
            "threads": notebook.threads,
            "alone": notebook.timing,
            "made": describe_run(),
            "tools": versions(("papermill", "nbclient", "ipykernel")),
            "parts": parts,
        }
        write_json(place.record, record)
    return Outcome(notebook.name, seconds, busy, failure)
