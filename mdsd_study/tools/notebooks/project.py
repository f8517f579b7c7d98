"""Where things lie in a checkout."""

import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class ProjectError(Exception):
    """Something that the user can mend; printed without a traceback."""


@contextmanager
def mended_by_user(*errors: type[Exception]) -> Iterator[None]:
    """Around a script's ``main``: a :class:`ProjectError`, or one of these, is told in one line, and ends it with 2."""
    caught: tuple[type[Exception], ...] = (ProjectError, *errors)
    try:
        yield
    except caught as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


@dataclass(frozen=True)
class Project:
    """The folders of the checkout at `root`."""

    root: Path

    @property
    def notebooks(self) -> Path:
        """The notebooks' sources, stripped."""
        return self.root / "notebooks"

    @property
    def book(self) -> Path:
        """The book's pages, configuration and table of contents."""
        return self.root / "book"

    @property
    def results(self) -> Path:
        """What the notebooks of the last run wrote (not in git)."""
        return self.root / "results"

    @property
    def reference(self) -> Path:
        """What results are compared with (in git)."""
        return self.root / "reference"

    @property
    def build(self) -> Path:
        """Everything made (not in git)."""
        return self.root / "_build"

    @property
    def stage(self) -> Path:
        """The book's sources as Sphinx gets them."""
        return self.build / "book-src"

    @property
    def html(self) -> Path:
        """The built book."""
        return self.build / "html"

    def executed(self, profile: str) -> Path:
        """The executed notebooks of a profile, each with its record and its own results folder."""
        return self.build / "executed" / profile

    def declared(self) -> dict[str, Any]:
        """What pyproject.toml says."""
        return tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))

    def version(self) -> str:
        """The version in pyproject.toml."""
        return str(self.declared()["project"]["version"])


#: The checkout that this file is part of.
HERE = Project(Path(__file__).resolve().parents[3])
