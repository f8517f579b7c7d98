"""The execution record: on what, when and from which commit the book's notebooks were run, and how long they took."""

from collections.abc import Mapping
from typing import Any

from mdsd_study.tools.notebooks.execute import Place
from mdsd_study.tools.notebooks.notebooks import all_notebooks, budget_of, read_budget
from mdsd_study.tools.notebooks.project import Project
from mdsd_study.tools.pages.page_text import markdown_table, page_text
from mdsd_study.tools.reference.write_reference import read_full_run

_FULL = """## The recorded full run

The results of the notebooks at full size are kept with the project, in `reference/full/`; notebooks and the
scorecard show them beside those of this book. The seconds are those on that machine, which other work shared; the
processor time depends little on that. Two at a time, those that measure time alone, the notebooks below need at least
{least:.0f} minutes of an idle machine with two cores.

{table}"""


def _run(name: str, run: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, str]:
    """What the tables of runs show of one, by the heads of their columns."""
    return {
        "notebook": f"[{name}](notebooks/{name}.ipynb)",
        "seconds": f"{run['seconds']:.0f}",
        "of processor time": f"{run['processor_seconds']:.0f}",
        "threads": f"{run['threads']}{', alone' if run['alone'] else ''}",
        "commit": f"`{made['commit']}`",
        "date (UTC)": made["date"][:16].replace("T", " "),
        "machine": f"{made['processor']} ({made['cores']} cores)",
    }


def _table_of_runs(head: list[str], runs: list[dict[str, str]]) -> str:
    return markdown_table(head, [[run[name] for name in head] for run in runs])


def _runs(records: list[dict[str, Any]], budget: dict[str, dict[str, float]]) -> str:
    runs = [
        _run(record["notebook"], record, record["made"])
        | {
            "budget": f"{budget_of(budget, record['notebook'], record['profile']):.0f}",
            "parameters": ", ".join(f"`{key}={value}`" for key, value in record["parameters"].items()),
        }
        for record in records
    ]
    head = ["notebook", "seconds", "of processor time", "budget", "threads", "parameters", "commit", "date (UTC)"]
    return _table_of_runs(head, runs)


def full_run(project: Project) -> str:
    """The section on the recorded full run; nothing if none is recorded."""
    runs = read_full_run(project)
    if not runs:
        return ""
    least = sum(run["processor_seconds"] / (1 if run["alone"] else 2) for run in runs.values()) / 60
    head = ["notebook", "seconds", "of processor time", "threads", "commit", "date (UTC)", "machine"]
    return _FULL.format(least=least, table=_table_of_runs(head, [_run(name, run, run) for name, run in runs.items()]))


def _machines(records: list[dict[str, Any]]) -> str:
    notebooks: dict[tuple[str, str, str], list[str]] = {}
    for record in records:
        made = record["made"]
        notebooks.setdefault((made["processor"], str(made["cores"]), made["system"]), []).append(record["notebook"])
    rows = [(*machine, ", ".join(names)) for machine, names in notebooks.items()]
    return markdown_table(["processor", "logical cores", "system", "notebooks"], rows)


def _versions(records: list[dict[str, Any]]) -> str:
    versions: dict[str, set[str]] = {}
    for record in records:
        for name, version in {**record["made"]["versions"], **record["tools"]}.items():
            versions.setdefault(name, set()).add(version)
    return markdown_table(["package", "version"], [(name, ", ".join(sorted(all_))) for name, all_ in versions.items()])


def render(project: Project, profile: str) -> str:
    """The page: the text beside this module, with the records of the runs."""
    found = [Place(project.executed(profile), notebook.name).read_record() for notebook in all_notebooks(project)]
    records = [record for record in found if record is not None]
    recorded = full_run(project)
    return page_text(
        "execution",
        profile=profile,
        runs=_runs(records, read_budget(project)),
        recorded=recorded and f"{recorded}\n\n",
        machines=_machines(records),
        versions=_versions(records),
    )
