"""The contexts of the study: continuations of real prompts, drawn from the target.

A *context* is a position in such a text; p and q there come from teacher forcing
(:mod:`mdsd_study.measure.teacher_forcing`). Once the token ids are fixed, every machine measures the same contexts, and
p and q agree up to the rounding of a forward pass. So the ids for the sets that may be shown are kept under
``reference/<profile>/contexts/``; other sets, models and settings are drawn at run time by the same function.

Each prompt has a random stream of its own, keyed by seed and prompt: what is drawn for it does not depend on the other
prompts, their order or the batch, save that the rounding of a batched pass may, very rarely, move a uniform across the
boundary of two tokens.
"""

import argparse
import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mdsd_core.disk_cache import cache_dir
from mdsd_core.distributions import SamplingParams, draw_token, probabilities
from mdsd_core.models import LanguageModel, load_model, model_names
from mdsd_core.models.pair import cache_name
from mdsd_core.models.prompts import Prompt, load_prompts
from mdsd_study.report.provenance import code_digest, project_folder
from mdsd_study.report.results import in_one_step

#: Prompts per set in each profile of the study.
PROMPTS_PER_SET = {"ci": 6, "quick": 16, "full": 24}

#: The longest continuation, in tokens.
MAX_NEW_TOKENS = 128

