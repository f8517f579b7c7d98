"""Pairs of language models by name: the packaged SmolLM2 and its drafts, any pair of a hub or folder, tiny random ones.

>>> pair = load_pair("tiny-random", "tiny-random-draft")
>>> pair.target.encode("ab"), pair.vocab_size
([97, 98], 257)
"""

import warnings

with warnings.catch_warnings():  # of progress bars in notebooks: transformers asks for ones that need ipywidgets
    warnings.filterwarnings("ignore", message="IProgress not found")
    import tqdm.auto  # noqa: F401

from mdsd_core.models.loading import ModelMissing, load_model, load_pair, model_names
from mdsd_core.models.packaged import SKIPPED_LAYERS, packaged_folder
from mdsd_core.models.pair import LanguageModel, ModelPair, tokenizer_problems, vocabulary_differences
from mdsd_core.models.skipping import skip_layers
from mdsd_core.models.tiny import byte_tokenizer, random_model, tiny_random_pair

__all__ = [
    "SKIPPED_LAYERS",
    "LanguageModel",
    "ModelMissing",
    "ModelPair",
    "byte_tokenizer",
    "load_model",
    "load_pair",
    "model_names",
    "packaged_folder",
    "random_model",
    "skip_layers",
    "tiny_random_pair",
    "tokenizer_problems",
    "vocabulary_differences",
]
