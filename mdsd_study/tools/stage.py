"""Put together the book's sources: pages, executed notebooks, generated pages, MathJax.

A notebook that was not executed to its end, holds an error, or was executed from other sources than those at hand is
refused: Sphinx would build a book from it without a word.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
import yaml
from sphinx_external_toc.parsing import parse_toc_yaml

from mdsd_core.disk_cache import digest_of_files, key_of
from mdsd_study.report.provenance import commit
from mdsd_study.report.results import Results, read_results
from mdsd_study.tools.findings import findings, full_run
from mdsd_study.tools.markup import add_provenance, fill_numbers
from mdsd_study.tools.notebooks.execute import Place
from mdsd_study.tools.notebooks.fingerprint import changed_parts, fingerprint, shared_parts
from mdsd_study.tools.notebooks.notebooks import Notebook, all_notebooks, read_notebook
from mdsd_study.tools.notebooks.project import Project, ProjectError
from mdsd_study.tools.pages import GENERATED

#: A code cell of more lines than this is folded, unless it carries a tag that says otherwise.
FOLD_LINES = 15
_INPUT_TAGS = {"hide-input", "remove-input", "hide-cell", "remove-cell", "show-input"}


@dataclass(frozen=True)
class Facts:
    """What the book says of itself."""

    version: str
    commit: str
    date: str
    profile: str
    repository: str | None


def repository_address(root: Path, environment: dict[str, str]) -> str | None:
    """The public address of the repository, for launch buttons and links; None if there is none.

    From ``MDSD_REPOSITORY``, from the variables of GitHub Actions, or from the git remote ``origin``; only those on
    GitHub or GitLab count, for Binder's and the theme's links know no others.
    """
    address = environment.get("MDSD_REPOSITORY", "")
    if not address and environment.get("GITHUB_REPOSITORY"):
        server = environment.get("GITHUB_SERVER_URL", "https://github.com")
        address = f"{server}/{environment['GITHUB_REPOSITORY']}"
    if not address:
        asked = subprocess.run(["git", "-C", str(root), "remote", "get-url", "origin"], capture_output=True, text=True)
        address = asked.stdout.strip()
    match = re.fullmatch(r"(?:https://|git@|ssh://git@)(github\.com|gitlab\.com)[:/](\S+?)(?:\.git)?/?", address)
    return f"https://{match[1]}/{match[2]}" if match else None


def gather_facts(project: Project, profile: str) -> Facts:
    """Version, commit, today's date (``SOURCE_DATE_EPOCH`` is respected), profile and address."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    today = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    address = repository_address(project.root, dict(os.environ))
    return Facts(project.version(), commit(project.root), today.date().isoformat(), profile, address)


def refuse_executed(path: Path) -> list[str]:
    """Why the executed notebook at `path` must not be shown; an empty list if it may."""
    if not path.is_file():
        return [f"{path.stem} was not executed: run `make notebooks`"]
    cells = [cell for cell in read_notebook(path).cells if cell.cell_type == "code" and cell.source.strip()]
    problems = []
    for number, cell in enumerate(cells, 1):
        errors = [output for output in cell.outputs if output.output_type == "error"]
        if errors:
            problems.append(f"{path.stem}: code cell {number} ended with {errors[0].ename}: {errors[0].evalue}")
        elif cell.execution_count is None:
            problems.append(f"{path.stem}: code cell {number} was not executed")
    return problems


def _refuse_stale(project: Project, notebook: Notebook, profile: str, shared: dict[str, str]) -> list[str]:
    record = Place(project.executed(profile), notebook.name).read_record()
    if record is None:
        return [f"{notebook.name}: its run did not come to its end: run `make notebooks`"]
    parts = changed_parts(record["parts"], fingerprint(project, notebook, record["parameters"], shared))
    return [f"{notebook.name} was executed before a change of: {', '.join(parts)}; run `make notebooks`"] * bool(parts)


def check_notebooks(project: Project, notebooks: list[Notebook], profile: str) -> None:
    """Raise :class:`ProjectError` with every reason not to build a book from the executed notebooks."""
    shared = shared_parts(project)
    problems = []
    for notebook in notebooks:
        place = Place(project.executed(profile), notebook.name)
        problems += refuse_executed(place.executed) or _refuse_stale(project, notebook, profile, shared)
    if problems:
        raise ProjectError("the book cannot be built:\n  " + "\n  ".join(problems))


def _listed(project: Project) -> set[str]:
    """The pages that the table of contents names, read as Jupyter Book reads it."""
    listed = parse_toc_yaml(project.book / "_toc.yml")
    return {name.removesuffix(".md").removesuffix(".ipynb") for name in listed}


