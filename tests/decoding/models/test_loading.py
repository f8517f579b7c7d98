"""Pairs from folders in the hub's format: safetensors only, one vocabulary or a message that says where it differs."""

import json
import warnings

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, PreTrainedTokenizerFast

from mdsd_core.distributions import probabilities
from mdsd_core.models import (
    LanguageModel,
    ModelMissing,
    ModelPair,
    byte_tokenizer,
    load_model,
    load_pair,
    model_names,
    random_model,
    tiny_random_pair,
    tokenizer_problems,
    vocabulary_differences,
)

TEMPLATE = "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}[assistant]"


def word_tokenizer(words, **special):
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token=words[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token=words[0], **special)


def save(folder, *, width, tokenizer=None, seed=0, layers=2, eos=None):
    config = LlamaConfig(
        vocab_size=width,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=layers,
        num_attention_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=eos,
    )
    random_model(config, seed=seed, dtype=torch.float32).save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
    return str(folder)


def test_pair_of_folders_with_padded_embeddings(tmp_path):
    words = ["<unk>", "a", "b", "c", "</s>"]
    target = save(tmp_path / "big", width=8, tokenizer=word_tokenizer(words), layers=3, eos=[4, 2])
    draft = save(tmp_path / "small", width=5, tokenizer=word_tokenizer(words), layers=1)
    pair = load_pair(target, draft)
    assert pair.vocab_size == 5
    assert pair.eos_ids == (4, 2)  # the target's own, several
    assert pair.target.model.dtype == torch.float32
    assert not pair.target.model.training
    ids = torch.tensor([pair.target.encode("a b c")])
    assert ids.tolist() == [[1, 2, 3]]
    p = probabilities(pair.target.model(ids).logits[0], vocab_size=pair.vocab_size)
    q = probabilities(pair.draft.model(ids).logits[0], vocab_size=pair.vocab_size)
    assert p.shape == q.shape == (3, 5)  # the padding ids 5..7 do not exist: their probability is 0


def test_difference_of_vocabularies_is_named(tmp_path):
    ours = save(tmp_path / "a", width=5, tokenizer=word_tokenizer(["<unk>", "a", "b", "c", "d"]))
    theirs = save(tmp_path / "b", width=5, tokenizer=word_tokenizer(["<unk>", "a", "c", "b"]))
    with pytest.raises(ValueError, match="must have one vocabulary, but 3 ids differ") as caught:
        load_pair(ours, theirs)
    assert "id 2: target 'b', draft 'c'; id 3: target 'c', draft 'b'; id 4: only target ('d')" in str(caught.value)
    a, b = load_model(ours), load_model(theirs)
    assert vocabulary_differences(b, a)[2] == "id 4: only draft ('d')"
    many = word_tokenizer([f"x{i}" for i in range(9)])
    save(tmp_path / "c", width=9, tokenizer=many)
    with pytest.raises(ValueError, match=r"9 ids differ.*and 4 more"):
        load_pair(a, str(tmp_path / "c"))


def test_tokenizer_larger_than_the_logits(tmp_path):
    folder = save(tmp_path / "m", width=3, tokenizer=word_tokenizer(["<unk>", "a", "b", "c"]))
    with pytest.raises(ValueError, match="has ids up to 3, but the model only 3 logits"):
        load_model(folder)


def test_pickled_weights_are_refused(tmp_path):
    folder = tmp_path / "pickled"
    save(folder, width=4, tokenizer=word_tokenizer(["<unk>", "a", "b", "c"]))
    weights = random_model(
        LlamaConfig(vocab_size=4, hidden_size=16, num_hidden_layers=1, num_attention_heads=2), seed=0
    )
    torch.save(weights.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelMissing, match="pickled weights are refused"):
        load_model(str(folder))


def test_code_that_comes_with_a_model_does_not_run(tmp_path):
    folder = tmp_path / "remote"
    save(folder, width=4, tokenizer=word_tokenizer(["<unk>", "a", "b", "c"]))
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.OwnModel"}}
    (folder / "config.json").write_text(json.dumps(config))
    ran = tmp_path / "ran"
    (folder / "own.py").write_text(f"import pathlib; pathlib.Path({str(ran)!r}).touch()")
    with pytest.raises(ModelMissing, match="trust_remote_code"):
        load_model(str(folder))
    assert not ran.exists()


