"""Pages that are made from data when the book is staged: one module each, with a function ``render``."""

from collections.abc import Callable

from mdsd_study.tools.notebooks.project import Project
from mdsd_study.tools.pages import api, architecture, cards, documents, execution, faults, scorecard

#: By the name of the page; list the page in ``book/_toc.yml`` too.
GENERATED: dict[str, Callable[[Project, str], str]] = {
    "api/overview": api.render,
    **{page: api.render_part(page) for page in api.PARTS},
    "architecture": architecture.render,
    "cards": cards.render,
    "changelog": documents.changelog,
    "contributing": documents.contributing,
    "execution": execution.render,
    "faults": faults.render,
    "scorecard": scorecard.render,
}
