"""Write ``reference/<profile>/`` anew from the results of the notebooks, with the tolerances that they declare."""

import argparse
import shutil
import sys

from mdsd_core.study.results import PROFILES, read_results
from tools.notebooks import all_notebooks, chosen_notebooks
from tools.project import HERE, Project, ProjectError
from tools.reproduce import differences

#: Figures that README.md shows, each called as the notebook that draws it; kept in git, so small.
README_FIGURES = ("01_first_look",)
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


def keep_figures(project: Project, chosen: list[str]) -> None:
    """Copy the figures that README.md shows, each with the note of where it comes from."""
    for name in [name for name in README_FIGURES if not chosen or name in chosen]:
        source = project.results / "figures" / f"{name}.png"
        if not source.is_file():
            raise ProjectError(f"{source} is missing, and README.md shows it")
        if source.stat().st_size > README_FIGURE_BYTES:
            raise ProjectError(f"{source} has {source.stat().st_size} bytes; README.md shows at most 200,000")
        target = project.reference / "figures"
        target.mkdir(parents=True, exist_ok=True)
        for path in (source, source.with_suffix(".json")):
            shutil.copyfile(path, target / path.name)


def main() -> int:
    """0 if the references were written."""
    parser = argparse.ArgumentParser(prog="python -m tools.write_reference", description=__doc__)
    parser.add_argument("--profile", choices=PROFILES, required=True)
    parser.add_argument("names", nargs="*", help="notebooks; all by default")
    given = parser.parse_args()
    profile = given.profile
    try:
        changes = write_reference(HERE, profile, given.names)
        if profile == "quick":
            keep_figures(HERE, given.names)
    except (ProjectError, FileNotFoundError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(changes) or f"reference/{profile}/ is as it was, within the tolerances")
    return 0


if __name__ == "__main__":
    sys.exit(main())