def test_missing_models_say_what_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelMissing, match=r"the model 'nobody/nothing' could not be loaded(.|\n)*smollm2-135m-skip2"):
        load_model("nobody/nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelMissing, match="the local folder"):
        load_model(str(tmp_path / "empty"))
    with pytest.raises(ValueError, match="must not be empty"):
        load_model("")


def test_a_swapped_pair_warns(tmp_path):
    words = word_tokenizer(["<unk>", "a", "b"])
    big = save(tmp_path / "big", width=3, tokenizer=words, layers=4)
    small = save(tmp_path / "small", width=3, tokenizer=words, layers=1)
    with pytest.warns(UserWarning, match="more than the .* of the target .*: are the two swapped"):
        load_pair(small, big)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_pair(big, small)
        load_pair(big, big)


def test_dtype_and_device(tmp_path):
    folder = save(tmp_path / "m", width=3, tokenizer=word_tokenizer(["<unk>", "a", "b"]))
    assert load_model(folder, dtype=torch.float64).model.dtype == torch.float64
    assert load_model(folder).device == torch.device("cpu")
    assert load_model(folder, device="meta", dtype=torch.bfloat16).device.type == "meta"
    assert load_model(folder, device_map="cpu").model.dtype == torch.float32


def test_chat_template_and_leading_tokens(tmp_path):
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE
    folder = save(tmp_path / "chat", width=257, tokenizer=tokenizer, eos=256)
    model = load_model(folder)
    assert model.decode(model.encode("Hi", chat=True)) == "[user]Hi[assistant]"
    assert model.decode(model.encode("Hi")) == "Hi"
    plain = tiny_random_pair().target
    assert plain.encode("Hi", chat=True) == plain.encode("Hi")  # no template: as it stands
    no_tokenizer = tiny_random_pair(5).target
    for call in (lambda: no_tokenizer.encode("a"), lambda: no_tokenizer.decode([1])):
        with pytest.raises(ValueError, match="tiny-random has no tokenizer"):
            call()


def test_tokenizer_problems():
    assert tokenizer_problems(byte_tokenizer(), 257) == []
    prepending = byte_tokenizer()
    prepending.add_special_tokens({"bos_token": "<bos>"})
    from tokenizers.processors import TemplateProcessing

    prepending.backend_tokenizer.post_processor = TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 257)])
    (problem,) = tokenizer_problems(prepending, 258)
    assert problem == "adds [257] to a text, its settings ask for []"
    lossy, size = tokenizer_problems(word_tokenizer(["<unk>", "a"]), 4)
    assert "does not survive the round trip" in lossy
    assert size == "2 ids for 4 logits"


@pytest.mark.parametrize("seed", [0, 1])
def test_tiny_random_pair(seed):
    pair = tiny_random_pair(11, seed=seed)
    assert pair.vocab_size == 11
    assert pair.eos_ids == ()
    assert pair.target.context_limit == 2048
    assert {p.data_ptr() for p in pair.target.model.parameters()}.isdisjoint(
        p.data_ptr() for p in pair.draft.model.parameters()
    )
    ids = torch.tensor([[1, 2, 3, 4]])
    p, q = (probabilities(m.model(ids).logits[0]) for m in (pair.target, pair.draft))
    overlap = abs(p - q).sum(axis=1) / 2
    assert (overlap > 0.01).all()
    assert (overlap < 0.8).all()
    again = tiny_random_pair(11, seed=seed)
    assert (again.draft.model(ids).logits == pair.draft.model(ids).logits).all()
    assert (tiny_random_pair(11, seed=seed + 5).target.model(ids).logits != pair.target.model(ids).logits).any()


def test_no_global_random_state_is_touched():
    before = torch.get_rng_state()
    tiny_random_pair(7, seed=3)
    assert (torch.get_rng_state() == before).all()


def test_names_without_a_network():
    assert model_names() == [
        "smollm2-135m",
        *(f"smollm2-135m-skip{k}" for k in (2, 4, 6, 8)),
        "tiny-random",
        "tiny-random-draft",
    ]
    pair = load_pair(load_model("tiny-random"), load_model("tiny-random-draft"))
    assert isinstance(pair, ModelPair)
    assert isinstance(pair.draft, LanguageModel)
    assert repr(pair) == "ModelPair(target='tiny-random', draft='tiny-random-draft', vocab_size=257)"
