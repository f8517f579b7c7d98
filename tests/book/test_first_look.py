"""The notebook `01_first_look` on a reader's own pair: other parameters, a clean kernel, results that fit together."""

import numpy as np
import papermill
import pytest
from traitlets.config import Config

from mdsd_study.report.results import read_results


@pytest.fixture(scope="module")
def executed(pytestconfig, tmp_path_factory):
    folder = tmp_path_factory.mktemp("first_look")
    own = folder / "own.jsonl"
    own.write_text("".join(f'{{"text": "prompt number {i}"}}\n' for i in range(3)))
    parameters = {
        "profile": "ci",
        "target": "tiny-random",
        "draft": "skip:1",
        "temperature": 1.0,
        "prompt_sets": ["mt_bench", str(own)],
        "prompts_per_set": 2,
        "seed": 3,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MDSD_RESULTS", str(folder))
        patch.setenv("PYTHONPATH", str(pytestconfig.rootpath))
        notebook = papermill.execute_notebook(
            str(pytestconfig.rootpath / "notebooks" / "01_first_look.ipynb"),
            str(folder / "executed.ipynb"),
            parameters=parameters,
            kernel_name="python3",
            cwd=str(pytestconfig.rootpath / "notebooks"),
            progress_bar=False,
            start_timeout=300,  # a busy machine is no fault of the notebook
            config=Config({"KernelManager": {"transport_encryption": "auto"}}),
        )
    return notebook, read_results(folder / "01_first_look.json"), parameters, folder


def test_results_fit_together(executed):
    _, results, parameters, folder = executed
    assert results.profile == "ci"
    assert results.parameters == parameters
    rrs, optimal, gap = (np.array(results[key].value) for key in ("rrs", "optimal_iid", "gap"))
    greedy, more = (np.array(results[key].value) for key in ("optimal_greedy", "greedy_minus_iid"))
    assert results["prompts"].value == 4
    assert (np.diff([rrs, optimal, greedy], axis=1) > 0).all()
    assert np.abs(gap - (optimal - rrs)).max() < 1e-12
    assert np.abs(more - (greedy - optimal)).max() < 1e-12
    assert abs(gap[0]) < 1e-12
    assert (gap[1:] > 0).all()
    assert (folder / "figures" / "01_first_look.png").is_file()


def test_nothing_is_written_to_stderr_and_few_prompts_are_called_few(executed):
    notebook, _, _, _ = executed
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"] == []
    shown = "\n".join(output.data["text/markdown"] for output in outputs if "text/markdown" in output.get("data", {}))
    assert "Only 4 prompts: too few" in shown
    assert "-0.0 " not in shown
