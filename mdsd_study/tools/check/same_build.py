"""Did two checkouts make the same book? ``python -m mdsd_study.tools.check.same_build A B --profile quick``.

Compares what the notebooks of both left: figures byte by byte, results within their tolerances. Figures of a notebook
tagged ``timing`` show measured times; they must be there on both sides and may differ.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from mdsd_study.report.reproduction import compare_results
from mdsd_study.report.results import PROFILES, read_results
from mdsd_study.tools.notebooks.execute import Place
from mdsd_study.tools.notebooks.notebooks import Notebook, all_notebooks
from mdsd_study.tools.notebooks.project import Project, mended_by_user


def _figures(place: Place) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (place.results / "figures").glob("*.png")}


def _differences(notebook: Notebook, one: Place, other: Place) -> Iterator[str]:
    for place in (one, other):
        if place.read_record() is None:
            yield f"{notebook.name} was not executed in {place.folder}"
            return
    found, wanted = (read_results(notebook.name, folder=place.results) for place in (one, other))
    yield from compare_results(found, wanted)
    left, right = _figures(one), _figures(other)
    for name in sorted(left.keys() ^ right.keys()):
        yield f"{notebook.name}: {name} is on one side only"
    if not notebook.timing:
        for name in sorted(left.keys() & right.keys()):
            if left[name] != right[name]:
                yield f"{notebook.name}: {name} is not the same picture"


def compare_builds(one: Project, other: Project, profile: str) -> tuple[int, list[str]]:
    """How many figures were compared byte by byte, and all that differs, one line each."""
    notebooks = all_notebooks(one)
    names = {notebook.name for notebook in notebooks} ^ {notebook.name for notebook in all_notebooks(other)}
    lines = [f"{name} is a notebook on one side only" for name in sorted(names)]
    compared = 0
    for notebook in (notebook for notebook in notebooks if notebook.name not in names):
        places = [Place(project.executed(profile), notebook.name) for project in (one, other)]
        lines += _differences(notebook, *places)
        compared += 0 if notebook.timing else len(_figures(places[0]))
    return compared, lines


@mended_by_user()
def main(arguments: list[str] | None = None) -> int:
    """0 if figures and results are the same, 1 if not, 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="python -m mdsd_study.tools.check.same_build", description=__doc__)
    parser.add_argument(
        "checkouts", nargs=2, type=Path, metavar="CHECKOUT", help="folders in which `make book` was run"
    )
    parser.add_argument("--profile", choices=PROFILES, default="quick")
    given = parser.parse_args(arguments)
    one, other = (Project(path.resolve()) for path in given.checkouts)
    compared, lines = compare_builds(one, other, given.profile)
    print("\n".join(lines) or f"the same: {compared} pictures byte by byte, and all results within their tolerances")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
