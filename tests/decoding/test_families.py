"""Every supported architecture scores a tree exactly as it scores the tree's paths."""

import accelerate
import numpy as np
import pytest
import torch
import transformers as T
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import DynamicCache, StaticCache

from mdsd_core.decoding.cache import RaggedCache, UnsupportedModel
from mdsd_core.decoding.drafters.base import ModelDrafter
from mdsd_core.decoding.generate import generate, streams
from mdsd_core.decoding.loop import DecodingLoop
from mdsd_core.decoding.request import Request
from mdsd_core.decoding.scoring import Block, CachedModel
from mdsd_core.decoding.settings import LoopSettings
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import LanguageModel
from mdsd_core.schemes.names import scheme_family
from mdsd_core.trees.rules import tree_rule
from mdsd_core.trees.shape import DraftTree
from mdsd_core.verifiers import verifier
from tests.core.trees.shapes import random_tree
from tests.decoding.tiny import FAMILIES, WINDOW, GuidedDrafter, V, model, path_logits, plain_greedy


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_tree_logits_equal_path_logits(family, attention):  # E5, I10
    rng = np.random.default_rng(1)
    causal_lm = model(family, attention=attention)
    scorer = CachedModel(causal_lm)
    scorer.start(2)
    texts = [rng.integers(V, size=3).tolist(), rng.integers(V, size=6).tolist()]
    worst = 0.0
    for _ in range(4):  # rows of different lengths and trees, paths of different lengths
        blocks, paths = [], []
        for row, text in enumerate(texts):
            tree, pending = random_tree(rng), text[scorer.cached(row) :]
            tokens = rng.integers(V, size=tree.size).tolist()
            root = len(pending) - 1
            parents = [*range(-1, root), *(root + p for p in tree.parents[1:])]
            blocks.append(Block([*pending, *tokens], parents, tree.size + 1))
            paths.append((tree, [-1, *tokens], root))
        logits = scorer.feed(blocks)
        keep = []
        for row, (tree, tokens, root) in enumerate(paths):
            lines = [[]]
            for node in range(1, tree.size + 1):
                lines.append([*lines[tree.parents[node]], node])
            for node, line in enumerate(lines):
                want = path_logits(causal_lm, [*texts[row], *(tokens[i] for i in line)])
                worst = max(worst, float((logits[row][node] - want).abs().max()))
            line = lines[rng.integers(len(lines))]
            keep.append([*range(root + 1), *(root + i for i in line)])
            texts[row] += [*(tokens[i] for i in line), int(rng.integers(V))]
        scorer.commit(keep)
        assert [scorer.cached(row) for row in range(2)] == [len(text) - 1 for text in texts]
    # transformers' eager attention takes its softmax in float32, whatever the model; a wrong mask shows as 1e-2
    assert worst < (1e-10 if attention == "sdpa" else 1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_output_is_plain_greedy_over_50_random_trees(family):  # E10, D5, A7, D1
    causal_lm = model(family)
    scorer = CachedModel(causal_lm)
    rng = np.random.default_rng(2)
    prompts = [rng.integers(V, size=4).tolist(), rng.integers(V, size=9).tolist()]
    texts = [plain_greedy(causal_lm, prompt, 12) for prompt in prompts]
    accepted = 0
    for i in range(50):
        result = generate(
            scorer,
            GuidedDrafter(texts, seed=i),
            prompts,
            tree=random_tree(rng),
            verifier="rrs",
            sampling=SamplingParams(temperature=0),
            draft_sampling=SamplingParams(),
            max_new_tokens=12,
            seeds=i,
            eos_token_ids=(),
        )
        assert result.tokens == [text[len(prompt) :] for text, prompt in zip(texts, prompts)]
        accepted += result.metrics.accepted
    assert accepted > 100  # drafts really took part


@pytest.mark.parametrize("family", ["mistral-window", "gemma3"])
def test_windows_are_served_inside_and_refused_beyond(family):
    scorer = CachedModel(model(family))
    assert scorer.window == WINDOW
    prompt = np.random.default_rng(3).integers(V, size=WINDOW - 7).tolist()
    text = plain_greedy(scorer.model, prompt, 5)  # by the model's own sliding mask
    result = generate(
        scorer, GuidedDrafter([text], bonus=9.0), [prompt], (2, 1), sampling=SamplingParams(temperature=0),
        draft_sampling=SamplingParams(), max_new_tokens=5, seeds=0, eos_token_ids=(),
    )  # fmt: skip
    assert result.tokens[0] == text[len(prompt) :]
    assert result.metrics.accepted > 0
    with pytest.raises(ValueError, match=f"attention window of {WINDOW}"):
        generate(scorer, scorer_draft(family), [[1] * (WINDOW - 6)], (2, 1), max_new_tokens=5)


def test_the_window_of_the_draft_counts_too():
    with pytest.raises(ValueError, match="draft model's attention window"):
        generate(model("mistral"), scorer_draft("mistral-window"), [[1] * WINDOW], (2,), max_new_tokens=2)


def scorer_draft(family):
    return model(family, seed=5)


def test_models_and_caches_that_cannot_be_cut_back_are_refused():
    recurrent = T.MambaForCausalLM(T.MambaConfig(vocab_size=V, hidden_size=16, num_hidden_layers=2))
    with pytest.raises(UnsupportedModel, match="recurrent"):
        CachedModel(recurrent)
    hybrid = T.JambaForCausalLM(
        T.JambaConfig(
            vocab_size=V, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1, attn_layer_period=2, attn_layer_offset=1, num_experts=2, use_mamba_kernels=False,
        )
    )  # fmt: skip
    with pytest.raises(UnsupportedModel, match="JambaForCausalLM keeps a recurrent state"):
        CachedModel(hybrid)
    encoder = T.T5ForConditionalGeneration(T.T5Config(vocab_size=V, d_model=8, d_ff=8, num_layers=1, num_heads=1))
    with pytest.raises(UnsupportedModel, match="encoder-decoder"):
        CachedModel(encoder)
    alibi = T.BloomForCausalLM(T.BloomConfig(vocab_size=V, hidden_size=16, n_layer=1, n_head=2))
    with pytest.raises(UnsupportedModel, match="BloomForCausalLM"):
        CachedModel(alibi)
    llama = model()
    with pytest.raises(UnsupportedModel, match="StaticCache"):
        CachedModel(llama, make_cache=lambda: StaticCache(config=llama.config, max_cache_len=8))
    window = model("mistral-window")
    with pytest.raises(UnsupportedModel, match="Sliding"):
        CachedModel(window, make_cache=lambda: DynamicCache(config=window.config))
    llama.config._attn_implementation = "flash_attention_2"
    with pytest.raises(UnsupportedModel, match="flash_attention_2"):
        CachedModel(llama)


def test_the_probe_refuses_attention_that_ignores_the_tree(monkeypatch):
    causal_lm = model()
    forward = causal_lm.model.forward
    monkeypatch.setattr(causal_lm.model, "forward", lambda *a, **k: forward(*a, **{**k, "attention_mask": None}))
    with pytest.raises(UnsupportedModel, match="does not score trees exactly"):
        CachedModel(causal_lm)


def test_a_changed_cache_is_noticed():
    scorer = CachedModel(model())
    scorer.start(1)
    scorer.feed([Block.chain([1, 2, 3], 1)])
    layer = scorer._cache.cache.layers[1]
    layer.keys = layer.keys[..., :-1, :]
    with pytest.raises(RuntimeError, match="layer 1 has 2 slots, expected 3"):
        scorer._cache.check()


def test_commit_takes_only_paths():
    scorer = CachedModel(model())
    scorer.start(1)
    scorer.feed([Block([1, 2, 3], [-1, 0, 0], 3)])
    with pytest.raises(ValueError, match="must be a path"):
        scorer.commit([[0, 1, 2]])
    with pytest.raises(ValueError, match="parents must name"):
        scorer.feed([Block([1], [7], 1)])
    with pytest.raises(ValueError, match="at least one token"):
        scorer.feed([Block()])


def test_keeping_a_path_leaves_the_cache_where_it_is():
    """Committing a chain moves nothing; committing a branch of one row writes into the row's own storage."""
    scorer = CachedModel(model())
    scorer.start(1)
    scorer.feed([Block.chain([1, 2, 3, 4], 1)])
    before = [layer.keys.data_ptr() for layer in scorer._cache.cache.layers]
    scorer.commit([[0, 1, 2]])
    assert [layer.keys.data_ptr() for layer in scorer._cache.cache.layers] == before
    scorer.feed([Block([5, 6, 7], [-1, 0, 0], 3)])
    before = [layer.keys.data_ptr() for layer in scorer._cache.cache.layers]
    scorer.commit([[0, 2]])
    assert [layer.keys.data_ptr() for layer in scorer._cache.cache.layers] == before


class LargeWrites(TorchDispatchMode):
    """The operators outside a model's forward pass that write as many numbers as one layer's keys or more."""

    def __init__(self, *models):
        super().__init__()
        self.inside, self.size, self.found, self.seen = False, np.inf, [], 0
        for each in models:
            each.register_forward_pre_hook(lambda *_: setattr(self, "inside", True))
            each.register_forward_hook(lambda *_: setattr(self, "inside", False))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        given = {t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and not self.inside:
                self.seen += 1
                view = tensor.untyped_storage().data_ptr() in given and not func._schema.is_mutable
                if tensor.numel() >= self.size and not view:
                    self.found.append(str(func))
        return result


@pytest.mark.parametrize("prompts", [1, 2])
def test_a_round_copies_no_cache_but_in_the_models_own_update(prompts):
    """Whole rounds, drafts, masks, logits and all: outside the forward passes nothing as large as a layer's keys."""
    size = {"hidden_size": 64, "head_dim": 32, "num_key_value_heads": 2, "max_position_embeddings": 256}
    causal_lms = [model(seed=seed, **size) for seed in (0, 1)]
    target, draft = (CachedModel(each) for each in causal_lms)
    requests = [Request(i, [3 + i] * (80 - i), 80 - i, 99, choices) for i, choices in enumerate(streams(0, prompts))]
    rule, tree = tree_rule("node", verifier("rrs")), DraftTree.from_branching((2, 2))
    loop = DecodingLoop(
        target, ModelDrafter(draft), requests, LoopSettings(tree, scheme_family("with_replacement"), rule)
    )
    loop.step()
    writes = LargeWrites(*causal_lms)
    moved = 0
    with writes:
        for _ in range(6):
            writes.size = min(layer.keys.numel() for layer in target._cache.cache.layers)
            loop.step()
            moved += any(record.accepted for record in loop.records[-prompts:])
    assert writes.found == []
    assert writes.seen > 100
    assert moved  # paths of the tree were kept, so slots moved


@pytest.mark.parametrize("way", ["in place", "wrapped"])
@pytest.mark.parametrize("stance", ["force_eager", pytest.param("default", marks=pytest.mark.slow)])
def test_a_compiled_model_decodes_as_it_did(way, stance):
    """``model.compile()`` and ``torch.compile(model)``; what is compiled really is only in the slow one."""
    compiled = model()
    if way == "in place":
        compiled.compile(backend="eager", dynamic=True)
    else:
        compiled = torch.compile(compiled, backend="eager", dynamic=True)
    with torch.compiler.set_stance(stance):
        result = generate(
            compiled, model(seed=1), [[3, 4, 5]], (2, 1), sampling=SamplingParams(temperature=0), max_new_tokens=8,
            seeds=0, eos_token_ids=(),
        )  # fmt: skip
    assert result.tokens[0] == plain_greedy(model(), [3, 4, 5], 8)[3:]


def test_a_compiled_model_is_checked_like_any_other():
    recurrent = T.MambaForCausalLM(T.MambaConfig(vocab_size=V, hidden_size=16, num_hidden_layers=2))
    with pytest.raises(UnsupportedModel, match="MambaForCausalLM keeps a recurrent state"):
        CachedModel(torch.compile(recurrent, backend="eager"))


def test_a_model_whose_weights_are_elsewhere_until_needed():
    """As accelerate leaves one that ``device_map`` spread over more than fits: weights come in for each pass."""
    spread = accelerate.cpu_offload(model(), execution_device=torch.device("cpu"))
    assert next(spread.parameters()).device.type == "meta"
    assert CachedModel(spread).device.type == LanguageModel.of("spread", spread, None).device.type == "cpu"
    options = {"tree": (2, 1), "max_new_tokens": 10, "seeds": 3, "eos_token_ids": ()}
    prompts = [[3, 4, 5], [6]]
    found = generate(spread, model(seed=1), prompts, **options)
    assert found.tokens == generate(model(), model(seed=1), prompts, **options).tokens
    assert found.metrics.accepted > 0


def test_padded_vocabularies_are_cut():
    scorer = CachedModel(model(), vocab_size=V - 2)
    scorer.start(1)
    assert scorer.feed([Block.chain([1, 2], 2)])[0].shape == (2, V - 2)
    with pytest.raises(ValueError, match="vocab_size"):
        CachedModel(model(), vocab_size=V + 1)


def test_rows_can_be_dropped_and_keep_their_state():
    causal_lm = model()
    scorer = CachedModel(causal_lm)
    scorer.start(3)
    texts = [[1, 2], [3, 4, 5, 6], [7]]
    scorer.feed([Block.chain(text, 0) for text in texts])
    scorer.commit([range(len(text)) for text in texts])
    scorer.select_rows([2, 1])
    logits = scorer.feed([Block.chain([8], 1), Block.chain([9, 10], 1)])
    torch.testing.assert_close(logits[0][0], path_logits(causal_lm, [7, 8]), rtol=0, atol=1e-12)
    torch.testing.assert_close(logits[1][0], path_logits(causal_lm, [3, 4, 5, 6, 9, 10]), rtol=0, atol=1e-12)


def test_a_ragged_cache_starts_empty():
    full = DynamicCache()
    full.update(torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 4), 0)
    with pytest.raises(ValueError, match="empty"):
        RaggedCache(1, lambda: full)
