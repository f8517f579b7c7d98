"""Scoring of trees of tokens by a causal language model in one pass: blocks with their masks and position ids."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from transformers import DynamicCache, PreTrainedModel

from mdsd_core.decoding.cache import RaggedCache, UnsupportedModel, check_model
from mdsd_core.models.pair import cache_name, input_device

#: Largest difference of tree logits from per-path logits that passes as rounding, relative to the largest logit.
#: (Float64 as well: transformers' eager attention takes its softmax in float32.)
PROBE_TOLERANCE = {torch.float64: 1e-4, torch.float32: 2e-3, torch.float16: 0.1, torch.bfloat16: 0.1}


@dataclass(frozen=True)
class Block:
    """What one row adds to its tail in one pass.

    Attributes
    ----------
    tokens : sequence of int
        The tokens; none, if the row sits this pass out.
    parents : sequence of int
        For each token the index of its parent in the row's tail (this block included), -1 for the last committed token.
    scored : int
        How many of the tokens, counted from the end, need logits.
    """

    tokens: Sequence[int] = ()
    parents: Sequence[int] = ()
    scored: int = 0

    @classmethod
    def chain(cls, tokens: Sequence[int], scored: int) -> "Block":
        """Tokens in a row behind the committed ones, on an empty tail."""
        return cls(tokens, range(-1, len(tokens) - 1), scored)


class Scorer(Protocol):
    """What the loop needs of a model. Rows are the requests in flight; a row's *tail* is what is not committed yet."""

    vocab_size: int
    context_limit: int | None
    window: int | None

    def start(self, batch: int) -> None:
        """Begin a batch of rows with nothing cached."""
        ...

    def cached(self, row: int) -> int:
        """The number of committed tokens in the cache of a row."""
        ...

    def feed(self, blocks: Sequence[Block]) -> list[Any]:
        """Append a block to each row's tail; logits, shape [scored, V], for each row."""
        ...

    def commit(self, keep: Sequence[Sequence[int]]) -> None:
        """Keep these indices of each row's tail, ascending and each a child of the one before; forget the rest."""
        ...

    def forget(self) -> None:
        """Forget every tail."""
        ...

    def select_rows(self, rows: Sequence[int]) -> None:
        """Go on with these rows only."""
        ...


