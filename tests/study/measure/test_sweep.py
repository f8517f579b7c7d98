"""Sweeps in one process: what they measure, what they keep, and how they go on."""

import dataclasses
import json
from functools import partial

import numpy as np
import pytest

from mdsd_core.distributions import SamplingParams
from mdsd_core.models import ModelMissing, load_pair
from mdsd_core.models.prompts import load_prompts
from mdsd_core.schemes.names import scheme_of
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_core.verifiers import verifier
from mdsd_study.measure import (
    BOUND,
    COLUMNS,
    SettingsDiffer,
    SweepIncomplete,
    SweepSettings,
    entries_of,
    measure,
    model_cache,
)
from mdsd_study.measure import store as store_module
from mdsd_study.measure.pairs import Pair, find_pair
from mdsd_study.measure.stored_texts import store_reference
from mdsd_study.measure.table import SCHEMA, SUMMARY, summarize
from mdsd_study.measure.teacher_forcing import positions
from mdsd_study.measure.texts import draw_continuations
from mdsd_study.statistics import bootstrap_mean

TINY = find_pair("tiny-random")
RULES = (("with_replacement", "rrs"), ("without_replacement", "rrs_without"), ("greedy", "greedy"))
measure = partial(measure, workers=0)


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps({"text": f"prompt number {i}", "id": f"a/{i}"}) + "\n" for i in range(9)))
    return str(path)


@pytest.fixture
def settings(texts):
    return SweepSettings((TINY,), (texts,), prompts=9, counts=(2,), rules=RULES, max_new_tokens=4)


def test_rows_are_the_plain_rates_on_the_texts_of_the_study(tmp_path, texts):
    settings = SweepSettings((TINY,), (texts,), (0.5, 1.0), (1, 3), RULES, prompts=3, max_new_tokens=5, stride=2)
    frame = measure(settings, tmp_path / "out").table().to_pandas()
    pair = load_pair("tiny-random", "tiny-random-draft")
    rows = iter(frame.itertuples())
    for temperature in (0.5, 1.0):
        params = SamplingParams(temperature)
        drawn = draw_continuations(pair.target, load_prompts(texts, limit=3), params, max_new_tokens=5)
        for place in positions(pair.target, {"d": pair.draft}, drawn, params):
            if place.index % 2:
                continue
            p, q = place.p, place.q["d"]
            for scheme, rule, n, law in entries_of(settings):
                row = next(rows)
                bound = optimal_acceptance(p, q, law).rate
                wanted = bound if rule == BOUND else verifier(rule).acceptance(p, q, law)
                wanted = getattr(wanted, "value", wanted)
                assert (row.prompt, row.position, row.scheme, row.verifier, row.n) == (
                    place.key, place.index, scheme, rule, n,
                )  # fmt: skip
                assert (row.temperature, row.draft_temperature, row.text_temperature) == (temperature,) * 3
                assert row.text == "same"
                assert row.acceptance == pytest.approx(wanted, abs=1e-12)
                assert row.bound == pytest.approx(bound, abs=1e-12)
                assert row.overlap == pytest.approx(np.minimum(p, q).sum(), abs=1e-12)
                assert row.target_entropy == pytest.approx(-(p * np.log(p)).sum(), abs=1e-9)
    assert next(rows, None) is None


def test_columns_are_the_documented_ones(tmp_path, settings):
    sweep = measure(settings, tmp_path / "out")
    assert sweep.table().schema.names == list(COLUMNS) == SCHEMA.names
    assert all(text for _, text in COLUMNS.values())
    assert list(sweep.summary().columns[-len(SUMMARY) :]) == list(SUMMARY)


def test_summary_is_the_mean_with_the_interval_of_the_statistics_module(tmp_path, settings):
    sweep = measure(settings, tmp_path / "out")
    frame = sweep.table().to_pandas()
    row = sweep.summary().query("verifier == 'rrs'").iloc[0]
    own = frame[frame["verifier"] == "rrs"]
    found = bootstrap_mean(own["acceptance"], own["prompt"].tolist(), seed=0)
    assert (row.acceptance, row.acceptance_low, row.acceptance_high) == (found.mean, found.low, found.high)
    assert row.gap == pytest.approx((own["bound"] - own["acceptance"]).mean())
    assert (row.prompts, row.contexts, row.enough, row.uncertainty) == (9, len(own), False, 0.0)
    with pytest.raises(ValueError, match="verifier is missing"):
        summarize(frame, by=["pair", "scheme", "n"])


