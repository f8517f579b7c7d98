"""Text generation with draft trees: the one call that a user needs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm import tqdm
from transformers import PreTrainedModel

from mdsd_core.decoding.drafters.base import Drafter, ModelDrafter, NoDrafter
from mdsd_core.decoding.loop import DecodingLoop
from mdsd_core.decoding.metrics import Metrics
from mdsd_core.decoding.request import FinishReason, Request, StreamEvent, TokenKind
from mdsd_core.decoding.scoring import CachedModel, Scorer, uncompiled
from mdsd_core.decoding.settings import LoopSettings, Processor, schemes_of
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import LanguageModel
from mdsd_core.randomness import Choices, RandomChoices
from mdsd_core.schemes import Scheme
from mdsd_core.schemes.names import Family, scheme_family
from mdsd_core.trees.rules import tree_rule as tree_rule_named
from mdsd_core.trees.shape import DraftTree
from mdsd_core.verifiers import Verifier
from mdsd_core.verifiers import verifier as verifier_named

#: One seed for all prompts, one for each (None: fresh entropy), or none.
Seeds = int | Sequence[int | None] | None


@dataclass(frozen=True)
class GenerationResult:
    """What :func:`generate` returns.

    Attributes
    ----------
    tokens : list of list of int
        The new tokens of each prompt, the end-of-sequence token included if there is one.
    kinds : list of list of str
        How each came about: ``"draft"``, ``"bonus"`` (after a path accepted to its end) or ``"resampled"``.
    logprobs : list of list of float
        Log-probability of each under the target's distribution, sampling parameters applied.
    finish_reasons : list of str
        ``"eos"``, ``"length"``, ``"context"`` (a model sees no further) or ``"interrupted"``.
    metrics : Metrics
        Counts, acceptance numbers and times.

    Examples
    --------
    >>> from mdsd_core.models import load_pair
    >>> pair = load_pair("tiny-random", "tiny-random-draft")
    >>> result = generate(pair.target, pair.draft, [[97, 98]], tree=(2,), max_new_tokens=4, seeds=0, eos_token_ids=())
    >>> len(result.tokens[0]), result.finish_reasons, set(result.kinds[0]) <= {"draft", "bonus", "resampled"}
    (4, ['length'], True)
    """

    tokens: list[list[int]]
    kinds: list[list[TokenKind]]
    logprobs: list[list[float]]
    finish_reasons: list[FinishReason]
    metrics: Metrics


def generate(
    target: LanguageModel | PreTrainedModel | Scorer,
    drafter: Drafter | LanguageModel | PreTrainedModel | None,
    prompts: Sequence[Sequence[int]],
    tree: DraftTree | Sequence[int] | str = (4, 2, 2),
    scheme: str | Scheme | Family = "with_replacement",
    verifier: str | Verifier = "rrs",
    tree_rule: str = "node",
    sampling: SamplingParams | None = None,
    draft_sampling: SamplingParams | None = None,
    max_new_tokens: int = 128,
    seeds: Seeds = None,
    stream: Callable[[StreamEvent], None] | None = None,
    *,
    eos_token_ids: Iterable[int] | None = None,
    processors: Sequence[Processor] = (),
    progress: bool = False,
    trim: bool = False,
) -> GenerationResult:
    """Generate text with the law of the target, several tokens a target pass.

    Parameters
    ----------
    target : LanguageModel, PreTrainedModel or Scorer
        A model of :mod:`mdsd_core.models`, a transformers causal LM in evaluation mode, or one wrapped in
        :class:`~mdsd_core.decoding.scoring.CachedModel`.
    drafter : Drafter, LanguageModel, PreTrainedModel or None
        Where drafts come from; a model becomes a :class:`~mdsd_core.decoding.drafters.base.ModelDrafter`; None decodes
        plainly.
    prompts : sequence of sequence of int
        Token ids, at least one each. The prompts are decoded as one batch; each gets what it would get alone.
    tree : DraftTree, sequence of int or str
        The shape: ``(4, 2, 2)`` branches so at each depth; a string as for :meth:`DraftTree.parse`.
    scheme : str, Scheme or callable
        The law of the drafts at a node; see :func:`~mdsd_core.schemes.names.scheme_family`.
    verifier : str or Verifier
        The verifier, by name or itself.
    tree_rule : {"node", "path"}
        How the verifier is used on a tree; see :mod:`~mdsd_core.trees.rules`. ``"path"`` needs ``"optimal"``.
    sampling, draft_sampling : SamplingParams, optional
        Temperature and filters of the target (default: temperature 1) and of the draft (default: the target's). Any
        draft setting is lossless. At target temperature 0, drafts may be the top tokens of an unwarped draft:
        ``scheme="deterministic"`` and ``draft_sampling=SamplingParams()``.
    max_new_tokens : int
        >= 1.
    seeds : int, sequence of (int or None), or None
        One seed a prompt; an int gives prompt i the independent stream (seed, i); None is fresh entropy. At
        temperature 0 (and a scheme without randomness) seeds change nothing.
    stream : callable, optional
        Called with a :class:`StreamEvent` whenever a round has committed tokens to a request.
    eos_token_ids : iterable of int, optional
        Tokens that end a text; by default those of the target's generation configuration.
    processors : sequence of callable
        Logits processors as in transformers; target and draft rows alike see the ids of their own path.
    progress : bool
        Show a progress bar.
    trim : bool
        Draw trees no deeper than `max_new_tokens` still has room for. Saves draft passes at the end of a text, and so
        lowers the block efficiency of the last round; by default every round draws the whole tree.

    Returns
    -------
    GenerationResult
        An interrupt (Ctrl-C) ends generation early and keeps what was generated.

    Raises
    ------
    ValueError, TypeError
        For bad arguments: the message names the argument, the value and what would be right.
    UnsupportedScheme
        If the rule is not lossless for the scheme, or the scheme is not the drafter's kind of proposal.

    Notes
    -----
    In exact arithmetic the output has the target's law, whatever the draft. In floating point the logits of a tree pass
    differ from those of a one-token pass by rounding: in float32, runs with different trees can part at near-ties.

    Examples
    --------
    >>> import torch
    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> _ = torch.manual_seed(0)
    >>> config = LlamaConfig(vocab_size=16, hidden_size=8, intermediate_size=8, num_hidden_layers=2,
    ...                      num_attention_heads=2, max_position_embeddings=64)
    >>> target, draft = (LlamaForCausalLM(config).double().eval() for _ in range(2))
    >>> result = generate(target, draft, [[1, 2, 3], [4]], tree=(2, 2), max_new_tokens=5, seeds=0, eos_token_ids=())
    >>> [len(tokens) for tokens in result.tokens], result.finish_reasons
    ([5, 5], ['length', 'length'])
    """
    scorer = as_scorer(target)
    shape = _as_tree(tree)
    if drafter is None:
        drafter, shape = NoDrafter(scorer.vocab_size), DraftTree.chain(0)
    elif not isinstance(drafter, Drafter):
        drafter = ModelDrafter(as_scorer(drafter))
    if isinstance(drafter, ModelDrafter) and drafter.scorer is scorer:
        raise ValueError("target and drafter must have a cache each: wrap a model that drafts for itself twice")
    if eos_token_ids is None:
        eos_token_ids = target.eos_ids if isinstance(target, LanguageModel) else _default_eos(scorer)
    if draft_sampling is None and drafter.proposal == "deterministic":
        draft_sampling = SamplingParams()
    family = scheme_family(scheme)
    _check_proposals(drafter, schemes_of(shape, family).values())
    settings = LoopSettings(
        shape,
        family,
        tree_rule_named(tree_rule, verifier_named(verifier) if isinstance(verifier, str) else verifier),
        SamplingParams() if sampling is None else sampling,
        draft_sampling,
        frozenset(int(token) for token in eos_token_ids),
        tuple(processors),
        trim,
    )
    _check_prompts(prompts, scorer, drafter, shape, max_new_tokens)
    requests = [
        Request(i, [int(t) for t in prompt], len(prompt), int(max_new_tokens), choices)
        for i, (prompt, choices) in enumerate(zip(prompts, streams(seeds, len(prompts)), strict=True))
    ]
    loop = DecodingLoop(scorer, drafter, requests, settings)
    _drain(loop, stream, progress, len(requests) * int(max_new_tokens))
    return _result(loop, requests)


def as_scorer(model: LanguageModel | PreTrainedModel | Scorer) -> Scorer:
    """Wrap a model for tree scoring; a scorer is returned as it is. Raises TypeError for anything else."""
    if isinstance(model, LanguageModel):
        return CachedModel(model.model, model.vocab_size)
    if isinstance(uncompiled(model), PreTrainedModel):
        return CachedModel(model)  # type: ignore[arg-type]
    if not hasattr(model, "feed"):
        raise TypeError(
            f"target and drafter must be models, got {model!r}: load_model(name) makes one of a name, and "
            "load_pair(target, draft) makes two"
        )
    return model  # type: ignore[return-value]


def streams(seeds: Seeds, count: int) -> list[Choices]:
    """One independent stream of random choices a prompt; see `seeds` of :func:`generate`."""
    if seeds is None or isinstance(seeds, int | np.integer):
        entropy = np.random.SeedSequence(None if seeds is None else int(seeds)).entropy
        children = [np.random.SeedSequence(entropy, spawn_key=(i,)) for i in range(count)]
        return [RandomChoices(np.random.default_rng(child)) for child in children]
    if len(seeds) != count:
        raise ValueError(f"seeds must be one number or one for each of the {count} prompts, got {len(seeds)}")
    return [RandomChoices(np.random.default_rng(seed)) for seed in seeds]


def _as_tree(tree: DraftTree | Sequence[int] | str) -> DraftTree:
    if isinstance(tree, DraftTree):
        return tree
    return DraftTree.parse(tree) if isinstance(tree, str) else DraftTree.from_branching(tree)


def _check_proposals(drafter: Drafter, schemes: Iterable[Scheme]) -> None:
    """Refuse to sample from a drafter that has no distribution."""
    for scheme in schemes:
        if drafter.proposal == "deterministic" and scheme.inner is not None:
            raise ValueError(
                f"{type(drafter).__name__} names tokens without probabilities: use scheme='deterministic', got {scheme}"
            )


def _check_prompts(
    prompts: Sequence[Sequence[int]], target: Scorer, drafter: Drafter, tree: DraftTree, max_new_tokens: int
) -> None:
    if isinstance(prompts, str) or not len(prompts):
        raise ValueError("prompts must be a sequence of at least one sequence of token ids")
    if int(max_new_tokens) != max_new_tokens or max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be a whole number >= 1, got {max_new_tokens}")
    if drafter.vocab_size != target.vocab_size:
        raise ValueError(
            f"target and drafter must have one vocabulary, got {target.vocab_size} and {drafter.vocab_size} tokens; "
            "wrap models with padded embeddings in CachedModel(model, vocab_size=V)"
        )
    for i, prompt in enumerate(prompts):
        if isinstance(prompt, str) or not len(prompt):
            raise ValueError(f"prompts[{i}] must hold at least one token id, got {prompt!r}")
        bad = [int(t) for t in prompt if not 0 <= int(t) < target.vocab_size]
        if bad:
            raise ValueError(f"prompts[{i}] holds the id {bad[0]}, outside [0, {target.vocab_size})")
        if target.context_limit is not None and len(prompt) >= target.context_limit:
            raise ValueError(
                f"prompts[{i}] has {len(prompt)} tokens, which leaves no room in a context of {target.context_limit}"
            )
        for who, window in (("target", target.window), ("draft", drafter.window)):
            need = len(prompt) + max_new_tokens + tree.depth
            if window is not None and need > window:
                raise ValueError(
                    f"prompts[{i}] with max_new_tokens and the tree needs {need} positions ({len(prompt)} + "
                    f"{max_new_tokens} + {tree.depth}), beyond the {who} model's attention window of {window}: cached "
                    "keys past the window cannot be cut back. Shorten the prompt, max_new_tokens or the tree."
                )


def _default_eos(target: Scorer) -> list[int]:
    """The end-of-sequence tokens of a transformers model's generation configuration."""
    config: Any = getattr(getattr(target, "model", None), "generation_config", None)
    eos = getattr(config, "eos_token_id", None)
    return [] if eos is None else [eos] if isinstance(eos, int) else list(eos)


def _drain(loop: DecodingLoop, stream: Callable[[StreamEvent], None] | None, progress: bool, total: int) -> None:
    with tqdm(total=total, unit=" tokens", leave=False, disable=not progress) as bar:
        try:
            while loop.active:
                for event in loop.step():
                    if stream is not None:
                        stream(event)
                    bar.update(len(event.tokens))
        except KeyboardInterrupt:
            for request in loop.active:
                request.finish_reason = request.finish_reason or "interrupted"


def _result(loop: DecodingLoop, requests: Sequence[Request]) -> GenerationResult:
    metrics = Metrics(
        tuple(loop.records),
        loop.settings.tree.depth,
        loop.target_calls,
        loop.draft_calls,
        loop.prefill_calls,
        loop.times,
    )
    reasons = [request.finish_reason for request in requests]
    return GenerationResult(
        [request.new_tokens for request in requests],
        [request.kinds for request in requests],
        [request.logprobs for request in requests],
        [reason for reason in reasons if reason is not None],
        metrics,
    )
