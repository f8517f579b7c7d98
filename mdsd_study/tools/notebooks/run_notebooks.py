"""Run the notebooks that are not up to date: two at a time, those that measure time alone.

``python -m mdsd_study.tools.notebooks.run_notebooks --profile ci`` runs all; names choose some; ``-p NAME VALUE`` sets
a parameter.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdsd_study.report.results import PROFILES
from mdsd_study.tools.notebooks.execute import Outcome, Place, run_one
from mdsd_study.tools.notebooks.fingerprint import changed_parts, fingerprint, shared_parts
from mdsd_study.tools.notebooks.notebooks import Notebook, budget_of, check_parameters, chosen_notebooks, read_budget
from mdsd_study.tools.notebooks.project import HERE, Project, ProjectError, mended_by_user


@dataclass(frozen=True)
class Task:
    """One notebook that has to run."""

    notebook: Notebook
    parameters: dict[str, Any]
    parts: dict[str, str]
    why: str


def tasks_to_run(
    project: Project, notebooks: list[Notebook], profile: str, given: dict[str, Any], *, force: bool = False
) -> tuple[list[Task], list[str]]:
    """Split `notebooks` into tasks to run and names that are up to date; refuses parameters they do not declare."""
    shared = shared_parts(project)
    tasks, current = [], []
    for notebook in notebooks:
        parameters = {**given, "profile": profile}
        check_parameters(notebook, parameters)
        parts = fingerprint(project, notebook, parameters, shared)
        record = Place(project.executed(profile), notebook.name).read_record()
        changed = changed_parts(record["parts"], parts) if record else []
        if record and not changed and not force:
            current.append(notebook.name)
            continue
        why = "forced" if force else f"changed: {', '.join(changed)}" if record else "no finished run"
        tasks.append(Task(notebook, parameters, parts, why))
    return tasks, current


def run_tasks(project: Project, tasks: list[Task], profile: str, say: Callable[[str], None]) -> Iterator[Outcome]:
    """Run `tasks` in spawned processes and yield their outcomes: two at a time, then the timing ones one by one."""
    context = multiprocessing.get_context("spawn")
    together = [task for task in tasks if not task.notebook.timing]
    alone = [task for task in tasks if task.notebook.timing]
    for group, workers in ((together, 2), (alone, 1)):
        if not group:
            continue
        with ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=1) as pool:
            waiting: dict[Future[Outcome], Task] = {}
            for task in group:
                say(f"{task.notebook.name}: to run ({task.why}{'; alone' if workers == 1 else ''})")
                future = pool.submit(run_one, project, task.notebook, profile, task.parameters, task.parts)
                waiting[future] = task
            for future in as_completed(waiting):
                error = future.exception()
                name = waiting[future].notebook.name
                yield Outcome(name, 0.0, failure=f"its process ended: {error!r}") if error else future.result()


def publish(project: Project, notebooks: list[Notebook], profile: str) -> None:
    """Copy what each notebook wrote into ``results/``, run just now or reused; two writers of one file are an error."""
    writers: dict[str, str] = {}
    for notebook in notebooks:
        source = Place(project.executed(profile), notebook.name).results
        for path in filter(Path.is_file, source.rglob("*")):
            name = path.relative_to(source).as_posix()
            if name in writers:
                raise ProjectError(f"{writers[name]} and {notebook.name} both write results/{name}")
            writers[name] = notebook.name
        shutil.copytree(source, project.results, dirs_exist_ok=True)


def run(
    project: Project,
    profile: str,
    names: list[str],
    given: dict[str, Any],
    *,
    force: bool = False,
    say: Callable[[str], None] = print,
) -> int:
    """Bring the notebooks up to date and return how many failed."""
    budget = read_budget(project)
    notebooks = chosen_notebooks(project, names)
    for notebook in notebooks:
        budget_of(budget, notebook.name, profile)
    tasks, current = tasks_to_run(project, notebooks, profile, given, force=force)
    if current:
        say(f"up to date ({profile}): {', '.join(current)}")
    failed = []
    for outcome in run_tasks(project, tasks, profile, say):
        allowed = budget_of(budget, outcome.name, profile)
        over = "" if outcome.seconds <= allowed else "  OVER BUDGET"
        state = "FAILED after" if outcome.failure else "took"
        busy = f" ({outcome.processor_seconds:.0f} s of processor time)" if not outcome.failure else ""
        say(f"{outcome.name}: {state} {outcome.seconds:.0f} s{busy} of a budget of {allowed:.0f} s ({profile}){over}")
        if outcome.failure:
            failed.append(outcome)
    for outcome in failed:
        say(f"\n{outcome.name} failed\n{outcome.failure}")
    publish(project, [notebook for notebook in notebooks if notebook.name not in {f.name for f in failed}], profile)
    return len(failed)


def parse_value(text: str) -> Any:
    """A parameter from the command line: JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


@mended_by_user()
def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; 0 if all notebooks are up to date, 1 if one failed, 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="python -m mdsd_study.tools.notebooks.run_notebooks", description=__doc__)
    parser.add_argument("names", nargs="*", help="notebooks to run; all by default")
    parser.add_argument("--profile", choices=PROFILES, default="quick", help="how much to measure")
    parser.add_argument("--force", action="store_true", help="run them even if they are up to date")
    parser.add_argument("-p", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="set a parameter")
    chosen = parser.parse_args(arguments)
    given = {name: parse_value(value) for name, value in chosen.p}
    if "profile" in given:
        parser.error("set the profile by --profile")
    os.environ["PYTHONUNBUFFERED"] = "1"
    return 1 if run(HERE, chosen.profile, chosen.names, given, force=chosen.force) else 0


if __name__ == "__main__":
    sys.exit(main())
