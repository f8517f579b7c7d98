"""One function for every pair: packaged names, folders, hub ids, layer-skipping drafts, tiny random models."""

import re
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from mdsd_core.assets import ModelMissing
from mdsd_core.models.packaged import PACKAGED, SKIPPED_LAYERS, packaged_folder, quiet
from mdsd_core.models.pair import LanguageModel, ModelPair
from mdsd_core.models.skipping import skip_layers
from mdsd_core.models.tiny import tiny_random_pair

_SKIP = re.compile(r"skip:(\d+(?:,\d+)*)")


def model_names() -> list[str]:
    """The names that work without a network.

    >>> model_names()[:2]
    ['smollm2-135m', 'smollm2-135m-skip2']
    """
    return [PACKAGED, *SKIPPED_LAYERS, "tiny-random", "tiny-random-draft"]


def load_pair(target: str | LanguageModel, draft: str | LanguageModel, **options: Any) -> ModelPair:
    """Load a target and a draft model and check that they share one vocabulary.

    Parameters
    ----------
    target : str or LanguageModel
        A name of :func:`model_names`, a local folder, or a hub id; or a model loaded before.
    draft : str or LanguageModel
        The same, or ``"skip:17,14"``: the target itself without these layers (counted from 0), sharing its weights. The
        packaged drafts share their weights with the packaged target.
    **options
        Passed to :func:`load_model`.

    Raises
    ------
    ValueError
        If the vocabularies differ; the message says in which ids.
    ModelMissing, AssetMissing
        If a model cannot be had; the message says what to do.

    Examples
    --------
    >>> load_pair("tiny-random", "skip:1")
    ModelPair(target='tiny-random', draft='tiny-random-skip:1', vocab_size=257)
    """
    base = target if isinstance(target, LanguageModel) else load_model(target, **options)
    if isinstance(draft, LanguageModel):
        return ModelPair(base, draft)
    chosen = _SKIP.fullmatch(draft)
    if chosen:
        layers = tuple(int(i) for i in chosen[1].split(","))
        return ModelPair(base, _skipping(base, f"{base.name}-{draft}", layers))
    if draft in SKIPPED_LAYERS and base.name == PACKAGED:
        return ModelPair(base, _skipping(base, draft, SKIPPED_LAYERS[draft]))
    return ModelPair(base, load_model(draft, **options))


def load_model(
    name: str,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | str | None = None,
    device_map: Any = None,
    trust_remote_code: bool = False,
    revision: str | None = None,
) -> LanguageModel:
    """Load one causal language model with its tokenizer, in evaluation mode.

    Weights are read from safetensors only, never from pickles, and code that comes with a model runs only if asked for.

    Parameters
    ----------
    name : str
        A name of :func:`model_names`, a local folder, or a hub id.
    device : str or torch.device
        Where to put it.
    dtype : torch.dtype or str, optional
        Such as ``torch.bfloat16`` or ``"bfloat16"``. Default: float32 on the CPU (half precision is slower there),
        elsewhere the precision of the checkpoint; tiny random models are float64.
    device_map : optional
        Spread over several devices by accelerate, as transformers documents it; then `device` is not used.
    trust_remote_code : bool
        Allow code that comes with the model to run.
    revision : str, optional
        Branch, tag or commit on the hub.

    Raises
    ------
    ModelMissing, AssetMissing
        If it cannot be found, or has no safetensors.
    ValueError
        If `name` is empty, its tokenizer does not fit the model, or torch has no such device or precision.

    Examples
    --------
    >>> load_model("tiny-random").context_limit
    2048
    """
    if not name:
        raise ValueError("the name of a model must not be empty")
    device, dtype = _device(device), _dtype(dtype)
    if name in ("tiny-random", "tiny-random-draft"):
        pair = tiny_random_pair(dtype=dtype or torch.float64)
        tiny = pair.target if name == "tiny-random" else pair.draft
        tiny.model.to(device)  # type: ignore[arg-type]
        return tiny
    if name in SKIPPED_LAYERS:
        whole = load_model(PACKAGED, device=device, dtype=dtype, device_map=device_map)
        return _skipping(whole, name, SKIPPED_LAYERS[name])
    source = packaged_folder() if name == PACKAGED else name
    placed = {"device_map": device_map} if device_map is not None else {}
    if dtype is None:
        on_cpu = device_map is None and device.type == "cpu"
        placed["dtype"] = torch.float32 if on_cpu else "auto"
    else:
        placed["dtype"] = dtype
    common: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    if revision is not None:
        common["revision"] = revision
    try:
        with quiet():
            model = AutoModelForCausalLM.from_pretrained(source, use_safetensors=True, **placed, **common)
            tokenizer = AutoTokenizer.from_pretrained(source, **common)
    except (OSError, ValueError) as error:  # transformers raises either where files are missing
        kind = "the local folder" if Path(source).is_dir() else "the model"
        raise ModelMissing(
            f"{kind} {name!r} could not be loaded: {error}\nKnown without a network: {', '.join(model_names())}. Else "
            "give a folder or hub id with config.json, tokenizer files and *.safetensors (pickled weights are refused)."
        ) from error
    model = model.eval().requires_grad_(False)
    return LanguageModel.of(name, model if device_map is not None else model.to(device), tokenizer)


def _device(device: str | torch.device) -> torch.device:
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device must be one that torch knows, such as 'cpu' or 'cuda', got {device!r}") from error
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device {str(device)!r}: torch {torch.__version__} sees {torch.cuda.device_count()} GPUs on this machine; "
            "use 'cpu', or a build of torch with CUDA on a machine with a GPU"
        )
    return chosen


def _dtype(dtype: torch.dtype | str | None) -> torch.dtype | None:
    if not isinstance(dtype, str):
        return dtype
    chosen = getattr(torch, dtype, None)
    if not isinstance(chosen, torch.dtype):
        raise ValueError(f"dtype must name a precision of torch, such as 'bfloat16', got {dtype!r}")
    return chosen


def _skipping(base: LanguageModel, name: str, layers: tuple[int, ...]) -> LanguageModel:
    return LanguageModel(name, skip_layers(base.model, layers), base.tokenizer, base.vocab_size, base.eos_ids)
