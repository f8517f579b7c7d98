"""The page on own models: its commands and its SLURM script, tried on tiny local models."""

import os
import re
import shlex
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import papermill
import pytest
from traitlets.config import Config
from typer.testing import CliRunner

from mdsd_core.models import tiny_random_pair
from mdsd_study.cli.commands import app
from mdsd_study.measure.pairs import read_config
from mdsd_study.report.results import read_results

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "own_models.md").read_text(encoding="utf-8")


def block(language, word):
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if word in text]
    return found


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A target and a draft in the hub's format, and prompts of one's own."""
    place = tmp_path_factory.mktemp("own")
    pair = tiny_random_pair()
    for side, model in (("target", pair.target), ("draft", pair.draft)):
        model.model.save_pretrained(place / side)
        model.tokenizer.save_pretrained(place / side)
    (place / "my_prompts.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    return place


def words_of(command, folders):
    """The words of a command of the page, with the paths of the fixture in place of its examples."""
    text = (
        command.replace("\\\n", " ").replace("path/to/", f"{folders}/").replace("my_prompts", f"{folders}/my_prompts")
    )
    return shlex.split(text)


def test_the_papermill_command_runs_a_notebook_on_an_own_pair(folders, tmp_path, monkeypatch):
    words = words_of(block("bash", "papermill 12").splitlines()[1], folders)
    assert words[:3] == ["papermill", "12_number_of_drafts.ipynb", "mine.ipynb"]
    parameters = {words[i + 1]: words[i + 2] for i, word in enumerate(words) if word == "-p"}
    assert set(parameters) == {"profile", "target", "draft"}
    monkeypatch.setenv("MDSD_RESULTS", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    papermill.execute_notebook(
        str(ROOT / "notebooks" / words[1]),
        str(tmp_path / words[2]),
        parameters=parameters | {"prompt_sets": [str(folders / "my_prompts.jsonl")], "drafts": [1, 3]},
        kernel_name="python3",
        cwd=str(ROOT / "notebooks"),
        progress_bar=False,
        start_timeout=300,
        config=Config({"KernelManager": {"transport_encryption": "auto"}}),
    )
    results = read_results(tmp_path / "12_number_of_drafts.json")
    assert results.parameters["target"] == str(folders / "target")
    assert results["prompts"].value == 2
    one, three = results["acceptance, bound, with replacement"].value
    assert 0 < one < three < 1


def test_the_sweep_command_runs(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = words_of(block("bash", "mdsd measure --target"), folders)
    assert words[:2] == ["mdsd", "measure"]
    shorter = ["--prompts", "2", "-m", "2", "--workers", "0"]
    done = CliRunner().invoke(app, [*words[1:], *shorter])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "sweep" / "table.parquet").is_file()
    assert (tmp_path / "sweep" / "summary.parquet").is_file()


def test_the_example_of_a_file_is_valid(tmp_path):
    text = block("toml", "[pairs.mine]")
    assert set(tomllib.loads(text)) == {"pairs", "sets"}
    (tmp_path / "own.toml").write_text(text)
    pairs, sets = read_config(tmp_path / "own.toml")
    assert pairs["mine"].draft == "path/to/draft"
    assert sets["questions"].template.endswith("{question}")


@pytest.mark.slow
def test_the_slurm_script_runs_with_a_scheduler_that_starts_jobs_here(tmp_path):
    """`sbatch` and `scancel` are stand-ins that run a job script on this machine; all else is the page's script."""
    script = block("python", "SLURMCluster")
    for old, new in (
        ('find_pair("llama-7b/llama-68m")', 'find_pair("tiny-random")'),
        ('("alpaca", "cnn_dailymail")', '("mt_bench",)'),
        ("prompts=1024", "prompts=2, max_new_tokens=2"),
        ('dtype="float16",', ""),
        ('Placement(device="cuda")', "Placement()"),
        ("jobs=8", "jobs=1"),
        ("64GB", "2GB"),
        ("source .venv/bin/activate", "echo started >> jobs.log"),
    ):
        assert script.count(old) == 1, old
        script = script.replace(old, new)
    (tmp_path / "run.py").write_text(script)
    for name, text in (
        ("sbatch", '#!/bin/sh\nsh "$1" >worker.log 2>&1 &\necho "Submitted batch job $!"\n'),
        ("scancel", '#!/bin/sh\nkill "$1" 2>/dev/null\nexit 0\n'),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(stat.S_IRWXU)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert "token_matching" in done.stdout
    assert (tmp_path / "jobs.log").read_text() == "started\n"
    assert (tmp_path / "sweep" / "table.parquet").is_file()
