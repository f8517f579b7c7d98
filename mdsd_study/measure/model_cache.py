"""Models and what else gives p and q, loaded once in a process and kept while they are needed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mdsd_core.decoding.drafters.ngram import WittenBellTrigram
from mdsd_core.decoding.drafters.packaged_trigram import trigram
from mdsd_core.models import LanguageModel, load_model, load_pair
from mdsd_study.measure.pairs import Pair
from mdsd_study.measure.teacher_forcing import forced_logits
from mdsd_study.measure.texts import Continuation


@dataclass(frozen=True)
class Placement:
    """Where models live: ``device`` and ``device_map`` of :func:`mdsd_core.models.load_model`, and their precision.

    >>> Placement("cuda", dtype="bfloat16").options(None)["dtype"]
    torch.bfloat16
    """

    device: str = "cpu"
    device_map: str | None = None
    dtype: str | None = None

    def options(self, revision: str | None) -> dict[str, Any]:
        """Arguments for :func:`mdsd_core.models.load_model`."""
        kind = None if self.dtype is None else getattr(torch, self.dtype, None)
        if self.dtype is not None and not isinstance(kind, torch.dtype):
            raise ValueError(f"dtype must name a dtype of torch, such as 'bfloat16', got {self.dtype!r}")
        return {"device": self.device, "device_map": self.device_map, "dtype": kind, "revision": revision}


class TrigramLogits:
    """Log-probabilities of a trigram model at every position of a text."""

    def __init__(self, model: WittenBellTrigram) -> None:
        self.model = model
        self.vocab_size = model.vocab_size

    def rows(self, text: Continuation, places: Sequence[int]) -> Iterator[NDArray[np.floating[Any]]]:
        """One row a place, made when asked for."""
        whole = [*text.prompt, *text.tokens]
        for place in places:
            end = len(text.prompt) + place
            yield np.log(self.model.distribution(whole[max(0, end - 2) : end]))


class ModelLogits:
    """Logits of a language model at every position of a text, by one pass."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.vocab_size = model.vocab_size

    def rows(self, text: Continuation, places: Sequence[int]) -> Iterator[NDArray[np.floating[Any]]]:
        """One row a place; the logits of the whole text are in memory."""
        logits = forced_logits(self.model, text)
        return (logits[place] for place in places)


@dataclass
class LoadedModels:
    """The models of one target and its drafts. A process keeps one of these: see :func:`loaded_models`."""

    name: str
    revision: str | None
    placement: Placement
    target: LanguageModel = field(init=False)
    drafts: dict[tuple[str, str | None], ModelLogits | TrigramLogits] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.target = load_model(self.name, **self.placement.options(self.revision))

    def draft_of(self, pair: Pair) -> ModelLogits | TrigramLogits:
        """The draft of a pair, loaded when first asked for."""
        key = (pair.draft, pair.draft_revision)
        if key not in self.drafts:
            if pair.draft == "ngram" or pair.draft.startswith("ngram:"):
                self.drafts[key] = TrigramLogits(trigram(self.target, pair.draft.removeprefix("ngram").lstrip(":")))
            else:
                options = self.placement.options(pair.draft_revision)
                self.drafts[key] = ModelLogits(load_pair(self.target, pair.draft, **options).draft)
        return self.drafts[key]


_LOADED: list[LoadedModels] = []


def loaded_models(name: str, revision: str | None, placement: Placement) -> LoadedModels:
    """The models of a target in this process: those loaded before, if they are the ones; else loaded now.

    One target with its drafts is kept at a time, so that large ones need not fit in memory together.
    """
    if _LOADED and (_LOADED[0].name, _LOADED[0].revision, _LOADED[0].placement) == (name, revision, placement):
        return _LOADED[0]
    _LOADED.clear()
    _LOADED.append(LoadedModels(name, revision, placement))
    return _LOADED[0]
