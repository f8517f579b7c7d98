"""Pages that are made from data when the book is staged: one module each, with a function ``render``."""

from collections.abc import Callable

from tools.pages import execution, faults
from tools.project import Project

#: By the name of the page; list the page in ``book/_toc.yml`` too.
GENERATED: dict[str, Callable[[Project, str], str]] = {
    "execution": execution.render,
    "faults": faults.render,
}
