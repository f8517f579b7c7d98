"""Continuations: one stream a prompt, whatever batch and order; the target's law; stored and read again."""

import json
from itertools import pairwise

import numpy as np
import pytest
import torch
from transformers import GPT2Config, LlamaConfig

from mdsd_core.distributions import SamplingParams, draw_token, probabilities
from mdsd_core.models import LanguageModel, byte_tokenizer, random_model, tiny_random_pair
from mdsd_core.models.prompts import Prompt
from mdsd_study.measure import stored_texts
from mdsd_study.measure.stored_texts import (
    TextSettings,
    load_texts,
    read_texts,
    store_reference,
    text_file,
    write_texts,
)
from mdsd_study.measure.teacher_forcing import forced_logits, positions
from mdsd_study.measure.texts import (
    MAX_NEW_TOKENS,
    PROMPTS_PER_SET,
    Continuation,
    draw_continuations,
    prompt_stream,
    thinned,
)

PARAMS = SamplingParams(temperature=0.8, top_p=0.95)


def prompts_of(texts):
    return [Prompt("toy", str(i), text, chat=False, licence="own", printable=True) for i, text in enumerate(texts)]


PROMPTS = prompts_of(["a", "Hello, world", "three", "a longer one than all the others", "x y", "a"])


def with_eos(model, eos):
    return LanguageModel(model.name, model.model, model.tokenizer, model.vocab_size, eos)


def test_batch_size_and_order_change_nothing(tiny_pair):
    alone = draw_continuations(tiny_pair.target, PROMPTS, PARAMS, max_new_tokens=12, batch_size=1)
    for size in (2, 4, 6):
        assert draw_continuations(tiny_pair.target, PROMPTS, PARAMS, max_new_tokens=12, batch_size=size) == alone
    back = draw_continuations(tiny_pair.target, PROMPTS[::-1], PARAMS, max_new_tokens=12, batch_size=4)
    assert back[::-1] == alone
    assert alone[0].prompt == alone[5].prompt
    assert alone[0].tokens != alone[5].tokens  # equal texts, different keys: streams of their own
    assert [one.key for one in alone] == [f"toy/{i}" for i in range(6)]


def test_batches_of_a_model_with_absolute_positions():
    """GPT-2 adds a vector for each position: with padding on the left, a wrong position would show."""
    config = GPT2Config(vocab_size=257, n_embd=16, n_layer=2, n_head=2, n_positions=128, eos_token_id=256)
    target = LanguageModel.of("gpt2", random_model(config, seed=0), byte_tokenizer())
    alone = draw_continuations(target, PROMPTS, PARAMS, max_new_tokens=12, batch_size=1)
    assert draw_continuations(target, PROMPTS, PARAMS, max_new_tokens=12, batch_size=6) == alone


def test_seed_changes_everything_and_the_global_state_nothing(tiny_pair):
    def draw(seed):
        return [
            one.tokens for one in draw_continuations(tiny_pair.target, PROMPTS, PARAMS, seed=seed, max_new_tokens=8)
        ]

    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    first = draw(0)
    torch.manual_seed(2)
    assert draw(0) == first
    assert all(a != b for a, b in zip(first, draw(1), strict=True))
    assert prompt_stream(0, "a").random() != prompt_stream(1, "a").random()
    assert prompt_stream(0, "a").random() != prompt_stream(0, "b").random()


def test_every_token_is_drawn_from_the_rows_of_a_fresh_pass(tiny_pair):
    """The cache, the padding on the left and the positions are right: replay each draw from logits without any."""
    drawn = draw_continuations(tiny_pair.target, PROMPTS, PARAMS, max_new_tokens=10, batch_size=6)
    for one in drawn:
        stream = prompt_stream(0, one.key)
        ids = list(one.prompt)
        for token in one.tokens:
            logits = tiny_pair.target.model(torch.tensor([ids])).logits[0, -1]
            assert draw_token(probabilities(logits, PARAMS), stream.random()) == token
            ids.append(token)


def test_stops_at_the_end_of_text_only_there(tiny_pair):
    full = draw_continuations(with_eos(tiny_pair.target, ()), PROMPTS, PARAMS, max_new_tokens=30, batch_size=3)
    assert {len(one.tokens) for one in full} == {30}
    ends = (full[0].tokens[4], full[1].tokens[9])  # two ids that end a text
    cut = draw_continuations(with_eos(tiny_pair.target, ends), PROMPTS, PARAMS, max_new_tokens=30, batch_size=3)
    for one, whole in zip(cut, full, strict=True):
        stop = next((i + 1 for i, token in enumerate(whole.tokens) if token in ends), 30)
        assert one.tokens == whole.tokens[:stop]
    assert len(cut[0].tokens) <= 5


