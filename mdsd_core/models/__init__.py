"""Pairs of language models by name: the packaged SmolLM2 and its drafts, any pair of a hub or folder, tiny random ones.

>>> pair = load_pair("tiny-random", "tiny-random-draft")
>>> pair.target.encode("ab"), pair.vocab_size
([97, 98], 257)
"""

import warnings
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mdsd_core.extras import needed_for

# Of progress bars in notebooks: transformers asks for ones that need ipywidgets. Prompts do without all of it.
with warnings.catch_warnings(), suppress(ModuleNotFoundError):
    warnings.filterwarnings("ignore", message="IProgress not found")
    import tqdm.auto  # noqa: F401

if TYPE_CHECKING:
    from mdsd_core.models.loading import ModelMissing, load_model, load_pair, model_names
    from mdsd_core.models.packaged import SKIPPED_LAYERS, packaged_folder
    from mdsd_core.models.pair import LanguageModel, ModelPair, tokenizer_problems, vocabulary_differences
    from mdsd_core.models.skipping import skip_layers
    from mdsd_core.models.tiny import byte_tokenizer, random_model, tiny_random_pair

#: Public name -> the module that has it, imported when it is first asked for: prompts need no torch.
_HOMES = {
    "SKIPPED_LAYERS": "packaged",
    "LanguageModel": "pair",
    "ModelMissing": "loading",
    "ModelPair": "pair",
    "byte_tokenizer": "tiny",
    "load_model": "loading",
    "load_pair": "loading",
    "model_names": "loading",
    "packaged_folder": "packaged",
    "random_model": "tiny",
    "skip_layers": "skipping",
    "tiny_random_pair": "tiny",
    "tokenizer_problems": "pair",
    "vocabulary_differences": "pair",
}


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


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needed_for(f"{__name__}.{name}"):
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
