"""Where a number comes from: commit, machine, versions, date."""

import ast
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from mdsd_core import disk_cache
from mdsd_core.assets import ASSETS

#: The distributions whose versions can change a number.
PACKAGES = ("numpy", "scipy", "numba", "torch", "transformers", "matplotlib", "mdsd-core")


def project_folder() -> Path:
    """The checkout that the working directory lies in, or the working directory if it lies in none.

    >>> project_folder().is_dir()
    True
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "pyproject.toml").is_file() and (folder / "mdsd_core").is_dir():
            return folder
    return here


def commit(folder: Path | None = None) -> str:
    """The short commit id of the checkout at `folder`, with ``+changes`` if tracked files differ from it.

    ``unknown`` outside a git checkout (an unpacked archive) or without git.

    >>> isinstance(commit(), str)
    True
    """
    where = str(folder or project_folder())

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", where, *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short=10", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def processor() -> str:
    """The name of the processor as the system gives it.

    >>> processor() != ""
    True
    """
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"


def versions(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """Versions of Python and of the installed ones among `packages`, read without importing any.

    >>> sorted(versions(("numpy", "no-such-package")))
    ['numpy', 'python']
    """
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def study_sources(root: Path) -> list[Path]:
    """The sources of ``mdsd_study`` in the folder `root`, but for the tools: no notebook asks them anything.

    >>> {path.name for path in study_sources(disk_cache.PACKAGE.parent)} >= {"provenance.py", "statistics.py"}
    True
    """
    folder = root / "mdsd_study"
    return [path for path in disk_cache.sources_in(folder) if path.relative_to(folder).parts[0] != "tools"]


def code_digest() -> str:
    """A digest of all the code that a number comes from: the source of both packages, and installed versions.

    It names what is kept for notebooks, so that nothing made by other code is shown as made by this commit.

    >>> len(code_digest())
    64
    """
    assets = tuple(requirement.partition("==")[0] for requirement in ASSETS.values())
    root = disk_cache.PACKAGE.parent
    code = disk_cache.digest_of_files(root, disk_cache.sources_in(disk_cache.PACKAGE) + study_sources(root))
    return disk_cache.key_of(code, versions(PACKAGES + assets), platform.machine())


def describe_run() -> dict[str, Any]:
    """Commit, date (UTC), machine and versions of this very run, ready for JSON.

    >>> sorted(describe_run())
    ['commit', 'cores', 'date', 'processor', 'system', 'versions']
    """
    return {
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": versions(),
    }


def recorded_line(made: Mapping[str, Any], remark: str = "") -> str:
    """Machine, commit and date of a recorded run, and a remark, for below a table or a figure.

    >>> recorded_line({"processor": "CPU", "cores": 2, "commit": "0123", "date": "2026-01-02T03:04"})
    'Recorded on 2026-01-02 on CPU (2 cores), commit 0123.'
    """
    where = f"Recorded on {made['date'][:10]} on {made['processor']} ({made['cores']} cores), commit {made['commit']}."
    return f"{where} {remark}".strip()


def provenance_line(
    notebook: str, commit: str, parameters: Mapping[str, Any], recorded: Mapping[str, Any] | None = None
) -> str:
    """The line under a figure; with `recorded`, the note of the run it shows, that run's machine, commit and date too.

    >>> provenance_line("01_first_look", "0123abcdef", {"profile": "ci", "drafts": [1, 2]})
    'Made by notebook 01_first_look, commit 0123abcdef, parameters profile=ci, drafts=1+2.'
    """
    shown = {name: "+".join(map(str, x)) if isinstance(x, (list, tuple)) else x for name, x in parameters.items()}
    listed = ", ".join(f"{name}={value}" for name, value in shown.items()) or "none"
    line = f"Made by notebook {notebook}, commit {commit}, parameters {listed}."
    return line if recorded is None else f"{line} {recorded_line(recorded)}"


def imported_by(*modules: str) -> list[Path]:
    """The files of these modules and of all modules of this distribution that they import, at any depth.

    They are read, not run, so that imports inside functions count too. The ``__init__.py`` of a package counts where
    something is imported from the package itself, not where one of its modules is.

    >>> [path.name for path in imported_by("mdsd_core._sums")]
    ['_jit.py', '_sums.py', 'disk_cache.py']
    """
    found: set[Path] = set()
    left = list(modules)
    while left:
        path = _file_of(left.pop())
        if path is not None and path not in found:
            found.add(path)
            left += imports_of(path)
    return sorted(found)


def _file_of(module: str) -> Path | None:
    """Where a module of this distribution is; None for others, and for names."""
    name, *inside = module.split(".")
    place = disk_cache.PACKAGE.parent.joinpath(name, *inside)
    files = (place.with_suffix(".py"), place / "__init__.py") if name.startswith("mdsd_") and inside else ()
    return next((path for path in files if path.is_file()), None)


def imports_of(path: Path) -> Iterator[str]:
    """The modules that a file imports anywhere, and what it takes from them.

    >>> list(imports_of(disk_cache.PACKAGE / "_sums.py"))
    ['mdsd_core._jit', 'mdsd_core._jit.inline_kernel']
    """
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
