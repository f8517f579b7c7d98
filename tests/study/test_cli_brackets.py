"""What users and errors say is printed as it stands: `[/red]` is no markup, in any command."""

import json
import sys
import warnings

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from mdsd_core.models import load_model
from mdsd_study.cli import console
from mdsd_study.cli.commands import app

ODD = "[/red]:smile:[distributed]"
PAIR = ["--target", "tiny-random", "--draft", "tiny-random-draft"]
SWEEP = ["--workers", 0, "-m", 2, "-n", 2, "--rule", "greedy:greedy"]


def mdsd(*args, code=0):
    result = CliRunner().invoke(app, [str(a) for a in args])
    assert result.exit_code == code, result.output + str(result.exception)
    return " ".join(result.output.split())


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder whose name has brackets, to work in."""
    folder = tmp_path / ODD  # one folder in another
    folder.mkdir(parents=True)
    for one in (console.console, console.errors):  # no line is broken, whatever width was set when they were made
        monkeypatch.setattr(one, "_width", 500)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def texts(here):
    path = here / "own.jsonl"
    prompts = [{"id": ODD, "text": f"say {ODD}"}, {"id": "long[/x]", "text": "x" * 3000}]
    path.write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
    return f"{ODD}/own.jsonl"


def test_generate(here, monkeypatch):
    (here / "text.txt").write_text("the cat sat on the mat")
    short = ["-m", 3, "--seed", 1, "--tree", "2"]
    mdsd("generate", ODD, *PAIR, *short, "--raw")
    mdsd("generate", ODD, *PAIR[:2], "--draft", f"ngram:{ODD}/text.txt", *short)
    for option in ("--target", "--draft"):
        assert ODD in mdsd("generate", "hi", *PAIR, option, f"./{ODD}", code=3)
    assert ODD in mdsd("generate", "hi", *PAIR, "--draft", f"ngram:{ODD}", code=2)
    for option in ("--tree", "--scheme", "--verifier", "--tree-rule", "--device", "--dtype"):
        assert ODD in mdsd("generate", "hi", *PAIR, option, ODD, code=2), option
    monkeypatch.setattr("mdsd_core.models.pair.LanguageModel.decode", lambda self, tokens: ODD * len(tokens))
    assert mdsd("generate", "hi", *PAIR, *short).startswith(3 * ODD)


def test_words_that_no_command_knows():
    assert f"No such command '{ODD}'" in mdsd(ODD, code=2)
    for command in (["generate", "hi"], ["bound", "x"], ["compare"], ["measure"], ["bench"], ["models", "check", "x"]):
        assert f"No such option: --{ODD}" in mdsd(*command, f"--{ODD}", code=2)


def test_bench(here):
    (here / "text.txt").write_text("the cat sat on the mat")
    short = ["--repeat", 1, "-m", 2, "--tree", "2"]
    draft = f"ngram:{ODD}/text.txt"
    assert f"tiny-random, drafts by {draft}" in mdsd("bench", *PAIR[:2], "--draft", draft, *short, "--prompt", ODD)
    assert ODD in mdsd("bench", *PAIR[:2], "--draft", f"ngram:{ODD}", *short, code=2)
    assert ODD in mdsd("bench", *PAIR, "--tree", ODD, code=2)


def test_bound_and_compare_of_a_file(here):
    np.savez(here / "pairs.npz", p=[0.5, 0.5], q=[0.75, 0.25])
    (here / "bad.json").write_text(ODD)
    for command in ("bound", "compare"):
        mdsd(command, f"{ODD}/pairs.npz")
        assert ODD in mdsd(command, f"{ODD}/bad.json", code=2)
        assert ODD in mdsd(command, f"{ODD}/missing.npz", code=2)
    assert ODD in mdsd("bound", f"{ODD}/pairs.npz", "--scheme", ODD, code=2)
    assert "red]" in mdsd("compare", f"{ODD}/pairs.npz", "--plot", f"plot.{ODD}", code=2)


def test_compare_of_models(texts):
    options = ["-n", 2, "-m", 3, "--stride", 2]
    mdsd("compare", *PAIR, *options, "--set", texts, "--prompts", 1)
    assert ODD in mdsd("compare", *PAIR, *options, "--set", ODD, code=2)
    assert "prompt own/long[/x] has 3000 tokens" in mdsd("compare", *PAIR, *options, "--set", texts, code=2)
    assert ODD in mdsd("compare", *PAIR[:2], "--draft", f"./{ODD}", code=3)


def test_measure(here, texts, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(f'[pairs."{ODD}"]\ntarget = "tiny-random"\ndraft = "tiny-random-draft"\nabout = "about {ODD}"\n')
    named = ["--config", own, "--pair", ODD, "--set", texts]
    assert mdsd("measure", "--config", own, "--list").count(ODD) == 2
    out = mdsd("measure", *named, *SWEEP, "--longest-prompt", 100, "-o", here / "out")
    assert f"{ODD}, {texts}, T=0.7" in out
    assert f"all in {here}/out" in out
    failed = mdsd("measure", *named, *SWEEP, "-o", here / "failed", code=1)
    assert "own/long[/x]:" in failed
    assert f"{ODD}/failed" in failed
    for option in (["--pair", ODD], ["--rule", "[/red]"], ["--rule", "[/red]:rrs"], ["--set", ODD], ["--dtype", ODD]):
        assert "[/red]" in mdsd("measure", "-o", here / "new", "--prompts", 1, *SWEEP, *option, code=2)


def test_an_extra_that_is_missing_is_named_whole(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("mdsd_study.measure")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "the package pyarrow is needed for sweeps: `pip install 'mdsd-core[study]'`" in mdsd(
        "measure", "--list", code=3
    )


def test_clusters_need_an_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    out = mdsd("measure", *PAIR, "--prompts", 1, "-m", 2, "--workers", 1, "-o", tmp_path / "out", code=3)
    assert "error: the package distributed is needed for clusters: `pip install 'mdsd-core[distributed]'`" in out


def test_models(here, monkeypatch):
    assert "tiny-random" in mdsd("models", "list")
    model = load_model("tiny-random")
    monkeypatch.setattr("mdsd_core.models.tokenizer_problems", lambda *_: [f"odd {ODD}"])
    for command in ("fetch", "check"):
        assert ODD in mdsd("models", command, f"./{ODD}", code=3)
        with monkeypatch.context() as patch:
            patch.setattr("mdsd_core.models.load_model", lambda name, **_: model)
            out = mdsd("models", command, ODD, code=2 * (command == "check"))
            assert f"name {ODD}" in out
    assert f"['odd {ODD}']" in out


def test_warnings(capsys):
    @console.reported()
    def command():
        warnings.warn(f"take care of {ODD}", UserWarning, stacklevel=1)
        raise ValueError(ODD)

    with pytest.raises(typer.Exit):
        command()
    assert capsys.readouterr().err == f"warning: take care of {ODD}\nerror: {ODD}\n"