def test_stops_at_the_end_of_the_window():
    target = tiny_random_pair(max_position_embeddings=16).target
    drawn = draw_continuations(target, prompts_of(["a" * 13, "a" * 2]), PARAMS, max_new_tokens=100, batch_size=2)
    eos = target.eos_ids[0]
    assert [len(one.prompt) + len(one.tokens) == 16 or one.tokens[-1] == eos for one in drawn] == [True, True]
    assert len(drawn[0].tokens) <= 3
    with pytest.raises(ValueError, match=r"prompt toy/0 has 16 tokens and fills the window of 16"):
        draw_continuations(target, prompts_of(["a" * 16]), PARAMS)


def test_padding_of_the_vocabulary_is_never_drawn(tiny_pair):
    narrow = LanguageModel("narrow", tiny_pair.target.model, tiny_pair.tokenizer, 128, ())
    drawn = draw_continuations(narrow, PROMPTS, SamplingParams(temperature=5.0), max_new_tokens=40)
    assert max(token for one in drawn for token in one.tokens) < 128


def test_greedy_is_generate_of_transformers(tiny_pair):
    (drawn,) = draw_continuations(
        with_eos(tiny_pair.target, ()), PROMPTS[1:2], SamplingParams(temperature=0), max_new_tokens=15
    )
    ids = torch.tensor([drawn.prompt])
    theirs = tiny_pair.target.model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=15, eos_token_id=None, pad_token_id=0
    )
    assert tuple(theirs[0, ids.shape[1] :].tolist()) == drawn.tokens


def test_law_of_the_first_two_tokens():
    """Chi-square against p(a) p(b|a), 4,000 prompts, V = 3; one wrong position or mask would be seen at once."""
    target = tiny_random_pair(257, seed=4).target
    target = LanguageModel("three", target.model, target.tokenizer, 3, ())
    count, params = 4000, SamplingParams(1.0)
    many = [Prompt("toy", str(i), "ab", chat=False, licence="own", printable=True) for i in range(count)]
    drawn = draw_continuations(target, many, params, max_new_tokens=2, batch_size=500)
    seen = np.zeros((3, 3))
    for one in drawn:
        seen[one.tokens] += 1
    first = probabilities(target.model(torch.tensor([[97, 98]])).logits[0, -1], params, vocab_size=3)
    second = [probabilities(target.model(torch.tensor([[97, 98, a]])).logits[0, -1], vocab_size=3) for a in range(3)]
    expected = count * first[:, None] * np.array(second)
    assert expected.min() > 5
    assert ((seen - expected) ** 2 / expected).sum() < 26.1  # 99.9 % quantile, 8 degrees of freedom


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens must be an integer >= 1, got 0"),
        ({"batch_size": 0}, "batch_size must be an integer >= 1, got 0"),
        ({"prompts": [PROMPTS[0], PROMPTS[0]]}, "prompts must have different keys"),
        ({"prompts": prompts_of([""])}, "prompt toy/0 has no token"),
    ],
)
def test_bad_input(tiny_pair, change, message):
    arguments = {"prompts": PROMPTS} | change
    with pytest.raises(ValueError, match=message):
        draw_continuations(tiny_pair.target, params=PARAMS, **arguments)


def test_files_round_trip(tmp_path):
    texts = [Continuation("a/0", (1, 2), (3,)), Continuation("a/1", (4,), (5, 6))]
    path = tmp_path / "deep" / "file.json"
    write_texts(path, {"target": "x", "prompts": 2}, texts)
    assert read_texts(path) == ({"target": "x", "prompts": 2}, texts)
    assert [file.name for file in path.parent.iterdir()] == ["file.json"]
    path.write_text(json.dumps({"settings": {"format": 0}}))
    with pytest.raises(ValueError, match=r"file\.json is not a file of texts of format 1"):
        read_texts(path)


