"""Pairs of language models by name: the packaged SmolLM2 and its drafts, any pair of a hub or folder, tiny random ones.

>>> from mdsd_core.models import load_pair
>>> pair = load_pair("tiny-random", "tiny-random-draft")
>>> pair.target.encode("ab"), pair.vocab_size
([97, 98], 257)
"""

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

from mdsd_core.extras import names_on_demand

# Of progress bars in notebooks: transformers asks for ones that need ipywidgets. Prompts do without all of it.
with warnings.catch_warnings(), suppress(ModuleNotFoundError):
    warnings.filterwarnings("ignore", message="IProgress not found")
    import tqdm.auto  # noqa: F401

if TYPE_CHECKING:  # imported when first asked for: prompts need no torch
    from mdsd_core.models.loading import ModelMissing as ModelMissing
    from mdsd_core.models.loading import load_model as load_model
    from mdsd_core.models.loading import load_pair as load_pair
    from mdsd_core.models.loading import model_names as model_names
    from mdsd_core.models.packaged import SKIPPED_LAYERS as SKIPPED_LAYERS
    from mdsd_core.models.packaged import packaged_folder as packaged_folder
    from mdsd_core.models.pair import LanguageModel as LanguageModel
    from mdsd_core.models.pair import ModelPair as ModelPair
    from mdsd_core.models.pair import tokenizer_problems as tokenizer_problems
    from mdsd_core.models.pair import vocabulary_differences as vocabulary_differences
    from mdsd_core.models.skipping import skip_layers as skip_layers
    from mdsd_core.models.tiny import byte_tokenizer as byte_tokenizer
    from mdsd_core.models.tiny import random_model as random_model
    from mdsd_core.models.tiny import tiny_random_pair as tiny_random_pair

__all__, __getattr__ = names_on_demand(__name__, __file__)
