"""Multi-draft speculative decoding: optimal acceptance rates, exact verifiers, a decoding loop.

The names below are the public interface for most uses; each is imported when it is first asked for, so that
``import mdsd_core`` is quick and only models and decoding need torch.

>>> import mdsd_core
>>> mdsd_core.optimal_acceptance([0.6, 0.4], [0.2, 0.8], mdsd_core.WithReplacement(2)).rate
0.76
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mdsd_core.extras import needed_for

if TYPE_CHECKING:
    from mdsd_core.decoding import GenerationResult, generate
    from mdsd_core.distributions import SamplingParams, probabilities
    from mdsd_core.models import load_model, load_pair
    from mdsd_core.models.prompts import load_prompts
    from mdsd_core.schemes import (
        Deterministic,
        DistinctConditioned,
        Scheme,
        SpecHubPairs,
        TopThenSampled,
        WithoutReplacement,
        WithReplacement,
        greedy,
    )
    from mdsd_core.transport.subset import optimal_acceptance
    from mdsd_core.trees.shape import DraftTree
    from mdsd_core.verifiers import Estimate, Verdict, verifier, verifiers_for

__version__ = "0.2.0"

#: Public name -> the module that has it.
_HOMES = {
    "Deterministic": "schemes",
    "DistinctConditioned": "schemes",
    "DraftTree": "trees.shape",
    "Estimate": "verifiers",
    "GenerationResult": "decoding",
    "SamplingParams": "distributions",
    "Scheme": "schemes",
    "SpecHubPairs": "schemes",
    "TopThenSampled": "schemes",
    "Verdict": "verifiers",
    "WithReplacement": "schemes",
    "WithoutReplacement": "schemes",
    "generate": "decoding",
    "greedy": "schemes",
    "load_model": "models",
    "load_pair": "models",
    "load_prompts": "models.prompts",
    "optimal_acceptance": "transport.subset",
    "probabilities": "distributions",
    "verifier": "verifiers",
    "verifiers_for": "verifiers",
}

__all__ = [
    "Deterministic",
    "DistinctConditioned",
    "DraftTree",
    "Estimate",
    "GenerationResult",
    "SamplingParams",
    "Scheme",
    "SpecHubPairs",
    "TopThenSampled",
    "Verdict",
    "WithReplacement",
    "WithoutReplacement",
    "generate",
    "greedy",
    "load_model",
    "load_pair",
    "load_prompts",
    "optimal_acceptance",
    "probabilities",
    "verifier",
    "verifiers_for",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needed_for(f"{__name__}.{name}"):
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All names, those not yet imported among them."""
    return sorted({*globals(), *__all__})
