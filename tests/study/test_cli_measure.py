"""``mdsd measure``, in process, on tiny random models."""

import json

import pytest
from typer.testing import CliRunner

from mdsd_study.cli.commands import app

SMALL = ["--pair", "tiny-random", "--prompts", "2", "-m", "3", "-n", "2", "--workers", "0"]


def mdsd(*args, code=0):
    result = CliRunner().invoke(app, ["measure", *map(str, args)])
    assert result.exit_code == code, result.output + str(result.exception)
    return result


def test_one_json_object_and_going_on(tmp_path):
    found = json.loads(mdsd(*SMALL, "-o", tmp_path, "--rule", "greedy:greedy", "--json").stdout)
    assert (found["computed"], found["reused"]) == (2, 0)
    assert [row["verifier"] for row in found["summary"]] == ["bound", "greedy"]
    assert found["summary"][1]["gap"] == pytest.approx(0.0, abs=1e-12)
    again = json.loads(mdsd(*SMALL, "-o", tmp_path, "--rule", "greedy:greedy", "--json").stdout)
    assert (again["computed"], again["reused"]) == (0, 2)
    assert again["summary"] == found["summary"]
    assert "another sweep" in mdsd(*SMALL, "-o", tmp_path, code=2).stderr


def test_a_table_for_people(tmp_path):
    out = mdsd(*SMALL, "-o", tmp_path, "-t", "0.5", "--draft-temperature", "1").stdout
    for words in ("tiny-random, mt_bench, T=0.5, draft T=1", "without_replacement", "too few prompts", "2 prompts"):
        assert words in out


def test_own_pairs_and_target_with_drafts(tmp_path):
    (tmp_path / "own.toml").write_text('[pairs.mine]\ntarget = "tiny-random"\ndraft = "skip:1"\n')
    listed = json.loads(mdsd("--list", "--json", "--config", tmp_path / "own.toml").stdout)["pairs"]
    assert listed[-1]["name"] == "mine"
    assert "opt-6.7b/opt-125m" in mdsd("--list").stdout
    options = ["--target", "tiny-random", "--draft", "skip:1", "--draft", "tiny-random-draft", *SMALL[2:], "--json"]
    both = json.loads(mdsd(*options, "-o", tmp_path / "a").stdout)["summary"]
    assert {row["pair"] for row in both} == {"tiny-random/skip:1", "tiny-random/tiny-random-draft"}
    own = ["--config", tmp_path / "own.toml", "--pair", "mine", *SMALL[2:], "--json", "-o", tmp_path / "b"]
    mine = json.loads(mdsd(*own).stdout)["summary"]
    assert [row["acceptance"] for row in mine] == [row["acceptance"] for row in both[: len(mine)]]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 2, "--out FOLDER is needed"),
        (["-o", "x", "--target", "tiny-random"], 2, "give --pair, or --target and --draft together"),
        (["-o", "x", "--pair", "gpt"], 2, "no pair is named"),
        (["-o", "x", "--rule", "rrs"], 2, "--rule must be scheme:verifier"),
        (["-o", "x", "--rule", "greedy:rrs_without", "--rule", "with_replacement:greedy"], 2, "not lossless"),
        (["-o", "x", "--target", "/nowhere", "--draft", "skip:1", "--prompts", "1", "--workers", "0"], 3, "/nowhere"),
    ],
    ids=range(6),
)
def test_errors_say_what_to_do(tmp_path, monkeypatch, options, code, message):
    monkeypatch.chdir(tmp_path)
    assert message in mdsd(*options, code=code).stderr


def test_failed_prompts_have_an_exit_code_of_their_own(tmp_path):
    (tmp_path / "long.jsonl").write_text(json.dumps({"text": "x" * 3000}) + "\n" + json.dumps({"text": "y"}) + "\n")
    told = mdsd(*SMALL, "--set", tmp_path / "long.jsonl", "-o", tmp_path / "out", code=1).stderr
    assert "1 prompts could not be measured: long/0" in told.replace("\n", " ")
