"""From the words of a command line to models, drafters and sampling parameters."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdsd_core.decoding.drafters.base import Drafter, ModelDrafter
from mdsd_core.decoding.drafters.lookup import PromptLookup
from mdsd_core.decoding.drafters.ngram import NGramDrafter
from mdsd_core.decoding.drafters.packaged_trigram import trigram
from mdsd_core.decoding.generate import as_scorer
from mdsd_core.decoding.scoring import Scorer
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import LanguageModel, load_model, load_pair


@dataclass(frozen=True)
class Setup:
    """A target ready for draft trees, and its drafter."""

    language_model: LanguageModel
    scorer: Scorer
    drafter: Drafter | None


def load_setup(target: str, draft: str, **placement: str | None) -> Setup:
    """Load what ``--target`` and ``--draft`` name (see :data:`mdsd_study.cli.console.Draft`) where `placement` says."""
    if draft in ("none", "lookup", "ngram") or draft.startswith("ngram:"):
        base = load_model(target, **placement)  # type: ignore[arg-type]
        return Setup(base, as_scorer(base), _modelless(base, draft))
    pair = load_pair(target, draft, **placement)
    return Setup(pair.target, as_scorer(pair.target), ModelDrafter(as_scorer(pair.draft)))


def _modelless(base: LanguageModel, draft: str) -> Drafter | None:
    if draft == "none":
        return None
    if draft == "lookup":
        return PromptLookup(base.vocab_size)
    file = draft.removeprefix("ngram").removeprefix(":")
    if draft != "ngram" and not Path(file).is_file():
        raise ValueError(f"--draft {draft}: there is no file {file!r}")
    return NGramDrafter(trigram(base, file))


def transforms(sampling: SamplingParams) -> str:
    """The transforms in words: the temperature, and those filters that are on."""
    off = dataclasses.asdict(SamplingParams())
    filters = [f"{k} {v:g}" for k, v in dataclasses.asdict(sampling).items() if k != "temperature" and v != off[k]]
    return ", ".join([f"temperature {sampling.temperature:g}", *(filters or ["no filters"])])


def describe(sampling: SamplingParams, draft: SamplingParams | None) -> dict[str, Any]:
    """The transforms that a run really applies, for its record."""
    return {
        "target_sampling": dataclasses.asdict(sampling),
        "draft_sampling": dataclasses.asdict(draft if draft is not None else sampling),
    }
