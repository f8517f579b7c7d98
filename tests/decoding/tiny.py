"""Tiny models, trees and drafters for the tests of the loop."""

import numpy as np
import torch
import transformers as T

from mdsd_core.decoding.drafters.base import Drafter
from mdsd_core.decoding.scoring import CachedModel

V = 13
CONTEXT = 64
WINDOW = 40

_SHARED = {
    "vocab_size": V,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.4,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_OLD = {"vocab_size": V, "num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16}

FAMILIES = {
    "llama": T.LlamaConfig(**_SHARED),
    "qwen2": T.Qwen2Config(**_SHARED),
    "qwen3": T.Qwen3Config(**_SHARED),
    "mistral": T.MistralConfig(**_SHARED, sliding_window=None),
    "mistral-window": T.MistralConfig(**_SHARED, sliding_window=WINDOW),
    "gpt2": T.GPT2Config(
        vocab_size=V, n_positions=CONTEXT, n_embd=16, n_layer=2, n_head=2, initializer_range=0.4, eos_token_id=2
    ),
    "gpt-neox": T.GPTNeoXConfig(
        **_OLD, intermediate_size=24, max_position_embeddings=CONTEXT, initializer_range=0.4, eos_token_id=2
    ),
    "opt": T.OPTConfig(
        **_OLD, ffn_dim=24, max_position_embeddings=CONTEXT, word_embed_proj_dim=16, init_std=0.4, eos_token_id=2
    ),
    "gemma": T.GemmaConfig(**_SHARED),
    "gemma3": T.Gemma3TextConfig(**_SHARED, sliding_window=WINDOW, layer_types=["sliding_attention", "full_attention"]),
}


def model(family="llama", seed=0, attention="sdpa", **changes):
    """A random float64 model of a family, in evaluation mode."""
    config = type(FAMILIES[family]).from_dict({**FAMILIES[family].to_dict(), **changes})
    torch.manual_seed(seed)
    return T.AutoModelForCausalLM.from_config(config, attn_implementation=attention).double().eval()


class GuidedDrafter(Drafter):
    """Random draft logits, with a bonus (often) for the token that `texts` says comes next: some are accepted."""

    def __init__(self, texts, seed=0, bonus=3.0, vocab_size=V):
        self.texts, self.rng, self.bonus, self.vocab_size = texts, np.random.default_rng(seed), bonus, vocab_size

    def start(self, batch):
        self.rows = list(range(batch))

    def begin(self, committed):
        self.committed = committed

    def propose(self, trees, nodes):
        return [
            [self._logits(self.texts[self.rows[row]], self.committed[row], tree.path_tokens(n)) for n in wanted]
            for row, (tree, wanted) in enumerate(zip(trees, nodes, strict=True))
        ]

    def _logits(self, text, committed, path):
        logits = self.rng.normal(size=self.vocab_size)
        sofar = [*committed, *path]
        if self.rng.random() < 0.7 and len(sofar) < len(text) and sofar == text[: len(sofar)]:
            logits[text[len(sofar)]] += self.bonus
        return logits

    def select_rows(self, rows):
        self.rows = [self.rows[row] for row in rows]


class TableModel:
    """A model as a table: context -> distribution, made up on the way; the cache is bookkeeping alone, and checked.

    Contexts differ in their distributions, so a row judged by the wrong node's distribution changes the law.
    """

    def __init__(self, vocab_size, seed, context_limit=None, zeros=0.0):
        self.vocab_size, self.seed, self.context_limit, self.window, self.zeros = (
            vocab_size, seed, context_limit, None, zeros,
        )  # fmt: skip
        self.table = {}

    def p(self, context):
        context = tuple(context)
        if context not in self.table:
            rng = np.random.default_rng([self.seed, *(t + 1 for t in context)])
            p = rng.dirichlet(np.ones(self.vocab_size)) * (rng.random(self.vocab_size) >= self.zeros)
            p = p if p.sum() > 0 else np.ones(self.vocab_size)
            self.table[context] = p / p.sum()
        return self.table[context]

    def start(self, batch):
        self.texts = [[] for _ in range(batch)]
        self.forget()

    def cached(self, row):
        return len(self.texts[row])

    def feed(self, blocks):
        scored = []
        for row, block in enumerate(blocks):
            for token, parent in zip(block.tokens, block.parents, strict=True):
                before = self.texts[row] if parent < 0 else self.tails[row][parent]
                self.tails[row].append([*before, token])
            contexts = self.tails[row][len(self.tails[row]) - block.scored :]
            with np.errstate(divide="ignore"):
                scored.append([np.log(self.p(c)) for c in contexts])
        return scored

    def commit(self, keep):
        for row, kept in enumerate(keep):
            if kept:
                assert self.tails[row][kept[-1]][: len(self.texts[row])] == self.texts[row]
                assert len(self.tails[row][kept[-1]]) == len(self.texts[row]) + len(kept)
                self.texts[row] = self.tails[row][kept[-1]]
        self.forget()

    def forget(self):
        self.tails = [[] for _ in self.texts]

    def select_rows(self, rows):
        self.texts = [self.texts[row] for row in rows]
        self.forget()


def plain_greedy(causal_lm, prompt, count):
    """Greedy decoding without any cache: the re-computing baseline."""
    tokens = list(prompt)
    with torch.inference_mode():
        for _ in range(count):
            tokens.append(int(causal_lm(torch.tensor([tokens])).logits[0, -1].argmax()))
    return tokens


def path_logits(causal_lm, tokens):
    """Logits after the last of these tokens, from scratch."""
    with torch.inference_mode():
        return causal_lm(torch.tensor([tokens])).logits[0, -1]


def cached(family="llama", seed=0, **changes):
    return CachedModel(model(family, seed, **changes))
