"""Notebook 14 compares drafts by the names of pairs: models in folders of a hub's format, and a hub out of reach."""

import papermill
import pytest
from traitlets.config import Config

from mdsd_core.models import tiny_random_pair
from mdsd_study.report.results import read_results
from mdsd_study.tools.notebooks.project import HERE

NAME = "14_multi_candidate"


def run(folder, monkeypatch, **given):
    """The notebook on tiny models: its results, and the Markdown that it shows."""
    monkeypatch.setenv("MDSD_RESULTS", str(folder))
    monkeypatch.setenv("PYTHONPATH", str(HERE.root))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    tiny = {"profile": "ci", "target": "tiny-random", "draft": "tiny-random-draft", "candidates": [1, 2, 4]}
    executed = papermill.execute_notebook(
        str(HERE.notebooks / f"{NAME}.ipynb"),
        str(folder / "executed.ipynb"),
        parameters=tiny | given,
        kernel_name="python3",
        cwd=str(HERE.notebooks),
        progress_bar=False,
        start_timeout=300,
        config=Config({"KernelManager": {"transport_encryption": "auto"}}),
    )
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    shown = [output.data["text/markdown"] for output in outputs if "text/markdown" in output.get("data", {})]
    return read_results(NAME, folder=folder), "\n".join(shown)


@pytest.mark.slow
def test_an_aligned_draft_is_accepted_more_often(tmp_path, monkeypatch):
    lines = []
    for name, noise in (("near", 0.2), ("far", 2.0)):
        pair = tiny_random_pair(noise=noise)
        for side, model in (("target", pair.target), (name, pair.draft)):
            model.model.save_pretrained(tmp_path / side)
            model.tokenizer.save_pretrained(tmp_path / side)
        lines += [f"[pairs.{name}]", f"target = '{tmp_path / 'target'}'", f"draft = '{tmp_path / name}'"]
    (tmp_path / "own.toml").write_text("\n".join(lines))
    results, shown = run(tmp_path, monkeypatch, aligned=["near", "far"], own_pairs=str(tmp_path / "own.toml"))
    assert "Not run here" not in shown
    for temperature in (1, 0):
        for rule in ("with_replacement, rrs", "without_replacement, rrs_without", "with_replacement, token_matching"):
            near, far = (results[f"{name}, T={temperature}, {rule}, k=2"].value for name in ("near", "far"))
            assert 0 < far < near <= 1


@pytest.mark.slow
def test_without_a_hub_the_page_says_that_it_did_not_run(tmp_path, monkeypatch):
    results, shown = run(tmp_path, monkeypatch, aligned=["vicuna-7b/vicuna-68m"])
    assert "Not run here" in shown
    assert "lmsys/vicuna-7b-v1.3" in shown
    assert not [key for key in results.values if key.startswith("vicuna")]