class CachedModel:
    """A transformers causal LM with a cache for draft trees.

    Parameters
    ----------
    model : PreTrainedModel
        Any decoder-only model whose attention takes a float 4-D mask and explicit positions, on any device; a model
        spread over devices by ``device_map`` works as well, and so does a compiled one, by ``torch.compile(model)`` or
        by ``model.compile()``. Put into evaluation mode by the caller.
    vocab_size : int, optional
        The number V of real tokens: logits beyond it (padding of the embedding) are cut off. All, by default.
    make_cache : callable
        Makes the cache; only plain ``DynamicCache`` can be cut back to a path.
    probe : bool
        Score one small tree and its paths at construction and refuse the model if they differ. Two short passes.

    Raises
    ------
    UnsupportedModel
        If the model, its cache or its attention cannot score trees exactly.

    Notes
    -----
    The mask is a *float* mask (0 and minus infinity). A boolean one is right with ``sdpa`` attention and silently
    wrong with ``eager``.

    Examples
    --------
    >>> from mdsd_core.models import load_model
    >>> model = load_model("tiny-random")
    >>> CachedModel(model.model, model.vocab_size).context_limit
    2048
    """

    def __init__(
        self,
        model: PreTrainedModel,
        vocab_size: int | None = None,
        make_cache: Callable[[], DynamicCache] = DynamicCache,
        probe: bool = True,
    ) -> None:
        self.model = model  # as given, perhaps compiled: this is what is called
        model = uncompiled(model)
        self.window = check_model(model)
        config = model.config.get_text_config(decoder=True)
        rows = int(config.vocab_size)
        if vocab_size is not None and not 0 < vocab_size <= rows:
            raise ValueError(f"vocab_size must be in 1..{rows}, the width of the logits, got {vocab_size}")
        self.vocab_size = rows if vocab_size is None else int(vocab_size)
        limit = getattr(config, "max_position_embeddings", None)
        self.context_limit = None if limit is None else int(limit)
        self._trims_logits = "logits_to_keep" in inspect.signature(type(model).forward).parameters
        self._cache_name = cache_name(model)
        self._make_cache = make_cache
        self._device = input_device(model)
        self._dtype = model.dtype
        self.start(1)
        if probe:
            self._probe()

    @property
    def device(self) -> torch.device:
        """Where the tokens go in."""
        return self._device

    def start(self, batch: int) -> None:
        """Begin a batch of `batch` rows with an empty cache."""
        self._cache = RaggedCache(batch, self._make_cache)
        self._depths: list[list[int]] = [[] for _ in range(batch)]
        self._parents: list[list[int]] = [[] for _ in range(batch)]

    def cached(self, row: int) -> int:
        """The number of committed tokens in the cache of `row`."""
        return self._cache.lengths[row]

    @torch.inference_mode()
    def feed(self, blocks: Sequence[Block]) -> list[torch.Tensor]:
        """Append one block a row and score it; see :class:`Scorer`.

        Returns
        -------
        list of tensor
            For each row the logits of its last ``scored`` tokens, shape [scored, V].
        """
        counts = [len(block.tokens) for block in blocks]
        size = max(counts)
        if size == 0:
            raise ValueError("blocks must hold at least one token")
        tokens = torch.zeros((len(blocks), size), dtype=torch.long)  # [rows, size], padded at the left
        positions = torch.zeros_like(tokens)
        allowed = np.zeros((len(blocks), size, self._cache.width + size), dtype=bool)  # [rows, size, slots]
        for row, block in enumerate(blocks):
            first = size - counts[row]
            depths = self._extend(row, block)
            if counts[row]:
                tokens[row, first:] = torch.as_tensor(list(block.tokens))
                positions[row, first:] = torch.as_tensor(depths) + self._cache.lengths[row]
            self._allow(allowed[row], row, counts[row])
        mask = torch.zeros((len(blocks), 1, *allowed.shape[1:]), dtype=self._dtype)  # [rows, heads, size, slots]
        mask.masked_fill_(torch.from_numpy(~allowed)[:, None], -torch.inf)
        scored = max(1, max(block.scored for block in blocks))
        output = self.model(
            input_ids=tokens.to(self._device),
            attention_mask=mask.to(self._device),
            position_ids=positions.to(self._device),
            use_cache=True,
            **{self._cache_name: self._cache.cache},
            **({"logits_to_keep": scored} if self._trims_logits else {}),
        )
        self._cache.appended(counts, size)
        logits = output.logits[..., : self.vocab_size]  # [rows, scored or more, V]
        return [logits[row, logits.shape[1] - block.scored :] for row, block in enumerate(blocks)]

    def _extend(self, row: int, block: Block) -> list[int]:
        """Depths of the block's tokens below the last committed one (0 for its children)."""
        depths, tail = self._depths[row], self._parents[row]
        if len(block.parents) != len(block.tokens):
            raise ValueError(f"a block needs one parent a token, got {len(block.parents)} for {len(block.tokens)}")
        before = len(tail)
        for parent in block.parents:
            if not -1 <= parent < len(tail):
                raise ValueError(f"parents must name earlier tokens of the tail or -1, got {parent} at {len(tail)}")
            depths.append(depths[parent] + 1 if parent >= 0 else 0)
            tail.append(int(parent))
        return depths[before:]

    def _allow(self, allowed: np.ndarray, row: int, count: int) -> None:
        """Fill what each token of the block sees; padding, at the left, sees itself alone."""
        size, width = allowed.shape[0], self._cache.width
        first, parents, slots = size - count, self._parents[row], self._cache.tails[row]
        allowed[np.arange(size), width + np.arange(size)] = True
        before = len(parents) - count
        allowed[first:, : self._cache.lengths[row]] = True
        for i, parent in enumerate(parents[before:]):
            if parent >= before:  # the parent's row is complete
                allowed[first + i] |= allowed[first + parent - before]
                continue
            while parent >= 0:
                allowed[first + i, slots[parent]] = True
                parent = parents[parent]

    @torch.inference_mode()
    def commit(self, keep: Sequence[Sequence[int]]) -> None:
        """Keep a path of each row's tail; see :class:`Scorer`. Raises ValueError if it is no path."""
        for row, kept in enumerate(keep):
            last = -1
            for index in kept:
                if self._parents[row][index] != last:
                    raise ValueError(f"keep[{row}] must be a path from the last committed token, got {list(kept)}")
                last = index
        self._cache.commit(keep)
        self._clear()

    @torch.inference_mode()
    def forget(self) -> None:
        """Cut every row back to its committed tokens, also after a pass that was interrupted half-way."""
        self._cache.forget_tails()
        self._clear()

    @torch.inference_mode()
    def select_rows(self, rows: Sequence[int]) -> None:
        """Go on with these rows only."""
        self._cache.select_rows(rows)
        self._clear()

    def _clear(self) -> None:
        self._depths = [[] for _ in self._cache.lengths]
        self._parents = [[] for _ in self._cache.lengths]

    @torch.inference_mode()
    def _probe(self) -> None:
        """Compare a tree of five tokens with its two paths."""
        name = type(uncompiled(self.model)).__name__
        a, b, c, d, e = (i % self.vocab_size for i in (1, 2, 3, 4, 5))
        try:
            self.feed([Block.chain([a, a], 0)])
            self.commit([[0, 1]])
            tree = self.feed([Block([b, c, d, e], [-1, -1, 0, 1], 4)])[0]
        except (TypeError, ValueError, IndexError) as error:
            raise UnsupportedModel(f"{name} takes no tree mask: {error}") from error
        self.start(1)
        paths = self.model(input_ids=torch.tensor([[a, a, b, d], [a, a, c, e]], device=self._device), use_cache=False)
        want = paths.logits[..., : self.vocab_size]
        want = torch.stack([want[0, 2], want[1, 2], want[0, 3], want[1, 3]])
        worst = float((tree - want).abs().max())
        largest = float(want.abs().max())
        if not worst <= PROBE_TOLERANCE.get(self._dtype, 0.1) * max(largest, 1e-30):
            raise UnsupportedModel(
                f"{name} does not score trees exactly: its logits differ by {worst:.3g} (largest "
                f"logit {largest:.3g}) from those of the paths. Its attention ignores the mask or the positions."
            )


def uncompiled(model: Any) -> Any:
    """The model inside what ``torch.compile(model)`` returned; anything else as it is."""
    return getattr(model, "_orig_mod", model)


def prefill(scorer: Scorer, committed: Sequence[Sequence[int] | None], chunk: int = 512) -> int:
    """Feed and commit long uncached beginnings, until at most `chunk` tokens of each row are left to feed.

    Parameters
    ----------
    scorer : Scorer
        Changed in place.
    committed : sequence of (sequence of int or None)
        The committed tokens of each row; None leaves a row alone.
    chunk : int
        Tokens a pass: bounds the size of the mask.

    Returns
    -------
    int
        The number of passes.
    """
    passes = 0
    while True:
        blocks = []
        for row, tokens in enumerate(committed):
            done = scorer.cached(row)
            left = 0 if tokens is None else len(tokens) - done
            take = min(chunk, left - chunk) if left > chunk else 0
            blocks.append(Block.chain(tokens[done : done + take], scored=0) if tokens is not None else Block())
        if not any(block.tokens for block in blocks):
            return passes
        scorer.feed(blocks)
        scorer.commit([range(len(block.tokens)) for block in blocks])
        passes += 1