@pytest.fixture
def small_world(tmp_path, monkeypatch, tiny_pair):
    monkeypatch.setenv("MDSD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(stored_texts, "PROMPTS_PER_SET", {"ci": 2, "quick": 3})
    return tmp_path / "reference", tiny_pair.target


def test_stored_texts_are_read_for_just_their_settings(small_world, monkeypatch):
    reference, target = small_world
    params = SamplingParams(0.7)
    path = store_reference(target, "mt_bench", "ci", params, max_new_tokens=4, reference=reference)
    assert path == text_file(TextSettings("tiny-random", "mt_bench", params, 2), "ci", reference)
    settings, stored = read_texts(path)
    assert [one.key for one in stored] == ["mt_bench/81", "mt_bench/121"]
    marked = [Continuation(one.key, one.prompt, (1, 2, 3)) for one in stored]  # so that reading shows
    write_texts(path, settings, marked)

    def load(**changes):
        arguments = {"prompt_set": "mt_bench", "profile": "ci", "params": params, "max_new_tokens": 4} | changes
        return load_texts(target, reference=reference, **arguments)

    assert load() == marked
    for changes in (
        {"params": SamplingParams(0.7, top_p=0.9)},
        {"params": SamplingParams(0.8)},
        {"seed": 1},
        {"max_new_tokens": 3},
        {"prompts": 3},
        {"profile": "quick"},
    ):
        other = load(**changes)
        assert all(one.tokens != (1, 2, 3) for one in other), changes
        assert load(**changes) == other
    assert len(load(profile="quick")) == len(load(prompts=3)) == 3
    with pytest.raises(ValueError, match="profile must be one of ci, quick, got 'slow'"):
        load(profile="slow")


def test_what_is_drawn_is_kept_in_the_cache(small_world, monkeypatch, tmp_path):
    reference, target = small_world
    calls = []
    draw = stored_texts.draw_continuations
    monkeypatch.setattr(stored_texts, "draw_continuations", lambda *a, **k: calls.append(1) or draw(*a, **k))
    arguments = {"profile": "ci", "params": SamplingParams(0.5), "max_new_tokens": 3, "reference": reference}
    first = load_texts(target, "human_eval", **arguments)
    assert load_texts(target, "human_eval", **arguments) == first
    assert len(calls) == 1
    # a model by another name may be another one tomorrow, and so may the user's file
    other = LanguageModel("my/model", target.model, target.tokenizer, target.vocab_size, target.eos_ids)
    own = tmp_path / "own.jsonl"
    own.write_text('{"text": "a"}\n')
    for model, name in ((other, "human_eval"), (target, str(own))):
        before = len(calls)
        load_texts(model, name, **arguments)
        load_texts(model, name, **arguments)
        assert len(calls) == before + 2


@pytest.mark.parametrize("name", ["asdiv", "xsum"])
def test_what_must_not_be_shown_is_not_stored(small_world, name):
    reference, target = small_world
    with pytest.raises(ValueError, match=f"{name} must not be kept in the repository"):
        store_reference(target, name, "ci", PARAMS, reference=reference)
    assert not reference.exists()


def test_command(small_world, monkeypatch, capsys):
    reference, target = small_world
    monkeypatch.setattr(stored_texts, "load_model", lambda name: target)
    stored_texts.main(
        ["--profile", "ci", "--set", "mt_bench", "--temperature", "0.7", "1", "--reference", str(reference)]
    )
    printed = capsys.readouterr().out.split()
    assert [line.rsplit("-", 1)[1] for line in printed] == ["T0.7.json", "T1.json"]
    assert len(read_texts(reference / "ci" / "contexts" / "tiny-random-mt_bench-T1.json")[1]) == 2


@pytest.mark.model
def test_the_texts_under_reference(pytestconfig, smollm2):
    """What lies under reference/: the right prompts, all tokens within the vocabulary, ends where a text ends."""
    from mdsd_core.models.prompts import load_prompts

    for profile, name in [(profile, name) for profile in ("ci", "quick") for name in ("mt_bench", "human_eval")]:
        path = text_file(
            TextSettings(smollm2.name, name, SamplingParams(0.7), 0), profile, pytestconfig.rootpath / "reference"
        )
        settings, stored = read_texts(path)
        assert settings["prompts"] == PROMPTS_PER_SET[profile]
        expected = load_prompts(name, limit=PROMPTS_PER_SET[profile])
        assert [one.key for one in stored] == [prompt.key for prompt in expected]
        for one, prompt in zip(stored, expected, strict=True):
            assert list(one.prompt) == smollm2.encode(prompt.text, chat=prompt.chat)
            assert len(one.tokens) == MAX_NEW_TOKENS or one.tokens[-1] in smollm2.eos_ids
            assert not set(one.tokens[:-1]) & set(smollm2.eos_ids)
            assert max(one.tokens) < smollm2.vocab_size


@pytest.mark.model
def test_stored_tokens_could_have_been_drawn(pytestconfig, smollm2):
    """The uniforms of a prompt's stream give its stored tokens again (almost all: rounding differs by machine)."""
    path = text_file(
        TextSettings(smollm2.name, "mt_bench", SamplingParams(0.7), 0), "ci", pytestconfig.rootpath / "reference"
    )
    one = read_texts(path)[1][0]
    stream = prompt_stream(0, one.key)
    rows = forced_logits(smollm2, one)
    again = [draw_token(probabilities(row, SamplingParams(0.7)), stream.random()) for row in rows]
    assert np.mean(np.array(again) == np.array(one.tokens)) > 0.97


def test_forced_rows_are_those_of_step_by_step_decoding(tiny_pair):
    text = Continuation("toy/0", (5, 6, 7), (8, 9, 10, 11))
    rows = forced_logits(tiny_pair.target, text)
    assert rows.shape == (4, 257)
    for i in range(4):
        ids = torch.tensor([[*text.prompt, *text.tokens[:i]]])
        assert np.abs(rows[i] - tiny_pair.target.model(ids).logits[0, -1].numpy()).max() < 1e-10


def test_positions_stream_and_pair_up(tiny_pair):
    texts = [Continuation("toy/0", (5, 6), (8, 9)), Continuation("toy/1", (5,), (7, 4, 2))]
    passes = []

    def counted(texts):
        for text in texts:
            passes.append(text.key)
            yield text

    sides = {"tiny": tiny_pair.draft, "same": tiny_pair.target}
    stream = positions(tiny_pair.target, sides, counted(texts), SamplingParams(0.7), SamplingParams(0.7, top_k=5))
    first = next(stream)
    assert passes == ["toy/0"]  # one text at a time
    rest = list(stream)
    everything = [first, *rest]
    assert [(x.key, x.index, x.token) for x in everything] == [
        ("toy/0", 0, 8),
        ("toy/0", 1, 9),
        ("toy/1", 0, 7),
        ("toy/1", 1, 4),
        ("toy/1", 2, 2),
    ]
    for position in everything:
        text = texts[int(position.key[-1])]
        for name, distribution, params in (
            ("target", position.p, SamplingParams(0.7)),
            ("draft", position.q["tiny"], SamplingParams(0.7, top_k=5)),
        ):
            ids = torch.tensor([[*text.prompt, *text.tokens[: position.index]]])
            logits = getattr(tiny_pair, name).model(ids).logits[0, -1]
            assert np.abs(distribution - probabilities(logits, params)).max() < 1e-12
        assert np.count_nonzero(position.q["tiny"]) == 5
    assert all((a.p != b.p).any() for a, b in pairwise(everything))
    same = next(positions(tiny_pair.target, sides, texts, SamplingParams(0.7)))
    assert (same.p == same.q["same"]).all()  # the draft's settings default to the target's


def test_half_precision_models_are_widened():
    config = LlamaConfig(
        vocab_size=12, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, head_dim=8
    )
    model = LanguageModel.of("half", random_model(config, seed=0, dtype=torch.bfloat16), None)
    rows = forced_logits(model, Continuation("toy/0", (1, 2), (3, 4)))
    assert rows.dtype == np.float32
    (position, _) = positions(model, {}, [Continuation("toy/0", (1, 2), (3, 4))], SamplingParams())
    assert abs(position.p.sum() - 1) < 1e-12


def test_texts_are_thinned_evenly_and_cut():
    given = [Continuation(f"toy/{i}", (1, 2), tuple(range(10 + i))) for i in range(7)]
    kept = thinned(given, 3, 11)
    assert [one.key for one in kept] == ["toy/0", "toy/2", "toy/4"]
    assert [one.tokens for one in kept] == [tuple(range(10)), tuple(range(11)), tuple(range(11))]
    assert all(one.prompt == (1, 2) for one in kept)
    assert thinned(given, 20, 100) == given
    for texts, tokens, name in ((0, 1, "count"), (1, 0, "tokens")):
        with pytest.raises(ValueError, match=f"{name} must be an integer >= 1, got 0"):
            thinned(given, texts, tokens)
