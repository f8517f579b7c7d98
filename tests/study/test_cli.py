"""The command line, in process, on tiny random models."""

import io
import json
import re
import subprocess
import sys
from types import SimpleNamespace

import numba
import numpy as np
import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from mdsd_core.decoding.drafters import packaged_trigram
from mdsd_core.decoding.drafters.ngram import WittenBellTrigram
from mdsd_core.decoding.loop import DecodingLoop
from mdsd_core.decoding.request import StreamEvent
from mdsd_core.distributions import SamplingParams
from mdsd_core.schemes import WithoutReplacement
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_study.cli.arrays import compiled_for
from mdsd_study.cli.commands import app
from mdsd_study.cli.generate import Printer
from mdsd_study.cli.runs import transforms
from tests.instances import COMPILED

TINY = ["--target", "tiny-random", "--draft", "tiny-random-draft", "--tree", "2,1", "-m", "12", "--seed", "1"]


def mdsd(*args, code=0):
    result = CliRunner().invoke(app, [str(a) for a in args])
    assert result.exit_code == code, result.output + str(result.exception)
    return result


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps({"p": [[0.5, 0.3, 0.2]] * 2, "q": [[0.2, 0.3, 0.5]] * 2}))
    return path


def test_generate_prints_one_json_object():
    out = json.loads(mdsd("generate", "hello", *TINY, "--json").stdout)
    assert len(out["tokens"]) == len(out["kinds"]) == len(out["logprobs"]) == 12
    assert out["finish_reason"] == "length"
    assert out["metrics"]["emitted"] == 12
    assert out["settings"]["draft_sampling"]["temperature"] == 0.7
    again = json.loads(mdsd("generate", "hello", *TINY, "--json").stdout)
    assert again["tokens"] == out["tokens"]


@pytest.mark.skipif(not COMPILED, reason="compares with compiled kernels")
def test_a_file_of_few_numbers_is_computed_without_compiling(tmp_path):
    rows = {
        "p": [[0.5, 0.3, 0.2, 0.0], [1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25], [0.7, 0.3, 0.0, 0.0]],
        "q": [[0.2, 0.3, 0.0, 0.5], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 0.4, 0.6]],
    }
    path = tmp_path / "few.json"
    path.write_text(json.dumps(rows))
    arguments = ["compare", str(path), "-n", "3", "--json"]
    code = "from mdsd_study.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr.strip()
    plain, kernels = json.loads(done.stdout), json.loads(mdsd(*arguments).stdout)
    assert (plain["compiled"], kernels["compiled"]) == (False, True)
    timed = ("draw_ms", "verify_ms")
    for row, same in zip(plain["rows"], kernels["rows"], strict=True):
        assert {**row, **dict.fromkeys(timed)} == pytest.approx({**same, **dict.fromkeys(timed)}, abs=1e-12)


@pytest.mark.parametrize(
    ("shape", "drafts", "compiled"), [((4, 4), (2, 4), False), ((1, 17), (2,), True), ((1, 3), (1, 5), True)]
)
def test_only_few_numbers_and_drafts_are_computed_without_compiling(monkeypatch, shape, drafts, compiled):
    monkeypatch.delitem(sys.modules, "mdsd_core._jit", raising=False)  # as in a process that has loaded no kernel
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    assert compiled_for(np.full(shape, 1 / shape[1]), drafts) is compiled


@pytest.mark.parametrize("scheme", ["with_replacement", "without_replacement"])
def test_generate_by_the_path_rule(scheme):
    rule = ["--scheme", scheme, "--verifier", "optimal", "--tree-rule", "path"]
    out = json.loads(mdsd("generate", "hello", *TINY, *rule, "--json").stdout)
    assert out["settings"]["tree_rule"] == "path"
    assert len(out["tokens"]) == out["metrics"]["emitted"] == 12
    assert out["metrics"]["accepted"] > 0
    refused = mdsd("generate", "hello", *TINY, "--verifier", "rrs", "--tree-rule", "path", code=2)
    assert "takes a verifier that selects one draft" in " ".join(refused.output.split())


