"""Write ``reference/<profile>/`` anew from the results of the notebooks, with the tolerances that they declare."""

import argparse
import json
import shutil
import sys
from typing import Any

from mdsd_study.report.results import PROFILES, read_results, write_json
from mdsd_study.tools.findings import with_findings
from mdsd_study.tools.notebooks.execute import Place
from mdsd_study.tools.notebooks.notebooks import all_notebooks, chosen_notebooks
from mdsd_study.tools.notebooks.project import HERE, Project, ProjectError, mended_by_user
from mdsd_study.tools.reference.reproduce import differences

#: Figures that README.md shows, each with the notebook that draws it; kept in git from the full run, so small.
README_FIGURES = {"06_ladder": "06_verifiers"}
README_FIGURE_BYTES = 200_000


def write_reference(project: Project, profile: str, chosen: list[str]) -> list[str]:
    """Write the references of the `chosen` notebooks, all if none is; returns what differs from the old ones."""
    names = [notebook.name for notebook in chosen_notebooks(project, chosen)]
    changes = []
    for name in names:
        results = read_results(name, folder=project.results)
        if results.profile != profile:
            raise ProjectError(f"results/{name}.json is of the profile {results.profile}, not {profile}")
    folder = project.reference / profile
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / f"{name}.json"
        changes += differences(project, name) if path.is_file() else [f"{path.relative_to(project.root)} is new"]
        shutil.copyfile(project.results / f"{name}.json", path)
    known = {notebook.name for notebook in all_notebooks(project)}
    for path in sorted(folder.glob("*.json")):
        if path.stem not in known:
            path.unlink()
            changes.append(f"{path.relative_to(project.root)} is gone with its notebook")
    return changes


def read_full_run(project: Project) -> dict[str, dict[str, Any]]:
    """What the recorded full run took, by notebook: seconds, processor time, threads, commit, date, machine."""
    path = project.reference / "full_run.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def keep_full_run(project: Project, chosen: list[str]) -> None:
    """Write down what the full run of the `chosen` notebooks took, in ``reference/full_run.json``."""
    kept = read_full_run(project)
    for notebook in chosen_notebooks(project, chosen):
        record = Place(project.executed("full"), notebook.name).read_record()
        if record is None:
            raise ProjectError(f"{notebook.name} has no finished run of the profile full")
        facts = {key: record[key] for key in ("seconds", "processor_seconds", "threads", "alone")}
        made = record["made"]
        kept[notebook.name] = facts | {key: made[key] for key in ("commit", "date", "processor", "cores")}
    known = {notebook.name for notebook in all_notebooks(project)}
    write_json(project.reference / "full_run.json", {name: kept[name] for name in sorted(kept.keys() & known)})


def keep_figures(project: Project, chosen: list[str]) -> None:
    """Copy the figures that README.md shows and the `chosen` notebooks drew, each with the note of its origin."""
    for name in [name for name, notebook in README_FIGURES.items() if not chosen or notebook in chosen]:
        source = project.results / "figures" / f"{name}.png"
        if not source.is_file():
            raise ProjectError(f"{source} is missing, and README.md shows it")
        if source.stat().st_size > README_FIGURE_BYTES:
            raise ProjectError(f"{source} has {source.stat().st_size} bytes; README.md shows at most 200,000")
        target = project.reference / "figures"
        target.mkdir(parents=True, exist_ok=True)
        for path in (source, source.with_suffix(".json")):
            shutil.copyfile(path, target / path.name)


@mended_by_user(FileNotFoundError, ValueError)
def main() -> None:
    """0 if the references were written."""
    parser = argparse.ArgumentParser(prog="python -m mdsd_study.tools.reference.write_reference", description=__doc__)
    parser.add_argument("--profile", choices=PROFILES, required=True)
    parser.add_argument("names", nargs="*", help="notebooks; all by default")
    given = parser.parse_args()
    profile = given.profile
    changes = write_reference(HERE, profile, given.names)
    if profile == "full":
        keep_figures(HERE, given.names)
        keep_full_run(HERE, given.names)
        readme = HERE.root / "README.md"
        readme.write_text(with_findings(HERE, readme.read_text(encoding="utf-8")), encoding="utf-8")
    print("\n".join(changes) or f"reference/{profile}/ is as it was, within the tolerances")


if __name__ == "__main__":
    sys.exit(main())
