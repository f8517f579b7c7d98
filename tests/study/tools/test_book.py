"""From executed notebooks to pages: what is refused, and one small book that is really built."""

import shutil
import subprocess

import nbformat
import pytest

from mdsd_study.tools.build_book import build
from mdsd_study.tools.notebooks.project import ProjectError
from mdsd_study.tools.notebooks.run_notebooks import run
from mdsd_study.tools.stage import refuse_executed, repository_address, stage_book
from tests.built.scan_html import broken_links, outside_requests, read_page
from tests.study.tools.conftest import REPOSITORY, make_project, write_notebook

DRAW = """
from matplotlib.figure import Figure
from mdsd_study.report.figures import save_figure

fig = Figure(figsize=(3, 2))
fig.add_subplot().plot([0, 1])
line = save_figure(fig, "01_line", "01_small", {"profile": profile})
"""
LONG = "\n".join(f"x{i} = {i}" for i in range(20))
FIGURE = """## A figure

```{figure} ../results/figures/01_line.png
:name: fig-line
:alt: A rising line.

A line.
```

See {numref}`fig-line` and {eq}`eq-one` and {cite}`hu2025`.

$$ \\alpha^* = 1 $$ (eq-one)
"""
INDEX = """# A small book

The rate is [[01_small.rate:.2f]], see [](notebooks/01_small.ipynb). Version [[version]], [[date]].
"""
TOC = """format: jb-book
root: index
chapters:
  - file: notebooks/01_small
  - file: execution
  - file: bibliography
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A project with one executed notebook and the settings of the real book."""
    project = make_project(tmp_path_factory.mktemp("book") / "tiny")
    write_notebook(project, "01_small", DRAW, LONG, FIGURE)
    assert run(project, "ci", [], {}, say=lambda text: None) == 0
    project.book.mkdir()
    for name in ("_config.yml", "references.bib", "bibliography.md", "_static", "_ext"):
        copy = shutil.copytree if (REPOSITORY / "book" / name).is_dir() else shutil.copyfile
        copy(REPOSITORY / "book" / name, project.book / name)
    (project.book / "index.md").write_text(INDEX)
    (project.book / "_toc.yml").write_text(TOC)
    return project


@pytest.fixture
def project(finished, tmp_path):
    """A copy of it that a test may spoil."""
    copy = make_project(tmp_path / "tiny")
    shutil.copytree(finished.root, copy.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("html", ".doctrees"))
    return copy


def change(project, edit):
    path = project.executed("ci") / "01_small.ipynb"
    content = nbformat.read(path, as_version=4)
    edit([cell for cell in content.cells if cell.cell_type == "code"])
    nbformat.write(content, path)
    return path


def test_a_finished_notebook_is_staged(project):
    facts, _ = stage_book(project, "ci")
    assert (facts.version, facts.profile) == ("0.1.0", "ci")
    staged = nbformat.read(project.stage / "notebooks" / "01_small.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in staged.cells)
    assert r"Made by notebook 01\_small, commit unknown, parameters profile=ci." in text
    assert ["hide-input" in cell.metadata.get("tags", []) for cell in staged.cells if cell.source == LONG] == [True]
    index = (project.stage / "index.md").read_text()
    assert "The rate is 0.75" in index
    assert f"Version 0.1.0, {facts.date}." in index
    record = (project.stage / "execution.md").read_text()
    assert "| [01_small](notebooks/01_small.ipynb) |" in record
    assert "| 30 | 1 | `profile=ci` |" in record


def test_an_unexecuted_notebook_is_refused(project):
    def forget(cells):
        cells[3].execution_count = None

    path = change(project, forget)
    assert refuse_executed(path) == ["01_small: code cell 4 was not executed"]
    with pytest.raises(ProjectError, match="code cell 4 was not executed"):
        stage_book(project, "ci")
    shutil.copyfile(project.notebooks / "01_small.ipynb", path)  # the stripped source itself
    with pytest.raises(ProjectError, match="code cell 1 was not executed"):
        stage_book(project, "ci")
    path.unlink()
    with pytest.raises(ProjectError, match="01_small was not executed: run `make notebooks`"):
        stage_book(project, "ci")


def test_a_notebook_with_an_error_is_refused(project):
    def spoil(cells):
        cells[2].outputs = [nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[])]

    change(project, spoil)
    with pytest.raises(ProjectError, match="01_small: code cell 3 ended with ValueError: no"):
        stage_book(project, "ci")


def test_a_notebook_without_a_record_or_with_changed_sources_is_refused(project):
    (project.root / "mdsd_core" / "rules.py").write_text("rule = 2\n")
    with pytest.raises(ProjectError, match="executed before a change of: mdsd_core"):
        stage_book(project, "ci")
    (project.executed("ci") / "01_small.run.json").unlink()
    with pytest.raises(ProjectError, match="did not come to its end"):
        stage_book(project, "ci")


def test_every_page_must_be_listed_and_every_listed_page_be_there(project):
    (project.book / "more.md").write_text("# More\n")
    (project.book / "_toc.yml").write_text(TOC + "  - file: lost\n")
    with pytest.raises(ProjectError) as error:
        stage_book(project, "ci")
    assert "more is not listed: add `- file: more`" in str(error.value)
    assert "lost is listed, but there is no such page" in str(error.value)


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({"MDSD_REPOSITORY": "https://gitlab.com/a/b/"}, "https://gitlab.com/a/b"),
        ({"GITHUB_REPOSITORY": "a/b"}, "https://github.com/a/b"),
        ({"GITHUB_REPOSITORY": "a/b", "GITHUB_SERVER_URL": "https://git.example.org"}, None),
        ({}, None),
    ],
)
def test_the_address_of_the_repository(tmp_path, environment, address):
    assert repository_address(tmp_path, environment) == address


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@github.com:a/b.git", "https://github.com/a/b"),
        ("https://github.com/a/b.git", "https://github.com/a/b"),
        ("ssh://git@gitlab.com/a/b", "https://gitlab.com/a/b"),
        ("../elsewhere", None),
    ],
)
def test_the_address_comes_from_a_remote_on_the_web(tmp_path, remote, address):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "remote", "add", "origin", remote], check=True)
    assert repository_address(tmp_path, {}) == address


def test_a_book_is_built_only_when_something_changed(finished, monkeypatch):
    monkeypatch.setenv("MDSD_REPOSITORY", "https://github.com/a/b")
    said = []
    build(finished, "ci", said.append)
    build(finished, "ci", said.append)
    assert ["took" in text for text in said] == [True, False]
    assert "up to date" in said[1]
    assert list(outside_requests(finished.html)) == []
    assert list(broken_links(finished.html)) == []
    page = (finished.html / "notebooks" / "01_small.html").read_text()
    assert "Made by notebook 01_small, commit unknown, parameters profile=ci." in page
    assert "Version 0.1.0, commit unknown, built on " in page
    assert "doi.org/10.48550/arXiv.2502.18779" in (finished.html / "bibliography.html").read_text()
    links = read_page(finished.html / "notebooks" / "01_small.html").links
    assert any(link.startswith("https://mybinder.org/v2/gh/a/b/main") and "01_small.ipynb" in link for link in links)
    (finished.book / "index.md").write_text(INDEX + "\nSee [](no_such_page.md).\n")
    with pytest.raises(ProjectError, match="no_such_page"):
        build(finished, "ci", said.append)
    (finished.book / "index.md").write_text(INDEX)
