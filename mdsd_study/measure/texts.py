"""The texts of the study: continuations of real prompts, drawn from the target.

p and q at every position of such a text come from teacher forcing (:mod:`mdsd_study.measure.teacher_forcing`). Where
texts are kept, so that every machine measures the same ones, :mod:`mdsd_study.measure.stored_texts` says.

Each prompt has a random stream of its own, keyed by seed and prompt: what is drawn for it does not depend on the other
prompts, their order or the batch, save that the rounding of a batched pass may, very rarely, move a uniform across the
boundary of two tokens.
"""

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from mdsd_core.distributions import SamplingParams, draw_token, probabilities
from mdsd_core.models import LanguageModel
from mdsd_core.models.pair import cache_name
from mdsd_core.models.prompts import Prompt, evenly_spaced
from mdsd_core.schemes.base import check_count

#: Prompts per set in each profile of the study.
PROMPTS_PER_SET = {"ci": 6, "quick": 16, "full": 24}

#: The longest continuation, in tokens.
MAX_NEW_TOKENS = 128


@dataclass(frozen=True)
class Continuation:
    """A prompt and a text that the target drew after it, as token ids.

    Attributes
    ----------
    key : str
        ``set/id`` of the prompt.
    prompt, tokens : tuple of int
        The ids of the prompt (chat template included) and of what was drawn, end-of-text token included.

    Examples
    --------
    >>> Continuation("mt_bench/81", (1, 2), (3,)).tokens
    (3,)
    """

    key: str
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]


def prompt_stream(seed: int, key: str) -> np.random.Generator:
    """The random stream of one prompt: the same for the same seed and key, independent of all others.

    >>> prompt_stream(0, "mt_bench/81").random() == prompt_stream(0, "mt_bench/81").random()
    True
    """
    digest = hashlib.sha256(key.encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "big") for i in range(0, 32, 4)]
    return np.random.default_rng([seed, *words])


def draw_continuations(
    target: LanguageModel,
    prompts: Sequence[Prompt],
    params: SamplingParams,
    *,
    seed: int = 0,
    max_new_tokens: int = MAX_NEW_TOKENS,
    batch_size: int = 8,
) -> list[Continuation]:
    """Draw one continuation of each prompt from the target.

    Parameters
    ----------
    target : LanguageModel
        With a tokenizer.
    prompts : sequence of Prompt
        Their keys name their random streams, so they must differ.
    params : SamplingParams
        What is drawn from.
    seed : int, >= 0
        Of the whole experiment.
    max_new_tokens : int, >= 1
        A continuation ends here, at the target's end-of-text token, or at the end of its context window.
    batch_size : int, >= 1
        How many prompts share a forward pass: a matter of speed only.

    Returns
    -------
    list of Continuation
        In the order of `prompts`, each with at least one token.

    Raises
    ------
    ValueError
        If two prompts have one key, a prompt is empty or fills the context window, or a number is out of range.

    Examples
    --------
    >>> from mdsd_core.models.prompts import Prompt
    >>> one = Prompt("mine", "1", "ab", chat=False, licence="my own", printable=True)
    >>> from mdsd_core.models import load_model
    >>> drawn = draw_continuations(load_model("tiny-random"), [one], SamplingParams(), max_new_tokens=3)
    >>> drawn[0].key, drawn[0].prompt, 1 <= len(drawn[0].tokens) <= 3
    ('mine/1', (97, 98), True)
    """
    check_count("max_new_tokens", max_new_tokens)
    check_count("batch_size", batch_size)
    if len({prompt.key for prompt in prompts}) != len(prompts):
        raise ValueError("prompts must have different keys: the key names the random stream")
    encoded = [target.encode(prompt.text, chat=prompt.chat) for prompt in prompts]
    for prompt, ids in zip(prompts, encoded, strict=True):
        if not ids:
            raise ValueError(f"prompt {prompt.key} has no token")
        if target.context_limit is not None and len(ids) >= target.context_limit:
            raise ValueError(
                f"prompt {prompt.key} has {len(ids)} tokens and fills the window of {target.context_limit}"
            )
    result = []
    for start in range(0, len(prompts), batch_size):
        part = slice(start, start + batch_size)
        streams = [prompt_stream(seed, prompt.key) for prompt in prompts[part]]
        drawn = _draw_batch(target, encoded[part], params, streams, max_new_tokens)
        for prompt, ids, tokens in zip(prompts[part], encoded[part], drawn, strict=True):
            result.append(Continuation(prompt.key, tuple(ids), tuple(tokens)))
    return result


@torch.inference_mode()
def _draw_batch(
    target: LanguageModel,
    encoded: Sequence[Sequence[int]],
    params: SamplingParams,
    streams: Sequence[np.random.Generator],
    max_new_tokens: int,
) -> list[list[int]]:
    window = target.context_limit
    room = [max_new_tokens if window is None else min(max_new_tokens, window - len(ids)) for ids in encoded]
    longest = max(len(ids) for ids in encoded)
    padded = [[0] * (longest - len(ids)) + list(ids) for ids in encoded]  # on the left, masked: its value is never seen
    ids = torch.tensor(padded, device=target.device)
    mask = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids in encoded], device=target.device)
    places = (mask.cumsum(dim=1) - 1).clamp(min=0)
    drawn: list[list[int]] = [[] for _ in encoded]
    running = [True] * len(encoded)
    name, cache = cache_name(target.model), None
    while True:
        kept = {name: cache, "use_cache": True}
        out = target.model(input_ids=ids, attention_mask=mask, position_ids=places, logits_to_keep=1, **kept)
        cache = out[name]
        latest = [0] * len(encoded)
        for row, alive in enumerate(running):
            if alive:
                p = probabilities(out.logits[row, -1], params, vocab_size=target.vocab_size, name="target logits")
                latest[row] = draw_token(p, streams[row].random())
                drawn[row].append(latest[row])
                running[row] = latest[row] not in target.eos_ids and len(drawn[row]) < room[row]
        if not any(running):
            return drawn
        ids = torch.tensor(latest, device=target.device)[:, None]
        mask = torch.cat([mask, mask.new_ones(len(encoded), 1)], dim=1)
        places = places[:, -1:] + 1


def thinned(texts: Sequence[Continuation], count: int, tokens: int) -> list[Continuation]:
    """Some of the texts, evenly spaced, each cut to its first tokens.

    Parameters
    ----------
    texts : sequence of Continuation
        For example all that :func:`~mdsd_study.measure.stored_texts.load_texts` gives for a profile.
    count : int, >= 1
        How many to keep; all if there are fewer.
    tokens : int, >= 1
        How many tokens of each; what comes later does not change what stands there.

    Raises
    ------
    ValueError
        If a number is below 1.

    Examples
    --------
    >>> four = [Continuation(f"mine/{i}", (1,), (2, 3, 4)) for i in range(4)]
    >>> [(one.key, one.tokens) for one in thinned(four, 2, 1)]
    [('mine/0', (2,)), ('mine/2', (2,))]
    """
    check_count("tokens", tokens)
    kept = evenly_spaced(texts, check_count("count", count))
    return [dataclasses.replace(one, tokens=one.tokens[:tokens]) for one in kept]
