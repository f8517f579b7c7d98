"""When is an executed notebook still good? When nothing it depends on has changed: by content, never by time stamps."""

import platform
from pathlib import Path
from typing import Any

from mdsd_core.disk_cache import digest_of_files, key_of, sources_in
from mdsd_study.report.provenance import study_sources, versions
from mdsd_study.tools.notebooks.notebooks import Notebook
from mdsd_study.tools.notebooks.project import Project


def _inputs(project: Project) -> list[Path]:
    """What notebooks read: files in folders below ``reference/<profile>/``, and data files beside the notebooks.

    The reference *values* (``reference/<profile>/NAME.json``) and the figures are none of them: a notebook that read
    them would be compared with itself. That of the recorded full run is shown by its notebook, see :func:`fingerprint`.
    """
    found = [path for path in project.reference.glob("*/*/**/*") if path.is_file()]
    if project.notebooks.is_dir():
        own = {".ipynb", ".pyc"}
        found += [p for p in project.notebooks.iterdir() if p.is_file() and p.suffix not in own]
    return [path for path in found if path.name != "budget.toml"]


def shared_parts(project: Project) -> dict[str, str]:
    """What all notebooks depend on, hashed part by part."""
    root = project.root
    lock = root / "requirements.lock"
    return {
        "mdsd_core": digest_of_files(root, sources_in(root / "mdsd_core")),
        "mdsd_study": digest_of_files(root, study_sources(root)),
        "inputs": digest_of_files(root, _inputs(project)),
        "lock": digest_of_files(root, [path for path in (lock, root / "assets.lock") if path.exists()]),
        "versions": key_of({**versions(), "machine": platform.machine()}),
    }


def fingerprint(
    project: Project, notebook: Notebook, parameters: dict[str, Any], shared: dict[str, str]
) -> dict[str, str]:
    """All that decides the outputs of `notebook`, hashed part by part, so that a change can be named.

    In the profiles ci and quick its own recorded full run is a part, if there is one: it is shown beside the live one.
    """
    parts = {"notebook": key_of(notebook.source()), "parameters": key_of(parameters), **shared}
    full = project.reference / "full" / f"{notebook.name}.json"
    if parameters["profile"] != "full" and full.is_file():
        parts["full run"] = digest_of_files(project.root, [full])
    return parts


def changed_parts(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """The names of the parts that differ."""
    return [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
