"""Stage the book and build it with Jupyter Book into ``_build/html``; any warning is an error."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from mdsd_study.report.results import PROFILES
from mdsd_study.tools.notebooks.project import HERE, Project, ProjectError, mended_by_user
from mdsd_study.tools.stage import stage_book

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def build(project: Project, profile: str, say: Callable[[str], None] = print) -> None:
    """Build the book, unless the one at hand was made from exactly these sources."""
    start = time.perf_counter()
    facts, fingerprint = stage_book(project, profile)
    if facts.repository is None:
        say("no launch buttons: neither the git remote `origin` nor MDSD_REPOSITORY is an address on GitHub or GitLab")
    stamp = project.html / ".fingerprint"
    if stamp.is_file() and stamp.read_text() == fingerprint:
        say(f"the book is up to date: {project.html / 'index.html'}")
        return
    run_jupyter_book(project, "html")
    stamp.write_text(fingerprint)
    say(f"the book took {time.perf_counter() - start:.0f} s: {project.html / 'index.html'}")


def run_jupyter_book(project: Project, builder: str) -> None:
    """Build the staged sources from scratch with one of Sphinx's builders, warnings being errors."""
    shutil.rmtree(project.build / builder, ignore_errors=True)
    shutil.rmtree(project.build / ".doctrees", ignore_errors=True)
    command = [
        sys.executable,
        "-c",
        "from jupyter_book.cli.main import main; main()",
        "build",
        str(project.stage),
        "--path-output",
        str(project.root),
    ]
    command += ["--builder", builder, "--all", "--warningiserror", "--nitpick", "--keep-going", "--quiet"]
    # The docstrings of the reference are those of this checkout, whatever is installed.
    paths = os.pathsep.join([str(project.root), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "JUPYTER_PREFER_ENV_PATH": "1", "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, text=True, capture_output=True)
    if done.returncode:
        said = _COLOURS.sub("", done.stdout + "\n" + done.stderr).splitlines()
        named = [line for line in said if re.search(r"\b(WARNING|ERROR|CRITICAL)\b", line)]
        raise ProjectError("Jupyter Book found fault:\n" + "\n".join(named or said))


@mended_by_user()
def main() -> None:
    """0 if the book is there."""
    parser = argparse.ArgumentParser(prog="python -m mdsd_study.tools.build_book", description=__doc__)
    parser.add_argument("--profile", choices=PROFILES, default="quick")
    build(HERE, parser.parse_args().profile)


if __name__ == "__main__":
    sys.exit(main())