def test_an_interrupted_sweep_goes_on_and_gives_the_same_table(tmp_path, settings):
    whole = measure(settings, tmp_path / "whole")
    seen = []

    def stop(one, key):
        seen.append(key)
        if len(seen) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(settings, tmp_path / "out", finished=stop)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.parquet")}
    assert len(kept) == 4
    later = []
    sweep = measure(settings, tmp_path / "out", finished=lambda one, key: later.append(key))
    assert (sweep.computed, sweep.reused) == (5, 4)
    assert sorted(seen + later) == sorted({*seen, *later})  # none twice
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    assert sweep.table().equals(whole.table())
    assert sweep.summary().equals(whole.summary())
    assert measure(settings, tmp_path / "out").computed == 0


def test_texts_drawn_before_are_not_drawn_again(tmp_path, settings, monkeypatch):
    measure(settings, tmp_path / "out")
    for path in (tmp_path / "out" / "prompts").rglob("*.parquet"):
        path.unlink()
    monkeypatch.setattr("mdsd_study.measure.work.draw_continuations", None)
    assert measure(settings, tmp_path / "out").computed == 9


def test_a_folder_belongs_to_one_sweep(tmp_path, settings, monkeypatch):
    measure(settings, tmp_path / "out")
    with pytest.raises(SettingsDiffer, match=r"stride was 1, is 2; seed was 0, is 3"):
        measure(dataclasses.replace(settings, seed=3, stride=2), tmp_path / "out")
    monkeypatch.setattr(store_module, "measuring_digest", lambda: "other")
    with pytest.raises(SettingsDiffer, match="code that measures has changed"):
        measure(settings, tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(SettingsDiffer, match="not empty and holds no sweep"):
        measure(settings, tmp_path / "full")


def test_fixed_texts_are_labelled_and_shared_by_the_temperatures(tmp_path, settings, monkeypatch):
    passes = []
    forced = "mdsd_study.measure.model_cache.forced_logits"
    original = model_cache.forced_logits
    monkeypatch.setattr(forced, lambda model, text: passes.append((model.name, text.key)) or original(model, text))
    settings = dataclasses.replace(
        settings, prompts=2, temperatures=(0.5, 1.0), text_temperature=0.5, draft_temperatures=(1.0,)
    )
    frame = measure(settings, tmp_path / "out").table().to_pandas()
    assert len(passes) == len(set(passes)) == 4  # two texts, one pass of each model
    assert dict(zip(frame["temperature"], frame["text"])) == {0.5: "same", 1.0: "fixed"}
    assert set(frame["text_temperature"]) == {0.5}
    assert set(frame["draft_temperature"]) == {1.0}
    one, other = (part.set_index(["prompt", "position"]).index for _, part in frame.groupby("temperature"))
    assert one.equals(other)


def test_a_model_is_loaded_once(tmp_path, settings, monkeypatch):
    loaded = []
    for name in ("load_model", "load_pair"):
        load = getattr(model_cache, name)
        monkeypatch.setattr(
            model_cache, name, lambda *a, load=load, name=name, **k: loaded.append(name) or load(*a, **k)
        )
    monkeypatch.setattr(model_cache, "_LOADED", [])
    several = dataclasses.replace(settings, prompts=3, temperatures=(0.5, 1.0))  # two batches of texts, six texts
    measure(several, tmp_path / "out")
    assert loaded == ["load_model", "load_pair"]  # one target, one draft to it
    measure(dataclasses.replace(settings, prompts=2), tmp_path / "again")  # another sweep in the same process
    assert loaded == ["load_model", "load_pair"]


def test_texts_stored_with_the_project_are_used(tmp_path, settings):
    target = load_pair("tiny-random", "tiny-random-draft").target
    settings = SweepSettings(
        (TINY,), ("mt_bench",), prompts=6, profile="ci", counts=(2,), rules=RULES, max_new_tokens=6
    )
    store_reference(target, "mt_bench", "ci", SamplingParams(0.7), reference=tmp_path / "reference")
    stored = measure(settings, tmp_path / "stored", reference=tmp_path / "reference")
    assert not (tmp_path / "stored" / "texts").exists()
    drawn = measure(settings, tmp_path / "drawn", reference=tmp_path / "none")
    assert (tmp_path / "drawn" / "texts").exists()
    assert stored.table().equals(drawn.table())  # the first 6 tokens of 128 are the same as 6 tokens


def test_trigram_drafts_of_a_file(tmp_path, texts):
    (tmp_path / "book.txt").write_text("the cat sat on the mat\n\nprompt number one, number two")
    pairs = (TINY, Pair("ngram", "tiny-random", f"ngram:{tmp_path / 'book.txt'}"))
    settings = SweepSettings(pairs, (texts,), prompts=2, counts=(2,), rules=RULES, max_new_tokens=3)
    frame = measure(settings, tmp_path / "out").table().to_pandas()
    assert set(frame["pair"]) == {"tiny-random", "ngram"}
    assert frame["acceptance"].between(0, 1).all()
    gone = dataclasses.replace(settings, pairs=(Pair("x", "tiny-random", "ngram:nowhere.txt"),))
    with pytest.raises(SweepIncomplete, match="text file nowhere"):
        measure(gone, tmp_path / "gone")


def test_a_prompt_that_cannot_be_measured_stops_no_other(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in ("short", "x" * 2100, "also short")))
    settings = SweepSettings((TINY,), (str(path),), counts=(2,), rules=RULES, max_new_tokens=3)
    with pytest.raises(SweepIncomplete, match=r"1 prompts .*long/1: its 2100 tokens fill the window of 2048") as caught:
        measure(settings, tmp_path / "out")
    assert list(caught.value.failures) == ["long/1"]
    assert len(list((tmp_path / "out" / "prompts").rglob("*.parquet"))) == 2
    assert not (tmp_path / "out" / "table.parquet").exists()
    fits = dataclasses.replace(settings, longest_prompt=100)
    assert measure(fits, tmp_path / "fits").computed == 2


