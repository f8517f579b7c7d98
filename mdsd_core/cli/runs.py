"""From the words of a command line to models, drafters and sampling parameters."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdsd_core.decoding.drafters import Drafter, ModelDrafter
from mdsd_core.decoding.generate import as_scorer
from mdsd_core.decoding.lookup import PromptLookup
from mdsd_core.decoding.ngram import NGramDrafter, WittenBellTrigram
from mdsd_core.decoding.scoring import Scorer
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import LanguageModel, load_model, load_pair


@dataclass(frozen=True)
class Setup:
    """A target ready for draft trees, and its drafter."""

    language_model: LanguageModel
    scorer: Scorer
    drafter: Drafter | None


def load_setup(target: str, draft: str) -> Setup:
    """Load what ``--target`` and ``--draft`` name; see :data:`mdsd_core.cli.console.Draft`."""
    if draft in ("none", "lookup") or draft.startswith("ngram:"):
        base = load_model(target)
        return Setup(base, as_scorer(base), _modelless(base, draft))
    pair = load_pair(target, draft)
    return Setup(pair.target, as_scorer(pair.target), ModelDrafter(as_scorer(pair.draft)))


def _modelless(base: LanguageModel, draft: str) -> Drafter | None:
    if draft == "none":
        return None
    if draft == "lookup":
        return PromptLookup(base.vocab_size)
    path = Path(draft.removeprefix("ngram:"))
    if not path.is_file():
        raise ValueError(f"--draft {draft}: there is no file {str(path)!r}")
    return NGramDrafter(WittenBellTrigram.of_file(path, base.encode, base.vocab_size))


def describe(sampling: SamplingParams, draft: SamplingParams | None) -> dict[str, Any]:
    """The transforms that a run really applies, for its record."""
    return {
        "target_sampling": dataclasses.asdict(sampling),
        "draft_sampling": dataclasses.asdict(draft if draft is not None else sampling),
    }
