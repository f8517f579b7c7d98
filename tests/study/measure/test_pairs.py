"""Pairs by name: the packaged file, the user's own, and the way to a hub tried on folders in its format."""

import json

import pytest

from mdsd_core.models import tiny_random_pair
from mdsd_core.models.prompts import HUB_SETS, HubSet
from mdsd_study.measure import SweepSettings, measure
from mdsd_study.measure.pairs import Pair, find_pair, packaged_pairs, read_config


def test_the_pairs_of_both_papers_are_there():
    pairs = packaged_pairs()
    wanted = {
        ("huggyllama/llama-7b", "JackFram/llama-68m"),
        ("facebook/opt-6.7b", "facebook/opt-125m"),
        ("lmsys/vicuna-7b-v1.3", "double7/vicuna-68m"),
        ("Qwen/Qwen2-7B-Instruct", "Qwen/Qwen2-0.5B-Instruct"),
        ("huggyllama/llama-7b", "JackFram/llama-160m"),
        ("lmsys/vicuna-7b-v1.3", "JackFram/llama-68m"),
        ("lmsys/vicuna-7b-v1.3", "JackFram/llama-160m"),
        ("lmsys/vicuna-7b-v1.3", "double7/vicuna-160m"),
        ("HuggingFaceTB/SmolLM2-1.7B-Instruct", "HuggingFaceTB/SmolLM2-360M-Instruct"),
        ("HuggingFaceTB/SmolLM2-1.7B-Instruct", "HuggingFaceTB/SmolLM2-135M-Instruct"),
    }
    assert wanted <= {(pair.target, pair.draft) for pair in pairs.values()}
    assert all(any(word in pair.target.lower() for pair in pairs.values()) for word in ("llama-3", "qwen2.5"))
    assert {f"smollm2-135m/{draft}" for draft in ("skip2", "skip4", "skip6", "skip8", "ngram")} <= set(pairs)
    assert {"alpaca", "wmt14_de_en", "cnn_dailymail"} <= set(HUB_SETS)
    with pytest.raises(KeyError, match="no pair is named 'gpt'; there are smollm2-135m/skip2"):
        find_pair("gpt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[pairs.a\n", "no valid TOML"),
        ("[pairs.a]\ntarget = 'x'", "pair 'a' lacks the field draft; it must have target, draft"),
        ("[pairs.a]\ntarget = 1\ndraft = 'y'", "pair 'a': target must be a text, got 1"),
        ("[pairs.a]\ntarget = 'x'\ndraft = 'y'\nname = 'b'", "pair 'a' must not have the field name = 'b'"),
        ("[pairs.a]\ntarget = ''\ndraft = 'y'", "a pair must have a target"),
        ("[sets.a]\ndataset = 'x'", "set 'a' lacks the field template; it must have dataset, template"),
        ("[models.a]\n", "must hold"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path, text, message):
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_config(tmp_path / "own.toml")


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file"):
        read_config(tmp_path / "own.toml")


def test_models_and_data_in_the_format_of_a_hub(tmp_path):
    """Safetensors and tokenizer files in folders, a data set that the datasets library reads: end to end."""
    pair = tiny_random_pair()
    for side, model in (("target", pair.target), ("draft", pair.draft)):
        model.model.save_pretrained(tmp_path / side)
        model.tokenizer.save_pretrained(tmp_path / side)
    (tmp_path / "data").mkdir()
    rows = [{"article": f"News number {i}.", "highlights": "None."} for i in range(4)]
    (tmp_path / "data" / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "own.toml").write_text(
        f"[pairs.mine]\ntarget = '{tmp_path / 'target'}'\ndraft = '{tmp_path / 'draft'}'\n"
        f"[sets.news]\ndataset = '{tmp_path / 'data'}'\ntemplate = \"Summarize.\\n\\n{{article}}\"\nchat = false\n"
    )
    pairs, sets = read_config(tmp_path / "own.toml")
    assert pairs["mine"] == Pair("mine", str(tmp_path / "target"), str(tmp_path / "draft"))
    assert sets == {"news": HubSet(str(tmp_path / "data"), "Summarize.\n\n{article}", chat=False)}
    settings = SweepSettings(
        (find_pair("mine", pairs),), ("news",), prompts=3, max_new_tokens=3, dtype="float64", own_sets=sets
    )
    frame = measure(settings, tmp_path / "out", workers=0).table().to_pandas()
    assert sorted(set(frame["prompt"])) == ["news/0", "news/1", "news/2"]
    built_in = SweepSettings((find_pair("tiny-random"),), ("news",), prompts=3, max_new_tokens=3, own_sets=sets)
    same = measure(built_in, tmp_path / "same", workers=0).table().to_pandas()
    assert frame["acceptance"].to_numpy() == pytest.approx(same["acceptance"].to_numpy(), abs=1e-12)
    with pytest.raises(ValueError, match="dtype must name a dtype of torch"):
        measure(SweepSettings((pairs["mine"],), ("news",), dtype="float7", own_sets=sets), tmp_path / "bad", workers=0)
