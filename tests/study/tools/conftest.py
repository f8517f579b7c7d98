from pathlib import Path

import nbformat
import pytest

from mdsd_study.tools.notebooks.project import Project

REPOSITORY = Path(__file__).resolve().parents[3]

PARAMETERS = 'profile = "quick"\nseed = 0'
RESULTS = """
from mdsd_study.report.results import exact, write_results

parameters = {{"profile": profile, "seed": seed}}
write_results("{name}", profile, {{"rate": exact(0.75, atol=1e-4)}}, parameters)
"""


def write_notebook(project, name, *cells, tags=(), threads=None, results=True):
    """A notebook with a parameters cell, then `cells` (those that begin with ``#`` are Markdown), then its results."""
    content = nbformat.v4.new_notebook()
    content.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    if tags:
        content.metadata["tags"] = list(tags)
    if threads:
        content.metadata["threads"] = threads
    content.cells = [nbformat.v4.new_markdown_cell(f"# The notebook {name}")]
    content.cells.append(nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}))
    for source in cells:
        new = nbformat.v4.new_markdown_cell if source.startswith("#") else nbformat.v4.new_code_cell
        content.cells.append(new(source))
    if results:
        content.cells.append(nbformat.v4.new_code_cell(RESULTS.format(name=name)))
    for number, cell in enumerate(content.cells):
        cell["id"] = f"{name}-{number}"
    path = project.notebooks / f"{name}.ipynb"
    nbformat.write(content, path)
    with open(project.notebooks / "budget.toml", "a") as budget:
        budget.write(f'"{name}" = {{ ci = 30, quick = 60, full = 90 }}\n')
    return path


def make_project(root):
    """A checkout with a library of one file, no notebooks and no pages yet."""
    (root / "mdsd_core").mkdir(parents=True)
    (root / "mdsd_core" / "rules.py").write_text("rule = 1\n")
    (root / "notebooks").mkdir()
    (root / "pyproject.toml").write_text('[project]\nname = "tiny"\nversion = "0.1.0"\n')
    (root / "requirements.lock").write_text("numpy==2.4.6\n")
    return Project(root)


@pytest.fixture
def project(tmp_path):
    return make_project(tmp_path / "tiny")


@pytest.fixture(scope="session", autouse=True)
def _kernels_find_this_checkout():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(REPOSITORY))
        yield
