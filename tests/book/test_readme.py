"""Does the README say what is so? Its example, its commands, the shape of their output, its table of notebooks."""

import contextlib
import io
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from mdsd_core.verifiers.interface import _REGISTRY
from mdsd_study.cli.commands import app
from mdsd_study.report.recorded_runs import read_record
from mdsd_study.tools.findings import findings, with_findings
from mdsd_study.tools.notebooks.project import HERE, Project

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: (command, output) of every console block.
CONSOLE = [
    (line.split("#")[0].strip(), output)
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for line, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


def test_the_example_prints_what_it_says():
    example, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL).groups()
    assert len([line for line in example.splitlines() if line.strip()]) == 5
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(example, "README.md", "exec"), {})
    assert out.getvalue() == printed


def test_it_names_no_target_that_is_not_there():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)", README))
    assert {"book", "gpu-check"} <= named
    assert named <= targets


def labels(text):
    """What stands left of the values in the lines of metrics."""
    return [match[1] for match in re.finditer(r"^(\S.*?)  +\S", text, re.MULTILINE)]


def mdsd(command, *more):
    program, *words = shlex.split(command)
    assert program == ".venv/bin/mdsd"
    result = CliRunner().invoke(app, [*words, *more], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.stdout


def test_the_text_generation_prints_lines_like_these():
    ((command, printed),) = [pair for pair in CONSOLE if " generate " in pair[0]]
    shown = mdsd(command, "--target", "tiny-random", "--draft", "tiny-random-draft")
    assert len(labels(printed)) > 8
    assert labels(printed[printed.index("finished by") :]) == labels(shown[shown.index("finished by") :])
    assert printed.rstrip().endswith("draft  bonus  resampled")


def example():
    """The names that the library example defines: p and q are those of the commands below it."""
    found = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(re.search(r"```python\n(.*?)```", README, re.DOTALL)[1], "README.md", "exec"), found)
    return found


@pytest.mark.parametrize("name", ["bound", "compare"])
def test_the_commands_for_arrays_run(name, tmp_path, monkeypatch):
    ((command, printed),) = [pair for pair in CONSOLE if f" {name} " in pair[0]]
    monkeypatch.chdir(tmp_path)
    np.savez("mine.npz", p=example()["p"], q=example()["q"])
    shown = [line.rstrip() for line in mdsd(command).strip().splitlines()]
    assert shown
    if printed:
        assert shown == [line.rstrip() for line in printed.strip().splitlines()]


def test_an_output_of_a_command_for_arrays_is_shown():
    assert any(printed for command, printed in CONSOLE if " bound " in command)


def test_it_names_every_verifier():
    named = set(re.findall(r'`(?:verifier\()?"(\w+)"\)?`', README))
    assert named == set(_REGISTRY)
    assert f"| verifiers | {len(_REGISTRY)}, each lossless by enumeration |" in README


def test_the_table_of_notebooks_is_complete_and_asks_questions():
    table = (ROOT / "book" / "running.md").read_text(encoding="utf-8").split("## The notebooks")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|$", table, re.MULTILINE))
    assert set(rows) == {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert all(question.endswith("?") for question in rows.values())


def test_it_opens_with_the_findings_of_the_recorded_run():
    assert with_findings(HERE, README) == README, (
        "run `python -m mdsd_study.tools.reference.write_reference --profile full`"
    )
    assert README.index("findings:") < README.index("make book")


def test_a_changed_result_changes_a_sentence(tmp_path):
    copy = Project(tmp_path)
    shutil.copytree(HERE.book, copy.book)
    shutil.copytree(HERE.reference / "full", copy.reference / "full")
    path = copy.reference / "full" / "06_verifiers.json"
    content = json.loads(path.read_text())
    content["values"]["optimal rate, without replacement, n=4"]["value"] = 0.1234
    path.write_text(json.dumps(content))
    assert "0.123 if they are drawn without" in with_findings(copy, README)


def test_the_recorded_run_has_no_setting_that_pays():
    """What the sixth finding says in words; when this fails, the finding has to change."""
    rows = [row for row in read_record("15_trees_and_speed").rows if row["tree"] != "none"]
    assert len(rows) > 20
    assert "no setting is faster beyond its interval" in README
    assert not [row for row in rows if row["against plain"][1] > 1]


def test_every_number_of_the_findings_is_filled_in():
    words = re.sub(r"^\d\. |\[\[.*?\]\]|\]\(\S+\)", "", findings(HERE), flags=re.MULTILINE)
    assert re.findall(r"\d+(?:\.\d+)?", words) == ["0.7", "1"], "temperatures only"


def test_it_is_short():
    prose = re.sub(r"```(?:console|text)\n.*?```", "", README, flags=re.DOTALL)
    assert len(re.findall(r"\w[\w.]*", re.sub(r"\]\(\S+\)|\S+://\S+", "", prose))) < 1300


def test_files_and_pages_that_it_names_exist():
    links = [x for x in re.findall(r"\]\(([^)]+)\)", README) if "://" not in x]
    folders = re.findall(r"^\| ((?:`\w+/`(?:, )?)+) \|", README, re.MULTILINE)
    assert len(links) > 5
    assert len(folders) >= 4
    for name in [*links, *re.findall(r"`(\w+/)`", " ".join(folders))]:
        assert (ROOT / name).exists(), name


def commands():
    """Every ``mdsd`` command of the README and the book's pages, as (page, words)."""
    for path in [ROOT / "README.md", *sorted((ROOT / "book").glob("*.md"))]:
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"^(?:\$ )?\.venv/bin/mdsd (.*)$", text, re.MULTILINE):
            yield path.name, shlex.split(line, comments=True)


def test_commands_on_pages_have_options_that_exist():
    group = typer.main.get_command(app)
    seen = set()
    for page, (name, *words) in commands():
        command = group.commands[name]
        if words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        used = {word for word in words if re.match(r"--?[a-z]", word)}
        assert used <= known, f"{page}: {name} has no {', '.join(sorted(used - known))}"
        seen.add((page, name))
    assert {
        ("README.md", "generate"),
        ("README.md", "compare"),
        ("settings.md", "compare"),
    } <= seen
