"""Every notebook that runs models, alone, from a clean kernel, on another pair of models than its own."""

import papermill
import pytest
from traitlets.config import Config

from mdsd_study.report.results import read_results
from mdsd_study.tools.notebooks.notebooks import all_notebooks
from mdsd_study.tools.notebooks.project import HERE

#: What differs from ``target`` and ``draft``, by notebook.
MORE = {"13_design_of_drafts": {"drafts": ["skip:1"], "sharp_draft": "tiny-random-draft"}}


def declared(notebook):
    return papermill.inspect_notebook(str(notebook.path))


NAMES = [notebook.name for notebook in all_notebooks(HERE) if "target" in declared(notebook)]


def test_a_notebook_that_has_a_target_has_a_draft_too():
    assert len(NAMES) > 10
    for notebook in all_notebooks(HERE):
        if notebook.name in NAMES:
            assert {"draft", "drafts"} & set(declared(notebook)), notebook.name


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_it_runs_alone_on_another_pair(name, tmp_path, monkeypatch):
    monkeypatch.setenv("MDSD_RESULTS", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(HERE.root))
    given = {"profile": "ci", "target": "tiny-random", "draft": "tiny-random-draft"} | MORE.get(name, {})
    known = declared(next(notebook for notebook in all_notebooks(HERE) if notebook.name == name))
    given = {key: value for key, value in given.items() if key in known}
    executed = papermill.execute_notebook(
        str(HERE.notebooks / f"{name}.ipynb"),
        str(tmp_path / "executed.ipynb"),
        parameters=given,
        kernel_name="python3",
        cwd=str(HERE.notebooks),
        progress_bar=False,
        start_timeout=300,
        config=Config({"KernelManager": {"transport_encryption": "auto"}}),
    )
    results = read_results(name, folder=tmp_path)
    assert results.parameters["target"] == "tiny-random"
    assert results.profile == "ci"
    assert all(cell.execution_count is not None for cell in executed.cells if cell.cell_type == "code" and cell.source)