def test_generate_streams_text_and_metrics():
    out = mdsd("generate", "hello", *TINY).stdout
    text = json.loads(mdsd("generate", "hello", *TINY, "--json").stdout)["text"]
    assert out.startswith(text.rstrip("\n").split("\n")[0][:5])
    for words in ("block efficiency", "alpha, per visited node", "target calls", "resampled"):
        assert words in out


@pytest.mark.parametrize(
    "extra", [["--draft", "none"], ["--draft", "lookup", "--scheme", "deterministic", "--verifier", "deterministic"]]
)
def test_other_drafters(extra):
    out = json.loads(mdsd("generate", "abcabcab", *TINY, *extra, "--json").stdout)
    assert len(out["tokens"]) == 12


def test_a_trigram_of_the_users_text(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat\n\nthe dog sat on the cat")
    out = json.loads(mdsd("generate", "the ", *TINY, "--draft", f"ngram:{text}", "--json").stdout)
    assert out["metrics"]["drawn"] > 0


def test_the_trigram_of_the_packaged_prompts_and_of_kept_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(packaged_trigram, "load_prompts", lambda name: [SimpleNamespace(text="the cat sat on the cat")])
    monkeypatch.setattr(packaged_trigram, "cache_dir", lambda: tmp_path)
    of_prompts = json.loads(mdsd("generate", "the ", *TINY, "--draft", "ngram", "--json").stdout)
    assert of_prompts["metrics"]["drawn"] > 0
    (kept,) = (tmp_path / "ngram").iterdir()
    of_counts = json.loads(mdsd("generate", "the ", *TINY, "--draft", f"ngram:{kept}", "--json").stdout)
    assert of_counts["tokens"] == of_prompts["tokens"]
    assert of_counts["metrics"]["accepted"] == of_prompts["metrics"]["accepted"]
    WittenBellTrigram.fit([[0, 1]], 5).save(tmp_path / "other.npz")
    refused = mdsd("generate", "the ", *TINY, "--draft", f"ngram:{tmp_path / 'other.npz'}", code=2)
    assert "was made for 5 tokens, but the target has 257" in " ".join(refused.stderr.split())


def interrupt_the_third_round(monkeypatch):
    step, calls = DecodingLoop.step, []

    def interrupted(self):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(DecodingLoop, "step", interrupted)


def test_an_interrupt_keeps_the_text_and_has_an_exit_code(monkeypatch):
    whole = json.loads(mdsd("generate", "hello", *TINY, "--json").stdout)
    with monkeypatch.context() as patch:
        interrupt_the_third_round(patch)
        out = json.loads(mdsd("generate", "hello", *TINY, "--json", code=130).stdout)
    assert out["finish_reason"] == "interrupted"
    assert 2 <= len(out["tokens"]) < 12
    assert out["tokens"] == whole["tokens"][: len(out["tokens"])]
    with monkeypatch.context() as patch:
        interrupt_the_third_round(patch)
        assert "interrupted" in mdsd("generate", "hello", *TINY, code=130).stdout

    def interrupted(*_, **__):
        raise KeyboardInterrupt  # no signal: a process in the background may have been told to ignore it

    monkeypatch.setattr("mdsd_study.cli.runs.load_setup", interrupted)
    for command in (["generate", "hello"], ["bench"]):  # while models are loaded: nothing to keep, no trace
        assert "Traceback" not in mdsd(*command, code=130).output


def test_tokens_are_coloured_by_where_they_came_from(monkeypatch):
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, color_system="truecolor", no_color=False, highlight=False)
    monkeypatch.setattr(sys.modules[Printer.__module__], "console", console)
    printer = Printer(lambda tokens: "".join("abc"[token] for token in tokens))
    printer(StreamEvent(0, (0, 1, 2), ("draft", "bonus", "resampled"), (0.0,) * 3, None))
    pieces = dict(re.findall(r"((?:\x1b\[[\d;]+m)?)([abc])", shown.getvalue().replace("\x1b[0m", "")))
    assert sorted(pieces.values()) == ["a", "b", "c"]
    assert len(pieces) == 3  # three styles, that of the bonus being none
    assert pieces[""] == "b"