def _check_toc(project: Project, stage: Path) -> None:
    listed = _listed(project)
    pages = [path for suffix in ("*.md", "*.ipynb") for path in stage.rglob(suffix)]
    present = {path.relative_to(stage).with_suffix("").as_posix() for path in pages}
    problems = [f"{name} is not listed: add `- file: {name}` where it belongs" for name in sorted(present - listed)]
    problems += [f"{name} is listed, but there is no such page" for name in sorted(listed - present)]
    if problems:
        raise ProjectError("book/_toc.yml:\n  " + "\n  ".join(problems))


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def staged_config(config: dict[str, Any], facts: Facts) -> dict[str, Any]:
    """``_config.yml`` with what is known only now: version, commit, date, address, the place of MathJax."""
    html = config.setdefault("html", {})
    html["extra_footer"] = (
        f"<p>Version {facts.version}, commit {facts.commit}, built on {facts.date} (profile {facts.profile}). "
        'Text: <a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>; code: MIT.</p>'
    )
    config["sphinx"]["config"]["mathjax_path"] = "../mathjax/tex-mml-chtml.js"  # seen from _static
    config["sphinx"]["config"]["html_extra_path"] = ["_extra"]
    config["sphinx"]["config"]["version"] = config["sphinx"]["config"]["release"] = facts.version
    config["repository"] = {"url": facts.repository or "", "path_to_book": "", "branch": "main"}
    if facts.repository:
        config["launch_buttons"] = {"notebook_interface": "jupyterlab", "binderhub_url": "https://mybinder.org"}
        html["use_repository_button"] = html["use_issues_button"] = True
    return config


def _copy_mathjax(stage: Path) -> None:
    """The one outside asset of the theme, from its package into the book.

    Not into ``_static``: Jupyter Book would load every script in there on every page, MathJax twice.
    """
    found = importlib.util.find_spec("sphinx-mathjax-offline")
    if found is None or found.origin is None:
        raise ProjectError("the package sphinx-mathjax-offline is missing: run `make setup`")
    source, target = Path(found.origin).parent / "static" / "mathjax", stage / "_extra" / "mathjax"
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "tex-mml-chtml.js", target / "tex-mml-chtml.js")
    shutil.copytree(source / "output" / "chtml", target / "output" / "chtml", dirs_exist_ok=True)


def _stage_notebook(source: Path, target: Path, stage: Path) -> None:
    content = read_notebook(source)
    for cell in content.cells:
        if cell.cell_type == "markdown":
            cell.source = add_provenance(cell.source, target, stage)
        tags = cell.metadata.setdefault("tags", [])
        long = cell.cell_type == "code" and len(cell.source.splitlines()) > FOLD_LINES
        if long and not _INPUT_TAGS & set(tags):
            tags.append("hide-input")
    nbformat.write(content, target)


def _stage_files(project: Project, notebooks: list[Notebook], profile: str) -> None:
    stage = project.stage
    shutil.copytree(project.book, stage)
    (stage / "notebooks").mkdir(exist_ok=True)
    for notebook in notebooks:
        results = Place(project.executed(profile), notebook.name).results
        if (results / "figures").is_dir():
            shutil.copytree(results / "figures", stage / "results" / "figures", dirs_exist_ok=True)
    kept = project.reference / "figures"
    if kept.is_dir():
        shutil.copytree(kept, stage / "reference" / "figures")
    for notebook in notebooks:
        place = Place(project.executed(profile), notebook.name)
        _stage_notebook(place.executed, stage / "notebooks" / f"{notebook.name}.ipynb", stage)


def stage_book(project: Project, profile: str) -> tuple[Facts, str]:
    """Fill ``_build/book-src`` and return the facts and a hash of all that is in it, the date left out.

    Raises :class:`ProjectError` with what has to be mended.
    """
    notebooks = all_notebooks(project)
    check_notebooks(project, notebooks, profile)
    facts = gather_facts(project, profile)
    stage = project.stage
    shutil.rmtree(stage, ignore_errors=True)
    _stage_files(project, notebooks, profile)
    for name in GENERATED.keys() & _listed(project):
        page = stage / f"{name}.md"
        page.parent.mkdir(exist_ok=True)
        page.write_text(GENERATED[name](project, profile), encoding="utf-8")

    def read(name: str) -> Results:
        return read_results(name, folder=Place(project.executed(profile), name).results)

    undated = {"version": facts.version, "commit": facts.commit, "date": "[[date]]", "profile": profile}
    undated["findings"] = findings(project)
    pages = [path for path in stage.rglob("*.md")]
    for page in pages:
        text, where = page.read_text(encoding="utf-8"), str(page.relative_to(stage))
        text = fill_numbers(text, read, undated, where, lambda name: full_run(project, name))
        page.write_text(add_provenance(text, page, stage), encoding="utf-8")
    _check_toc(project, stage)
    _copy_mathjax(stage)
    content = digest_of_files(stage, (path for path in stage.rglob("*") if path.is_file()))
    config = _yaml(project.book / "_config.yml")
    fingerprint = key_of(content, facts.commit, facts.version, facts.repository, profile, _tools_digest(project))
    for page in pages:
        page.write_text(page.read_text(encoding="utf-8").replace("[[date]]", facts.date), encoding="utf-8")
    (stage / "_config.yml").write_text(yaml.safe_dump(staged_config(config, facts), sort_keys=False), encoding="utf-8")
    return facts, fingerprint


def _tools_digest(project: Project) -> str:
    """A change in the builder itself builds anew."""
    sources = list(Path(__file__).parent.rglob("*.py"))
    lock = project.root / "requirements.lock"
    return digest_of_files(Path(__file__).parent, sources) + (lock.read_text(encoding="utf-8") if lock.exists() else "")
