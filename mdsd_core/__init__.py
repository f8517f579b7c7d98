"""Multi-draft speculative decoding: optimal acceptance rates, exact verifiers, a decoding loop.

The names below are the public interface for most uses; each is imported when it is first asked for, so that
``import mdsd_core`` is quick and only models and decoding need torch.

>>> import mdsd_core
>>> mdsd_core.optimal_acceptance([0.6, 0.4], [0.2, 0.8], mdsd_core.WithReplacement(2)).rate
0.76
"""

from typing import TYPE_CHECKING

from mdsd_core.extras import names_on_demand

if TYPE_CHECKING:
    from mdsd_core.decoding import GenerationResult as GenerationResult
    from mdsd_core.decoding import generate as generate
    from mdsd_core.distributions import SamplingParams as SamplingParams
    from mdsd_core.distributions import probabilities as probabilities
    from mdsd_core.models import load_model as load_model
    from mdsd_core.models import load_pair as load_pair
    from mdsd_core.models.prompts import load_prompts as load_prompts
    from mdsd_core.schemes import Deterministic as Deterministic
    from mdsd_core.schemes import DistinctConditioned as DistinctConditioned
    from mdsd_core.schemes import Scheme as Scheme
    from mdsd_core.schemes import SpecHubPairs as SpecHubPairs
    from mdsd_core.schemes import TopThenSampled as TopThenSampled
    from mdsd_core.schemes import WithoutReplacement as WithoutReplacement
    from mdsd_core.schemes import WithReplacement as WithReplacement
    from mdsd_core.schemes import greedy as greedy
    from mdsd_core.transport.subset import optimal_acceptance as optimal_acceptance
    from mdsd_core.trees.shape import DraftTree as DraftTree
    from mdsd_core.verifiers import Estimate as Estimate
    from mdsd_core.verifiers import Verdict as Verdict
    from mdsd_core.verifiers import verifier as verifier
    from mdsd_core.verifiers import verifiers_for as verifiers_for

__version__ = "0.2.0"

__all__, __getattr__ = names_on_demand(__name__, __file__)


def __dir__() -> list[str]:
    """All names, those not yet imported among them."""
    return sorted({*globals(), *__all__})
