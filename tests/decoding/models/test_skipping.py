"""Layer-skipping drafts: the kept layers with shared weights and a key/value cache of their own."""

import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    OPTConfig,
    Qwen2Config,
    Qwen3Config,
)

from mdsd_core.models import load_pair, random_model, skip_layers, tiny_random_pair
from mdsd_core.models.pair import cache_name
from mdsd_core.models.skipping import decoder_layers

SIZES = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2}
ROTARY = SIZES | {"intermediate_size": 32, "num_key_value_heads": 1, "head_dim": 8}
FAMILIES = {
    "llama": LlamaConfig(**ROTARY),
    "qwen2": Qwen2Config(**ROTARY, use_sliding_window=True, sliding_window=3, max_window_layers=2),
    "qwen3": Qwen3Config(**ROTARY),
    "mistral": MistralConfig(**ROTARY, sliding_window=3),
    "gemma3": Gemma3TextConfig(
        **ROTARY,
        sliding_window=3,
        query_pre_attn_scalar=8,
        layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    ),
    "gpt2": GPT2Config(vocab_size=20, n_embd=16, n_layer=4, n_head=2, n_positions=64),
    "neox": GPTNeoXConfig(**SIZES, intermediate_size=32),
    "opt": OPTConfig(**SIZES, ffn_dim=32, word_embed_proj_dim=16, max_position_embeddings=64, pad_token_id=1),
}


def ids_of(model, length=12, seed=0):
    width = model.config.vocab_size
    return torch.randint(2, width, (1, length), generator=torch.Generator().manual_seed(seed))


def by_cache(model, ids, chunks):
    """Logits of `ids` fed in chunks, each after the last, through the model's own cache."""
    word, cache, logits = cache_name(model), None, []
    for chunk in ids.split(chunks, dim=1):
        out = model(chunk, **{word: cache}, use_cache=True)
        cache = out[word]
        logits.append(out.logits)
    return torch.cat(logits, dim=1), cache


@pytest.mark.parametrize("family", FAMILIES)
def test_cached_equals_uncached_in_every_family(family):
    target = random_model(FAMILIES[family], seed=1)
    draft = skip_layers(target, [2, 0])
    ids = ids_of(draft)
    cached, cache = by_cache(draft, ids, [5, 1, 1, 2, 3])
    assert (cached - draft(ids, use_cache=False).logits).abs().max() < 1e-10
    assert cache.get_seq_length() == 12
    assert len(cache.layers) == 2
    # it is not the target, and the target did not become it
    whole = random_model(FAMILIES[family], seed=1)
    assert (target(ids).logits == whole(ids).logits).all()
    assert (target(ids).logits - draft(ids).logits).abs().max() > 1e-3


def test_equals_a_model_built_from_the_kept_layers():
    target = random_model(FAMILIES["llama"], seed=3)
    draft = skip_layers(target, [1])
    weights = target.state_dict()
    kept = {0: 0, 2: 1, 3: 2}
    renamed = {}
    for name, tensor in weights.items():
        parts = name.split(".")
        if "layers" in parts:
            at = parts.index("layers") + 1
            if int(parts[at]) not in kept:
                continue
            parts[at] = str(kept[int(parts[at])])
        renamed[".".join(parts)] = tensor
    config = LlamaConfig(**ROTARY | {"num_hidden_layers": 3})
    alone = LlamaForCausalLM(config).double().eval()
    alone.load_state_dict(renamed)
    ids = ids_of(target)
    assert (draft(ids).logits == alone(ids).logits).all()


def test_layer_types_follow_the_layers():
    target = random_model(FAMILIES["gemma3"], seed=0)
    assert isinstance(target, Gemma3ForCausalLM)
    draft = skip_layers(target, [1, 2])
    assert draft.config.layer_types == ["sliding_attention", "full_attention"]
    assert target.config.layer_types == FAMILIES["gemma3"].layer_types
    assert target.config.num_hidden_layers == 4


def test_weights_are_shared_and_caches_are_not():
    target = random_model(FAMILIES["llama"], seed=5)
    draft = skip_layers(target, [1, 2])
    ours = {p.data_ptr() for p in target.parameters()}
    assert {p.data_ptr() for p in draft.parameters()} < ours
    assert {b.data_ptr() for b in draft.buffers()} <= {b.data_ptr() for b in target.buffers()}
    assert [layer.self_attn.layer_idx for layer in decoder_layers(draft)[2]] == [0, 1]
    assert [layer.self_attn.layer_idx for layer in decoder_layers(target)[2]] == [0, 1, 2, 3]
    assert draft.config is not target.config
    assert not draft.training


def test_target_and_draft_may_run_in_turn():
    target = random_model(FAMILIES["llama"], seed=6)
    draft = skip_layers(target, [0])
    ids = ids_of(target, 10)
    alone, _ = by_cache(target, ids, 1)
    draft_alone, _ = by_cache(draft, ids, 1)
    caches, rows = {"target": None, "draft": None}, {"target": [], "draft": []}
    for token in ids.split(1, dim=1):
        for name, model in (("target", target), ("draft", draft)):
            out = model(token, **{cache_name(model): caches[name]}, use_cache=True)
            caches[name] = out[cache_name(model)]
            rows[name].append(out.logits)
    assert (torch.cat(rows["target"], dim=1) == alone).all()
    assert (torch.cat(rows["draft"], dim=1) == draft_alone).all()


@pytest.mark.parametrize("skipped", [[4], [-1], [1, 1], [0, 1, 2, 3]])
def test_bad_layers(skipped):
    with pytest.raises(ValueError, match=r"skipped must name different layers of 0\.\.3"):
        skip_layers(random_model(FAMILIES["llama"], seed=0), skipped)


def test_skip_nothing_is_the_target():
    target = tiny_random_pair().target.model
    ids = ids_of(target)
    assert (skip_layers(target, [])(ids).logits == target(ids).logits).all()


def test_by_name():
    pair = load_pair("tiny-random", "skip:2,0")
    assert pair.draft.name == "tiny-random-skip:2,0"
    assert pair.draft.model.config.num_hidden_layers == 1
    assert pair.draft.model.get_input_embeddings().weight is pair.target.model.get_input_embeddings().weight
