"""The execution record: on what, when and from which commit the book's notebooks were run, and how long they took."""

from typing import Any

from mdsd_study.tools.notebooks.execute import Place
from mdsd_study.tools.notebooks.notebooks import all_notebooks, budget_of, read_budget
from mdsd_study.tools.notebooks.project import Project
from mdsd_study.tools.reference.write_reference import read_full_run

_INTRODUCTION = """# Execution record

Every notebook of this book was run by the command `make book PROFILE={profile}`, each in a process of its own with the
number of threads given below. Notebooks that measure time ran alone, the others two at a time. A notebook is run again
only when its text, its parameters, the library's sources, its inputs or the installed versions change; the commit and
the date are therefore those of its own last run.
"""


def _table(head: list[str], rows: list[list[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _runs(records: list[dict[str, Any]], budget: dict[str, dict[str, float]]) -> str:
    rows = []
    for record in records:
        name = record["notebook"]
        parameters = ", ".join(f"`{key}={value}`" for key, value in record["parameters"].items())
        allowed = budget_of(budget, name, record["profile"])
        made = record["made"]
        alone = ", alone" if record["alone"] else ""
        rows.append(
            [
                f"[{name}](notebooks/{name}.ipynb)",
                f"{record['seconds']:.0f}",
                f"{record['processor_seconds']:.0f}",
                f"{allowed:.0f}",
                f"{record['threads']}{alone}",
                parameters,
                f"`{made['commit']}`",
                made["date"][:16].replace("T", " "),
            ]
        )
    return _table(
        ["notebook", "seconds", "of processor time", "budget", "threads", "parameters", "commit", "date (UTC)"], rows
    )


_FULL = """The results of the notebooks at full size are kept with the project, in `reference/full/`; notebooks and the
scorecard show them beside those of this book. The seconds are those on that machine, which other work shared; the
processor time depends little on that. Two at a time, those that measure time alone, the notebooks below need at least
{least:.0f} minutes of an idle machine with two cores.
"""


def full_run(project: Project) -> list[str]:
    """The section on the recorded full run; nothing if none is recorded."""
    runs = read_full_run(project)
    if not runs:
        return []
    rows = [
        [
            f"[{name}](notebooks/{name}.ipynb)",
            f"{run['seconds']:.0f}",
            f"{run['processor_seconds']:.0f}",
            f"{run['threads']}{', alone' if run['alone'] else ''}",
            f"`{run['commit']}`",
            run["date"][:16].replace("T", " "),
            f"{run['processor']} ({run['cores']} cores)",
        ]
        for name, run in runs.items()
    ]
    least = sum(run["processor_seconds"] / (1 if run["alone"] else 2) for run in runs.values()) / 60
    head = ["notebook", "seconds", "of processor time", "threads", "commit", "date (UTC)", "machine"]
    return ["## The recorded full run", _FULL.format(least=least), _table(head, rows)]


def _machines(records: list[dict[str, Any]]) -> str:
    seen: dict[tuple[str, int, str], list[str]] = {}
    for record in records:
        made = record["made"]
        seen.setdefault((made["processor"], made["cores"], made["system"]), []).append(record["notebook"])
    rows = [[processor, cores, system, ", ".join(names)] for (processor, cores, system), names in seen.items()]
    return _table(["processor", "logical cores", "system", "notebooks"], rows)


def _versions(records: list[dict[str, Any]]) -> str:
    seen: dict[str, set[str]] = {}
    for record in records:
        for name, version in {**record["made"]["versions"], **record["tools"]}.items():
            seen.setdefault(name, set()).add(version)
    return _table(["package", "version"], [[name, ", ".join(sorted(found))] for name, found in seen.items()])


def render(project: Project, profile: str) -> str:
    """The page as Markdown."""
    records = []
    for notebook in all_notebooks(project):
        record = Place(project.executed(profile), notebook.name).read_record()
        if record is not None:
            records.append(record)
    parts = [
        _INTRODUCTION.format(profile=profile),
        "## Runs",
        _runs(records, read_budget(project)),
        *full_run(project),
        "## Machine",
        _machines(records),
        "## Versions",
        _versions(records),
        "All other versions are those of `requirements.lock`, which pins the whole environment.",
    ]
    return "\n\n".join(parts) + "\n"
