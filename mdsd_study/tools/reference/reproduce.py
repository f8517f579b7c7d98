"""Which results there should be, which reference each has, and what differs."""

from mdsd_study.report.reproduction import compare_results
from mdsd_study.report.results import Results, read_results
from mdsd_study.tools.notebooks.notebooks import all_notebooks
from mdsd_study.tools.notebooks.project import Project


def names_to_check(project: Project) -> list[str]:
    """One name for every notebook, results file and reference file, so that none is forgotten on either side."""
    names = {notebook.name for notebook in all_notebooks(project)}
    names |= {path.stem for path in project.results.glob("*.json")}
    results = [_read(project, name)[0] for name in names]
    for profile in {found.profile for found in results if found}:
        names |= {path.stem for path in (project.reference / profile).glob("*.json")}
    return sorted(names)


def differences(project: Project, name: str) -> list[str]:
    """What differs between ``results/NAME.json`` and the reference of the profile it was made with."""
    found, missing = _read(project, name)
    if found is None:
        return missing
    path = project.reference / found.profile / f"{name}.json"
    if not path.is_file():
        return [
            f"{path.relative_to(project.root)} is missing: `make reference PROFILE={found.profile}` writes it from the "
            f"results; if the notebook is gone, delete results/{name}.json"
        ]
    try:
        return compare_results(found, read_results(path))
    except ValueError as error:
        return [str(error)]


def _read(project: Project, name: str) -> tuple[Results | None, list[str]]:
    path = project.results / f"{name}.json"
    if not path.is_file():
        return None, [f"results/{name}.json is missing: `make notebooks` or `make book` writes it"]
    try:
        return read_results(path), []
    except ValueError as error:
        return None, [str(error)]