def test_a_missing_model_ends_the_sweep_at_once(tmp_path, texts):
    settings = SweepSettings((Pair("x", str(tmp_path), "skip:1"),), (texts,), counts=(2,), rules=RULES)
    with pytest.raises(ModelMissing, match="could not be loaded"):
        measure(settings, tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": ()}, "counts must be a tuple of different entries"),
        ({"counts": (2, 2)}, "counts must be a tuple of different entries"),
        ({"counts": (0,)}, "counts must be an integer >= 1"),
        ({"pairs": (TINY, Pair("tiny-random", "a", "b"))}, "pairs must have different names"),
        ({"profile": "fast"}, "profile must be one of"),
        ({"stride": 0}, "stride must be an integer >= 1"),
        ({"stride": None}, "stride must be an integer >= 1, got None"),
        ({"seed": None}, "seed must be an integer >= 0, got None"),
        ({"temperatures": ("0.7",)}, "temperature must be a real number, got '0.7'"),
        ({"text_temperature": True}, "temperature must be a real number, got True"),
        ({"histories": 1}, "histories must be an integer >= 64"),
        ({"temperatures": (-1.0,)}, "temperature must be finite and >= 0"),
        ({"draft_temperatures": (float("nan"),)}, "temperature must be finite"),
        ({"top_p": 0.0}, "top_p must lie in"),
        ({"rules": (("greedy", "kseq"), ("with_replacement", "rrs_without"))}, "'rrs_without' is not lossless"),
        ({"rules": (("spechub", "spechub"),), "counts": (3,)}, "'spechub' has none of the numbers of drafts"),
        ({"rules": (("no_law", "rrs"),)}, "scheme must be one of"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SweepSettings(**({"pairs": (TINY,), "prompt_sets": ("mt_bench",)} | change))


def test_unknown_verifiers_are_refused():
    with pytest.raises(KeyError, match="no verifier is named 'best'"):
        SweepSettings((TINY,), ("mt_bench",), rules=(("greedy", "best"),))


def test_schemes_between_the_top_and_sampling():
    assert scheme_of("top3_sampled", 3) is None
    assert scheme_of("top3_sampled", 5).drafts == 5
    assert scheme_of("top1_sampled", 1).drafts == 1  # the family's own: one sampled draft
