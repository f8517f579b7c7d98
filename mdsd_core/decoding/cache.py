"""The key/value cache of a batch whose rows have different lengths: append, select a path, cut back.

Row b owns the slots ``0 .. lengths[b] - 1``; the tokens of the current round, its *tail*, lie behind the longest row.
Committing moves the kept ones, a handful, down to the row's end and cuts the rest by a view. Nothing else is copied:
the only copy of a whole cache in a round is the concatenation in the model's own cache update.

``DynamicCache.crop`` is not used: in current transformers it takes the (negative) *number of tokens to remove*, where
older versions took a length. Here lengths are absolute, and checked against every layer in every round.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer


class UnsupportedModel(TypeError):
    """A model or a cache that draft trees cannot be decoded with exactly.

    >>> issubclass(UnsupportedModel, Exception)
    True
    """


def check_model(model: PreTrainedModel) -> int | None:
    """Check that the layers of `model` can score draft trees, and return its attention window.

    Returns
    -------
    int or None
        The smallest sliding window of its layers; None if every layer sees everything.

    Raises
    ------
    UnsupportedModel
        For encoder-decoder models, recurrent or otherwise uncroppable layers, and attention implementations that do not
        take a float mask over pairs of tokens. The message says which and what to do.
    """
    config = model.config
    name = type(model).__name__
    if getattr(config, "is_encoder_decoder", False):
        raise UnsupportedModel(f"{name} is an encoder-decoder model; draft trees need a decoder-only causal LM")
    if getattr(model, "_is_stateful", False):
        raise UnsupportedModel(f"{name} keeps a recurrent state, which cannot be cut back to the accepted tokens")
    attention = getattr(config, "_attn_implementation", None)
    if attention not in ("eager", "sdpa"):
        raise UnsupportedModel(
            f"{name} runs the attention implementation {attention!r}, which takes no tree mask; "
            'load it with attn_implementation="sdpa" (or "eager")'
        )
    windows: list[int] = []
    layers: list[Any] = list(DynamicCache(config=config).layers)
    for index, layer in enumerate(layers):
        if type(layer) is DynamicSlidingWindowLayer:
            windows.append(int(layer.sliding_window))
        elif type(layer) is not DynamicLayer:
            raise UnsupportedModel(
                f"{name} has a {type(layer).__name__} at layer {index}, which cannot be cut back to the accepted tokens"
            )
    return min(windows, default=None)


class RaggedCache:
    """Keys and values of a batch of rows with different lengths.

    Parameters
    ----------
    batch : int
        The number of rows.
    make : callable
        Makes the transformers cache; by default a plain ``DynamicCache()``.

    Attributes
    ----------
    lengths : list of int
        Committed tokens per row.
    tails : list of list of int
        The slots of each row's uncommitted tokens, in the order appended.
    width : int
        The number of slots: what ``cache.get_seq_length()`` must say.

    Raises
    ------
    UnsupportedModel
        If `make` makes a cache that cannot be cut back (static, quantised, offloaded, recurrent, sliding).
    """

    def __init__(self, batch: int, make: Callable[[], DynamicCache] = DynamicCache) -> None:
        self.cache = make()
        if type(self.cache) is not DynamicCache or getattr(self.cache, "offloading", False):
            raise UnsupportedModel(f"{type(self.cache).__name__} cannot be cut back to a path; use DynamicCache()")
        for layer in self.cache.layers:
            if type(layer) is not DynamicLayer:
                raise UnsupportedModel(
                    f"{type(layer).__name__} cannot be cut back to a path; use DynamicCache() without a config"
                )
        if self.cache.get_seq_length():
            raise ValueError(f"make must make an empty cache, got one of length {self.cache.get_seq_length()}")
        self.lengths = [0] * batch
        self.tails: list[list[int]] = [[] for _ in range(batch)]
        self.width = 0

    @property
    def _layers(self) -> list[Any]:
        """The layers that hold something (a model may leave some empty, where layers share keys)."""
        return [layer for layer in self.cache.layers if getattr(layer, "is_initialized", False)]

    def appended(self, counts: Sequence[int], block: int) -> None:
        """Record that the model appended `block` slots, of which row b uses the last ``counts[b]``."""
        self.width += block
        for tail, count in zip(self.tails, counts, strict=True):
            tail.extend(range(self.width - count, self.width))
        self.check()

    def check(self) -> None:
        """Assert that every layer is as long as the bookkeeping says. Raises RuntimeError if not."""
        for index, layer in enumerate(self._layers):
            if layer.keys.shape[-2] != self.width:
                raise RuntimeError(f"cache layer {index} has {layer.keys.shape[-2]} slots, expected {self.width}")

    def commit(self, keep: Sequence[Sequence[int]]) -> None:
        """Keep some of each row's tail, forget the rest.

        Parameters
        ----------
        keep : sequence of sequence of int
            For each row, indices into its tail, ascending.

        Notes
        -----
        Copies as many slots as are kept and do not lie in place already: at most depth + 1 a row and round.
        """
        for row, kept in enumerate(keep):
            slots = [self.tails[row][i] for i in kept]
            start = self.lengths[row]
            in_place = 0  # a chain of a lone row is where it belongs
            while in_place < len(slots) and slots[in_place] == start + in_place:
                in_place += 1
            if slots[in_place:]:
                self._move(row, slots[in_place:], start + in_place)
            self.lengths[row] = start + len(slots)
        self.forget_tails()

    def _move(self, row: int, slots: list[int], start: int) -> None:
        for layer in self._layers:
            index = torch.tensor(slots, dtype=torch.long, device=layer.keys.device)
            layer.keys[row, :, start : start + len(slots)] = layer.keys[row].index_select(1, index)
            layer.values[row, :, start : start + len(slots)] = layer.values[row].index_select(1, index)

    def forget_tails(self) -> None:
        """Cut back to the committed tokens, by a view."""
        self.width = max(self.lengths, default=0)
        self.tails = [[] for _ in self.lengths]
        for layer in self._layers:
            layer.keys = layer.keys[..., : self.width, :]
            layer.values = layer.values[..., : self.width, :]
        self.check()

    def select_rows(self, rows: Sequence[int]) -> None:
        """Keep only these rows, in this order (one copy of what is kept). Call it between rounds."""
        self.lengths = [self.lengths[row] for row in rows]
        for layer in self._layers:
            index = torch.tensor(list(rows), dtype=torch.long, device=layer.keys.device)
            layer.keys, layer.values = layer.keys.index_select(0, index), layer.values.index_select(0, index)
        self.forget_tails()