def test_tokens_that_split_a_character_wait_for_the_rest(capsys):
    decode = {1: "a", 2: "a\ufffd", 3: "aé"}
    printer = Printer(lambda tokens: decode[len(tokens)])
    shown = []
    for token in (1, 2, 3):
        printer(StreamEvent(0, (token,), ("draft",), (0.0,), None))
        shown.append(capsys.readouterr().out)
    assert shown == ["a", "", "é"]


def test_bound_is_the_optimal_rate(pairs):
    out = json.loads(mdsd("bound", pairs, "-n", 1, "-n", 2, "--json").stdout)
    want = [optimal_acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], WithoutReplacement(n)).rate for n in (1, 2)]
    assert [row["rate"] for row in out["optimal"]] == pytest.approx(want, abs=1e-12)
    assert "optimal acceptance rate" in mdsd("bound", pairs).stdout


def test_compare_never_exceeds_the_optimum(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "pairs.npz", p=rng.dirichlet(np.ones(6), 3), q=rng.dirichlet(np.ones(6), 3))
    out = json.loads(mdsd("compare", tmp_path / "pairs.npz", "-n", 2, "--json").stdout)
    rows = out["rows"]
    assert {"rrs", "rrs_without", "spechub", "optimal"} <= {row["verifier"] for row in rows}
    assert "top1_sampled" not in {row["scheme"] for row in rows}  # with 2 drafts it is greedy
    assert all(row["acceptance"] <= row["optimum"] + 1e-12 for row in rows if row["exact"])
    assert all(row["tokens_per_round"] == pytest.approx(1 + row["acceptance"], abs=1e-12) for row in rows)
    assert out["best"]["tokens_per_round"] == pytest.approx(max(row["tokens_per_round"] for row in rows), abs=1e-9)
    shown = mdsd("compare", tmp_path / "pairs.npz", "-n", 2).stdout
    assert "gap" in shown
    assert out["enough"] is False
    assert "3 text(s): too few for the intervals to be relied on (at least 12)" in " ".join(shown.split())
    np.savez(tmp_path / "one.npz", p=[0.5, 0.5], q=[0.9, 0.1])
    assert "too few" not in mdsd("compare", tmp_path / "one.npz", "-n", 2).stdout  # no interval
    assert {"without_replacement", "token_matching"} <= set(shown.split())  # in a narrow window too
    assert f"n = 2, {out['best']['scheme']}" in shown


@pytest.fixture
def own_prompts(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(json.dumps({"id": str(i), "text": text}) for i, text in enumerate(("one", "two words"))))
    return path


def test_compare_on_a_pair_of_models(tmp_path, own_prompts):
    plot = tmp_path / "plot.png"
    pair = ["--target", "tiny-random", "--draft", "tiny-random-draft", "--set", own_prompts, "-m", 10, "--stride", 3]
    out = json.loads(mdsd("compare", *pair, "-n", 1, "-n", 2, "--depth", 2, "--plot", plot, "--json").stdout)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert (out["texts"], out["vocabulary"]) == (2, 257)
    for row in out["rows"]:
        assert row["nodes"] == row["n"] + row["n"] ** 2
        assert 1 < row["tokens_per_round"] <= 3
        assert row["tokens_per_second"] == pytest.approx(1e3 * row["tokens_per_round"] / row["round_ms"])
        assert row["low"] <= row["acceptance"] <= row["high"]
    assert out["best"]["tokens_per_second"] == max(row["tokens_per_second"] for row in out["rows"])
    shown = mdsd("compare", *pair, "-n", 2).stdout
    assert "times plain decoding" in " ".join(shown.split())
    assert {"without_replacement", "token_matching"} <= set(shown.split())
    assert "Also in a window of" in shown
    assert "gap" not in shown.split("Also")[0]
    same = json.loads(mdsd("compare", *pair[:2], "--draft", "tiny-random", *pair[4:], "-n", 1, "--json").stdout)
    rates = {(row["scheme"], row["verifier"]): row["acceptance"] for row in same["rows"]}
    assert rates["with_replacement", "rrs"] == pytest.approx(1.0, abs=1e-12)  # a draft that is the target