_FORMAT = 1


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
    >>> drawn = draw_continuations(load_model("tiny-random"), [one], SamplingParams(), max_new_tokens=3)
    >>> drawn[0].key, drawn[0].prompt, 1 <= len(drawn[0].tokens) <= 3
    ('mine/1', (97, 98), True)
    """
    for name, number in (("max_new_tokens", max_new_tokens), ("batch_size", batch_size)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}")
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


def load_contexts(
    target: LanguageModel,
    prompt_set: str,
    profile: str,
    params: SamplingParams,
    *,
    prompts: int | None = None,
    seed: int = 0,
    max_new_tokens: int = MAX_NEW_TOKENS,
    reference: Path | None = None,
) -> list[Continuation]:
    """The continuations of one prompt set: stored ones where they are stored, else drawn now.

    Parameters
    ----------
    target : LanguageModel
        The model that draws.
    prompt_set : str
        See :func:`mdsd_core.models.prompts.load_prompts`.
    profile : str
        A key of :data:`PROMPTS_PER_SET`; says where to look, and how many prompts to take.
    params : SamplingParams
        What is drawn from.
    prompts : int, optional
        How many prompts, evenly spaced over the set; default: by profile.
    seed, max_new_tokens : int
        As in :func:`draw_continuations`.
    reference : path, optional
        The folder with a folder for each profile; default ``reference/`` of the checkout.

    Returns
    -------
    list of Continuation
        Those stored for just these settings, if any. What is drawn from the packaged model is kept in the cache folder.

    Examples
    --------
    >>> load_contexts(load_model("tiny-random"), "mt_bench", "daily", SamplingParams())
    Traceback (most recent call last):
        ...
    ValueError: profile must be one of ci, quick, full, got 'daily'
    """
    if profile not in PROMPTS_PER_SET:
        raise ValueError(f"profile must be one of {', '.join(PROMPTS_PER_SET)}, got {profile!r}")
    count = PROMPTS_PER_SET[profile] if prompts is None else prompts
    stored = stored_contexts(target.name, prompt_set, profile, params, count, seed, max_new_tokens, reference)
    if stored is not None:
        return stored
    settings = _settings(target.name, prompt_set, params, count, seed, max_new_tokens)
    chosen = load_prompts(prompt_set, limit=count)
    if target.name not in model_names() or prompt_set.endswith(".jsonl"):  # what a name stands for may change
        return draw_continuations(target, chosen, params, seed=seed, max_new_tokens=max_new_tokens)
    identity = [_FORMAT, code_digest(), settings, [p.text for p in chosen]]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode())
    path = cache_dir() / "contexts" / f"{digest.hexdigest()[:24]}.json"
    if path.is_file():
        return read_contexts(path)[1]
    drawn = draw_continuations(target, chosen, params, seed=seed, max_new_tokens=max_new_tokens)
    write_contexts(path, settings, drawn)
    return drawn


def stored_contexts(
    target: str,
    prompt_set: str,
    profile: str,
    params: SamplingParams,
    prompts: int,
    seed: int = 0,
    max_new_tokens: int = MAX_NEW_TOKENS,
    reference: Path | None = None,
    *,
    cut: bool = False,
) -> list[Continuation] | None:
    """The continuations that ``reference/`` holds for just these settings, or None; needs no model.

    With `cut`, longer ones are taken too and cut: the first tokens of a text do not depend on how many follow.

    >>> stored_contexts("no-such-model", "mt_bench", "ci", SamplingParams(0.7), 6) is None
    True
    """
    folder = project_folder() / "reference" if reference is None else reference
    path = contexts_file(folder, profile, target, prompt_set, params)
    if path.is_file():
        settings, found = read_contexts(path)
        length: Any = settings["max_new_tokens"]
        enough = length == max_new_tokens or (cut and length > max_new_tokens)
        if enough and settings == _settings(target, prompt_set, params, prompts, seed, length):
            return [dataclasses.replace(one, tokens=one.tokens[:max_new_tokens]) for one in found]
    return None


def thinned(contexts: Sequence[Continuation], texts: int, tokens: int) -> list[Continuation]:
    """Some of the texts, evenly spaced, each cut to its first tokens.

    Parameters
    ----------
    contexts : sequence of Continuation
        For example all that :func:`load_contexts` gives for a profile.
    texts : int, >= 1
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
    for name, number in (("texts", texts), ("tokens", tokens)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}")
    count = min(texts, len(contexts))
    kept = [contexts[i * len(contexts) // count] for i in range(count)]
    return [dataclasses.replace(one, tokens=one.tokens[:tokens]) for one in kept]


def contexts_file(reference: Path, profile: str, target: str, prompt_set: str, params: SamplingParams) -> Path:
    """Where the contexts of one target, set and temperature are stored.

    >>> str(contexts_file(Path("reference"), "ci", "smollm2-135m", "mt_bench", SamplingParams(0.7)))
    'reference/ci/contexts/smollm2-135m-mt_bench-T0.7.json'
    """
    name = f"{target}-{prompt_set}-T{params.temperature:g}.json".replace("/", "--")
    return reference / profile / "contexts" / name


def _settings(
    target: str, prompt_set: str, params: SamplingParams, prompts: int, seed: int, max_new_tokens: int
) -> dict[str, object]:
    return {
        "target": target,
        "set": prompt_set,
        "sampling": dataclasses.asdict(params),
        "prompts": prompts,
        "seed": seed,
        "max_new_tokens": max_new_tokens,
    }


def write_contexts(path: Path, settings: dict[str, object], continuations: Iterable[Continuation]) -> None:
    """Store continuations, one a line, with the settings they were drawn with; in one step.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_contexts(Path(folder) / "a.json", {"seed": 0}, [Continuation("mine/1", (1,), (2, 3))])
    ...     read_contexts(Path(folder) / "a.json")
    ({'seed': 0}, [Continuation(key='mine/1', prompt=(1,), tokens=(2, 3))])
    """
    head = json.dumps({"format": _FORMAT, **settings})
    lines = [json.dumps(dataclasses.asdict(one), separators=(",", ":")) for one in continuations]
    with in_one_step(path) as part:
        part.write_text(f'{{"settings": {head},\n"continuations": [\n' + ",\n".join(lines) + "\n]}\n")


def read_contexts(path: Path) -> tuple[dict[str, object], list[Continuation]]:
    """The settings and the continuations of a file that :func:`write_contexts` made.

    Raises
    ------
    ValueError
        If the file is not of this format.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_contexts(Path(folder) / "a.json", {}, [])
    ...     read_contexts(Path(folder) / "a.json")
    ({}, [])
    """
    content = json.loads(path.read_text())
    settings = dict(content.get("settings", {}))
    if settings.pop("format", None) != _FORMAT:
        raise ValueError(f"{path} is not a file of contexts of format {_FORMAT}: make it anew")
    return settings, [
        Continuation(one["key"], tuple(one["prompt"]), tuple(one["tokens"])) for one in content["continuations"]
    ]


def store_reference(
    target: LanguageModel,
    prompt_set: str,
    profile: str,
    params: SamplingParams,
    *,
    seed: int = 0,
    max_new_tokens: int = MAX_NEW_TOKENS,
    reference: Path | None = None,
) -> Path:
    """Draw the contexts of one set anew and store them under ``reference/``; returns the file.

    Raises
    ------
    ValueError
        If the set must not be kept in the repository.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     own = Path(folder) / "own.jsonl"
    ...     _ = own.write_text('{"text": "ab"}')
    ...     path = store_reference(
    ...         load_model("tiny-random"), str(own), "ci", SamplingParams(), max_new_tokens=2, reference=Path(folder)
    ...     )
    ...     len(read_contexts(path)[1])
    1
    """
    count = PROMPTS_PER_SET[profile]
    chosen = load_prompts(prompt_set, limit=count)
    if not all(prompt.printable for prompt in chosen):
        raise ValueError(f"{prompt_set} must not be kept in the repository: {chosen[0].licence}")
    folder = project_folder() / "reference" if reference is None else reference
    path = contexts_file(folder, profile, target.name, prompt_set, params)
    drawn = draw_continuations(target, chosen, params, seed=seed, max_new_tokens=max_new_tokens)
    write_contexts(path, _settings(target.name, prompt_set, params, count, seed, max_new_tokens), drawn)
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the stored contexts anew: ``python -m mdsd_study.measure.texts``."""
    parser = argparse.ArgumentParser(description="Draw the contexts under reference/ anew from the target model.")
    parser.add_argument("--profile", nargs="+", default=["ci", "quick"], choices=sorted(PROMPTS_PER_SET))
    parser.add_argument("--set", nargs="+", default=["mt_bench", "human_eval"], help="prompt sets")
    parser.add_argument("--temperature", nargs="+", type=float, default=[0.7])
    parser.add_argument("--max-new-tokens", type=int, default=MAX_NEW_TOKENS, help="length of the texts")
    parser.add_argument("--target", default="smollm2-135m", help="name, folder or hub id of the target")
    parser.add_argument("--reference", type=Path, help="default: reference/ of the checkout")
    given = parser.parse_args(arguments)
    target = load_model(given.target)
    for profile in given.profile:
        for prompt_set in given.set:
            for temperature in given.temperature:
                params = SamplingParams(temperature=temperature)
                length, folder = given.max_new_tokens, given.reference
                print(store_reference(target, prompt_set, profile, params, max_new_tokens=length, reference=folder))


if __name__ == "__main__":
    main()
