"""Documents of the repository as pages of the book: the changelog, and how to contribute."""

import re

from mdsd_study.tools.notebooks.project import Project

#: A link to another file of the repository, which a page of the book does not have.
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?://|#)([^)]+)\)")


def _page(project: Project, name: str) -> str:
    text = (project.root / name).read_text(encoding="utf-8")
    return _LINK.sub(r"\1 (`\2` in the repository)", text)


def changelog(project: Project, profile: str) -> str:
    """``CHANGELOG.md``."""
    return _page(project, "CHANGELOG.md")


def contributing(project: Project, profile: str) -> str:
    """``CONTRIBUTING.md``."""
    return _page(project, "CONTRIBUTING.md")
