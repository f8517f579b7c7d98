"""The findings at the front: one text with places for numbers, filled in from the recorded full run.

The book's pages show it where they say ``[[findings]]``; README.md holds it filled in, between two comments, and a test
compares.
"""

import re

from mdsd_study.report.results import Results, read_results
from mdsd_study.tools.markup import fill_numbers
from mdsd_study.tools.notebooks.project import Project, ProjectError

_BLOCK = re.compile(r"(<!-- findings:.*?-->\n)(.*?)(\n<!-- end of findings -->)", re.DOTALL)


def full_run(project: Project, name: str) -> Results:
    """The results of a notebook's recorded full run; FileNotFoundError if there is none."""
    return read_results(project.reference / "full" / f"{name}.json")


def findings(project: Project) -> str:
    """The text with places for numbers, as the book's pages take it; empty where the book has none."""
    path = project.book / "findings.txt"
    return path.read_text(encoding="utf-8").rstrip() if path.is_file() else ""


def with_findings(project: Project, readme: str) -> str:
    """README.md's text with the findings of the recorded full run between its two comments."""
    if not _BLOCK.search(readme):
        raise ProjectError(
            "README.md has no place for the findings, between <!-- findings: ... --> and <!-- end of findings -->"
        )

    def read(name: str) -> Results:
        raise ValueError("README.md shows the recorded full run only: write [[full/...]]")

    text = fill_numbers(findings(project), read, {}, "book/findings.txt", lambda name: full_run(project, name))
    return _BLOCK.sub(lambda match: f"{match[1]}{text}{match[3]}", readme)
