"""Draft-sampling schemes: the law of the drafts S at one node, as frozen dataclasses.

A scheme says how drafts are drawn from the draft distribution `q`. Its *type* is the kind of proposal: nothing in the
library guesses from numbers whether drafts were sampled or chosen.
"""

from mdsd_core.schemes.base import ENUMERATION_LIMIT, NO_DRAFT, Scheme, top_tokens
from mdsd_core.schemes.conditioned import DistinctConditioned, odds
from mdsd_core.schemes.fixed import Deterministic, SpecHubPairs, TopThenSampled, greedy
from mdsd_core.schemes.independent import WithReplacement
from mdsd_core.schemes.inner import InnerLaw
from mdsd_core.schemes.without_replacement.law import WithoutReplacement

__all__ = [
    "ENUMERATION_LIMIT",
    "NO_DRAFT",
    "Deterministic",
    "DistinctConditioned",
    "InnerLaw",
    "Scheme",
    "SpecHubPairs",
    "TopThenSampled",
    "WithReplacement",
    "WithoutReplacement",
    "greedy",
    "odds",
    "top_tokens",
]