def test_bench_says_whether_drafts_pay():
    args = ["--target", "tiny-random", "--draft", "tiny-random-draft", "--tree", "2", "-m", "6", "--repeat", "1"]
    rows = json.loads(mdsd("bench", *args, "--json").stdout)["rows"]
    assert [row["tree"] for row in rows] == ["none", "2"]
    assert rows[0]["speedup"] == 1.0
    assert "pay" in mdsd("bench", *args).stdout


def test_bench_names_the_transforms_that_it_applies():
    args = ["--target", "tiny-random", "--draft", "tiny-random-draft", "--tree", "2", "-m", "3", "--repeat", "1"]
    settings = json.loads(mdsd("bench", *args, "-t", "1", "--json").stdout)["settings"]
    assert settings["target_sampling"] == {"temperature": 1.0, "top_k": None, "top_p": 1.0, "min_p": 0.0}
    assert settings["draft_sampling"] == settings["target_sampling"]
    shown = " ".join(mdsd("bench", *args, "-t", "1").stdout.split())
    assert "without_replacement, rrs_without; temperature 1, no filters" in shown
    assert transforms(SamplingParams(0.5, top_k=4, min_p=0.1)) == "temperature 0.5, top_k 4, min_p 0.1"


def test_precision_and_place_of_the_models():
    args = ["--device", "cpu", "--dtype", "float32"]
    assert len(json.loads(mdsd("generate", "hello", *TINY, *args, "--json").stdout)["tokens"]) == 12
    assert json.loads(mdsd("models", "check", "tiny-random", *args, "--json").stdout)["problems"] == []


def test_a_model_that_fails_its_check_has_an_exit_code(monkeypatch):
    monkeypatch.setattr("mdsd_core.models.tokenizer_problems", lambda *_: ["257 ids for 300 logits"])
    assert json.loads(mdsd("models", "check", "tiny-random", "--json", code=2).stdout)["problems"]


