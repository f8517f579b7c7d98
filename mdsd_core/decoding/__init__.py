"""The decoding loop: draft trees on real language models, any scheme, any verifier."""

from mdsd_core.extras import needed_for

with needed_for("decoding"):
    from mdsd_core.decoding.cache import UnsupportedModel
from mdsd_core.decoding.drafters.base import Drafter, ModelDrafter
from mdsd_core.decoding.drafters.lookup import PromptLookup
from mdsd_core.decoding.drafters.ngram import NGramDrafter, WittenBellTrigram
from mdsd_core.decoding.generate import GenerationResult, generate
from mdsd_core.decoding.metrics import Metrics
from mdsd_core.decoding.request import StreamEvent
from mdsd_core.decoding.scoring import CachedModel
from mdsd_core.trees.shape import EAGLE, DraftTree

__all__ = [
    "EAGLE",
    "CachedModel",
    "DraftTree",
    "Drafter",
    "GenerationResult",
    "Metrics",
    "ModelDrafter",
    "NGramDrafter",
    "PromptLookup",
    "StreamEvent",
    "UnsupportedModel",
    "WittenBellTrigram",
    "generate",
]
