"""A figure that shows a recorded run says so below: machine, commit and date of that run."""

import re

import nbformat
import pytest

from mdsd_study.tools.notebooks.notebooks import all_notebooks
from mdsd_study.tools.notebooks.project import HERE

NOTEBOOKS = all_notebooks(HERE)
#: A record that a notebook reads, and the name that it gets.
READ = re.compile(r"^ *(\w+) = (?:read_record|full_results)\(", re.MULTILINE)
SAVED = re.compile(r"save_figure\(.*\)")


def silent_figures(cells):
    """The calls of `save_figure` in cells that use a record, but for those that name it; and how many do."""
    names = {name for cell in cells for name in READ.findall(cell)}
    silent, told = [], 0
    for cell in cells:
        if any(re.search(rf"\b{name}\b", cell) for name in names):
            for call in SAVED.findall(cell):
                told += "recorded=" in call
                silent += [call] * ("recorded=" not in call)
    return silent, told


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_figures_of_a_recorded_run_name_it(notebook):
    content = nbformat.read(notebook.path, as_version=4)
    cells = [cell.source for cell in content.cells if cell.cell_type == "code"]
    assert silent_figures(cells)[0] == []


def test_there_are_such_figures():
    found = [
        silent_figures([cell.source for cell in nbformat.read(notebook.path, as_version=4).cells])[1]
        for notebook in NOTEBOOKS
    ]
    assert sum(found) >= 5


def test_a_figure_that_does_not_name_its_record_is_noticed():
    cells = ["old = read_record(NAME)", "fig = draw(old.rows)\nprint(save_figure(fig, 'x', NAME, PARAMETERS))"]
    assert silent_figures(cells) == (["save_figure(fig, 'x', NAME, PARAMETERS))"], 0)