def test_models_are_listed_and_checked():
    assert "smollm2-135m-skip4" in mdsd("models", "list").stdout
    assert json.loads(mdsd("models", "list", "--json").stdout)["models"]
    facts = json.loads(mdsd("models", "check", "tiny-random", "--json").stdout)
    assert facts["vocabulary"] == 257
    assert facts["problems"] == []
    assert "LlamaForCausalLM" in mdsd("models", "fetch", "tiny-random").stdout


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["generate", "hi", *TINY, "--tree", "tree"], 2, "tree must be like"),
        (["generate", "hi", *TINY, "--scheme", "magic"], 2, "scheme must be one of"),
        (["generate", "hi", *TINY, "--verifier", "magic"], 2, "no verifier is named"),
        (["generate", "hi", *TINY, "--verifier", "rrs"], 2, "not lossless"),
        (["generate", "hi", *TINY, "--tree-rule", "path"], 2, "such as 'optimal'"),
        (["generate", "hi", *TINY, "--top-p", "0"], 2, "top_p"),
        (["generate", "hi", *TINY, "--draft", "ngram:/no/such/file"], 2, "there is no file"),
        (["generate", "hi", *TINY, "--draft", "/no/such/folder"], 3, "could not be loaded"),
        (["generate", "hi", *TINY, "--device", "gpu9"], 2, "device must be one that torch knows"),
        (["generate", "hi", *TINY, "--device", "cuda:99"], 2, "GPUs on this machine; use 'cpu'"),
        (["bench", "--target", "tiny-random", "--draft", "none", "--dtype", "float99"], 2, "such as 'bfloat16'"),
        (["generate", "", *TINY, "--raw"], 2, "must hold at least one token id"),
        (["bound", "nothing.json"], 2, "No such file or directory: 'nothing.json'"),
        (["compare"], 2, "give a file with p and q, or --target and --draft"),
        (["compare", "--target", "tiny-random"], 2, "give a file with p and q, or --target and --draft"),
        (["compare", "a.json", "--depth", "2"], 2, "--depth needs --target and --draft"),
        (["compare", "a.json", "--plot", "a.doc"], 2, "--plot must end in"),
        (["compare", "--target", "tiny-random", "--draft", "/no/such/folder"], 3, "could not be loaded"),
        (["generate"], 2, "Missing argument"),
    ],
)
def test_errors_say_what_to_do(args, code, words):
    result = mdsd(*args, code=code)
    assert words in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", '{"p": [0.5, 0.5]}', "'q' is missing"),
        ("a.json", "{", "no valid JSON"),
        ("a.csv", "", ".json or .npz"),
        ("a.json", '{"p": [0.5, 0.6], "q": [0.5, 0.5]}', "must sum to 1"),
        ("a.json", '{"p": [1.0], "q": [0.5, 0.5]}', "one shape"),
    ],
)
def test_files_that_hold_no_pairs_are_refused(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    assert words in " ".join(mdsd("bound", tmp_path / name, code=2).stderr.split())


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("door", ["list", "float64", "as it is"])
def test_rows_of_a_softmax_in_a_coarser_type_are_taken_and_the_correction_is_told(tmp_path, kind, door):
    logits = torch.from_numpy(np.random.default_rng(2).normal(size=(2, 20, 50)) * 2)
    p, q = torch.softmax(logits.to(kind), dim=-1)
    exact = {"p": p.double().numpy(), "q": q.double().numpy()}
    off = {name: np.abs(rows.sum(axis=1) - 1.0).max() for name, rows in exact.items()}
    assert min(off.values()) > 1e-9
    path = tmp_path / ("rows.json" if door == "list" else "rows.npz")
    if door == "list":
        path.write_text(json.dumps({"p": p.tolist(), "q": q.tolist()}))
    else:  # numpy knows no bfloat16: the narrowest type that holds it is float32
        own = torch.float32 if kind == torch.bfloat16 else kind
        np.savez(path, **{k: x.to(torch.float64 if door == "float64" else own).numpy() for k, x in zip("pq", (p, q))})
    of_bound = json.loads(mdsd("bound", path, "-n", 2, "--json").stdout)
    a, b = (rows / rows.sum(axis=1, keepdims=True) for rows in exact.values())
    want = np.mean([optimal_acceptance(x, y, WithoutReplacement(2)).rate for x, y in zip(a, b)])
    assert of_bound["optimal"][0]["rate"] == want
    of_compare = json.loads(mdsd("compare", path, "-n", 1, "--json").stdout)
    assert of_bound["correction"] == of_compare["correction"] == off
    told = f"divided by their sums, which were off 1 by at most: p {off['p']:.1e}, q {off['q']:.1e}."
    for command in (["bound", path], ["compare", path, "-n", 1]):
        assert told in " ".join(mdsd(*command).stdout.split())


def test_a_correction_within_the_rounding_of_float64_is_not_worth_a_line(pairs):
    assert max(json.loads(mdsd("bound", pairs, "--json").stdout)["correction"].values()) < 1e-15
    for command in ("bound", "compare"):
        assert "divided" not in mdsd(command, pairs).stdout


@pytest.mark.parametrize("command", ["bound", "compare"])
@pytest.mark.parametrize(
    ("p", "words"),
    [
        ([0.5, 0.49], "p must sum to 1 (tolerance 1e-09, as its values fit float64) in row [0], got 0.99"),
        ([0.5, 0.75], "p must sum to 1 (tolerance 0.004, as its values fit bfloat16) in row [0], got 1.25"),
        (np.float32([0.3, 0.69]).tolist(), "p must sum to 1 (tolerance 1e-05, as its values fit float32) in row [0]"),
    ],
)
def test_rows_that_are_off_by_more_than_rounding_are_refused(tmp_path, command, p, words):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"p": p, "q": [0.5, 0.5]}))
    assert words in " ".join(mdsd(command, path, code=2).stderr.split())
