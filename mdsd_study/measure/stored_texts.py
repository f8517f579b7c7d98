"""Texts that are kept: under ``reference/`` for every machine, in the cache folder for this one.

Once the token ids of a text are fixed, every machine measures the same positions, and p and q there agree up to the
rounding of a forward pass. So the ids for the sets that may be shown are kept under ``reference/<profile>/contexts/``;
for other sets, models and settings they are drawn when they are needed.
"""

import argparse
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdsd_core.disk_cache import cache_dir, in_one_step, key_of
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import LanguageModel, load_model, model_names
from mdsd_core.models.prompts import load_prompts
from mdsd_study.measure.texts import MAX_NEW_TOKENS, PROMPTS_PER_SET, Continuation, draw_continuations
from mdsd_study.report.provenance import code_digest, project_folder

_FORMAT = 1


@dataclass(frozen=True)
class TextSettings:
    """What the texts of a prompt set were drawn with.

    Attributes
    ----------
    target : str
        The name of the model.
    set : str
        See :func:`mdsd_core.models.prompts.load_prompts`.
    sampling : SamplingParams
        What was drawn from.
    prompts : int
        How many prompts, evenly spaced over the set.
    seed, max_new_tokens : int
        As for :func:`~mdsd_study.measure.texts.draw_continuations`.

    Examples
    --------
    >>> TextSettings("smollm2-135m", "mt_bench", SamplingParams(0.7), 6).file_name
    'smollm2-135m-mt_bench-T0.7.json'
    """

    target: str
    set: str
    sampling: SamplingParams
    prompts: int
    seed: int = 0
    max_new_tokens: int = MAX_NEW_TOKENS

    @property
    def file_name(self) -> str:
        """The name of the file under ``reference/<profile>/contexts/``."""
        return f"{self.target}-{self.set}-T{self.sampling.temperature:g}.json".replace("/", "--")


def load_texts(
    target: LanguageModel,
    prompt_set: str,
    profile: str,
    params: SamplingParams,
    *,
    prompts: int | None = None,
    seed: int = 0,
    max_new_tokens: int = MAX_NEW_TOKENS,
    reference: Path | None = None,
) -> list[Continuation]:
    """The texts of one prompt set: stored ones where they are stored, else drawn now.

    Parameters
    ----------
    target : LanguageModel
        The model that draws.
    prompt_set : str
        See :func:`mdsd_core.models.prompts.load_prompts`.
    profile : str
        A key of :data:`~mdsd_study.measure.texts.PROMPTS_PER_SET`; says where to look, and how many prompts to take.
    params : SamplingParams
        What is drawn from.
    prompts : int, optional
        How many prompts, evenly spaced over the set; default: by profile.
    seed, max_new_tokens : int
        As in :func:`~mdsd_study.measure.texts.draw_continuations`.
    reference : path, optional
        The folder with a folder for each profile; default ``reference/`` of the checkout.

    Returns
    -------
    list of Continuation
        Those stored for just these settings, if any. What is drawn from the packaged model is kept in the cache folder.

    Examples
    --------
    >>> load_texts(load_model("tiny-random"), "mt_bench", "daily", SamplingParams())
    Traceback (most recent call last):
        ...
    ValueError: profile must be one of ci, quick, full, got 'daily'
    """
    if profile not in PROMPTS_PER_SET:
        raise ValueError(f"profile must be one of {', '.join(PROMPTS_PER_SET)}, got {profile!r}")
    count = PROMPTS_PER_SET[profile] if prompts is None else prompts
    settings = TextSettings(target.name, prompt_set, params, count, seed, max_new_tokens)
    found = stored_texts(settings, profile, reference)
    if found is not None:
        return found
    chosen = load_prompts(prompt_set, limit=count)
    if target.name not in model_names() or prompt_set.endswith(".jsonl"):  # what a name stands for may change
        return draw_continuations(target, chosen, params, seed=seed, max_new_tokens=max_new_tokens)
    key = key_of(_FORMAT, code_digest(), dataclasses.asdict(settings), [prompt.text for prompt in chosen])
    path = cache_dir() / "contexts" / f"{key}.json"
    if not path.is_file():
        drawn = draw_continuations(target, chosen, params, seed=seed, max_new_tokens=max_new_tokens)
        write_texts(path, dataclasses.asdict(settings), drawn)
    return read_texts(path)[1]


def stored_texts(
    settings: TextSettings, profile: str, reference: Path | None = None, *, cut: bool = False
) -> list[Continuation] | None:
    """The texts that ``reference/`` holds for just these settings, or None; needs no model.

    With `cut`, longer ones are taken too and cut: the first tokens of a text do not depend on how many follow.

    >>> stored_texts(TextSettings("no-such-model", "mt_bench", SamplingParams(0.7), 6), "ci") is None
    True
    """
    path = text_file(settings, profile, reference)
    if not path.is_file():
        return None
    found, texts = read_texts(path)
    length = found["max_new_tokens"]
    if length < settings.max_new_tokens or (length > settings.max_new_tokens and not cut):
        return None
    if found != dataclasses.asdict(dataclasses.replace(settings, max_new_tokens=length)):
        return None
    return [dataclasses.replace(one, tokens=one.tokens[: settings.max_new_tokens]) for one in texts]


def text_file(settings: TextSettings, profile: str, reference: Path | None = None) -> Path:
    """Where the texts of one target, set and temperature are stored.

    >>> text_file(TextSettings("smollm2-135m", "mt_bench", SamplingParams(0.7), 6), "ci", Path("reference")).as_posix()
    'reference/ci/contexts/smollm2-135m-mt_bench-T0.7.json'
    """
    folder = project_folder() / "reference" if reference is None else reference
    return folder / profile / "contexts" / settings.file_name


def write_texts(path: Path, settings: Mapping[str, Any], texts: Iterable[Continuation]) -> None:
    """Store texts, one a line, with the settings they were drawn with; in one step.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_texts(Path(folder) / "a.json", {"seed": 0}, [Continuation("mine/1", (1,), (2, 3))])
    ...     read_texts(Path(folder) / "a.json")
    ({'seed': 0}, [Continuation(key='mine/1', prompt=(1,), tokens=(2, 3))])
    """
    head = json.dumps({"format": _FORMAT, **settings})
    lines = [json.dumps(dataclasses.asdict(one), separators=(",", ":")) for one in texts]
    with in_one_step(path) as part:
        part.write_text(f'{{"settings": {head},\n"continuations": [\n' + ",\n".join(lines) + "\n]}\n")


def read_texts(path: Path) -> tuple[dict[str, Any], list[Continuation]]:
    """The settings and the texts of a file that :func:`write_texts` made.

    Raises
    ------
    ValueError
        If the file is not of this format.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_texts(Path(folder) / "a.json", {}, [])
    ...     read_texts(Path(folder) / "a.json")
    ({}, [])
    """
    content = json.loads(path.read_text())
    settings = dict(content.get("settings", {}))
    if settings.pop("format", None) != _FORMAT:
        raise ValueError(f"{path} is not a file of texts of format {_FORMAT}: make it anew")
    return settings, [
        Continuation(one["key"], tuple(one["prompt"]), tuple(one["tokens"])) for one in content["continuations"]
    ]


def store_reference(
    target: LanguageModel,
    prompt_set: str,
    profile: str,
    params: SamplingParams,
    *,
    max_new_tokens: int = MAX_NEW_TOKENS,
    reference: Path | None = None,
) -> Path:
    """Draw the texts of one set anew and store them under ``reference/``; returns the file.

    Raises
    ------
    ValueError
        If the set must not be kept in the repository.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     own = Path(folder) / "own.jsonl"
    ...     _ = own.write_text('{"text": "ab"}')
    ...     path = store_reference(
    ...         load_model("tiny-random"), str(own), "ci", SamplingParams(), max_new_tokens=2, reference=Path(folder)
    ...     )
    ...     len(read_texts(path)[1])
    1
    """
    settings = TextSettings(target.name, prompt_set, params, PROMPTS_PER_SET[profile], max_new_tokens=max_new_tokens)
    chosen = load_prompts(prompt_set, limit=settings.prompts)
    if not all(prompt.printable for prompt in chosen):
        raise ValueError(f"{prompt_set} must not be kept in the repository: {chosen[0].licence}")
    path = text_file(settings, profile, reference)
    drawn = draw_continuations(target, chosen, params, max_new_tokens=max_new_tokens)
    write_texts(path, dataclasses.asdict(settings), drawn)
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the stored texts anew: ``python -m mdsd_study.measure.stored_texts``."""
    parser = argparse.ArgumentParser(description="Draw the texts under reference/ anew from the target model.")
    parser.add_argument("--profile", nargs="+", default=["ci", "quick"], choices=sorted(PROMPTS_PER_SET))
    parser.add_argument("--set", nargs="+", default=["mt_bench", "human_eval"], help="prompt sets")
    parser.add_argument("--temperature", nargs="+", type=float, default=[0.7])
    parser.add_argument("--max-new-tokens", type=int, default=MAX_NEW_TOKENS, help="length of the texts")
    parser.add_argument("--target", default="smollm2-135m", help="name, folder or hub id of the target")
    parser.add_argument("--reference", type=Path, help="default: reference/ of the checkout")
    given = parser.parse_args(arguments)
    target = load_model(given.target)
    for profile in given.profile:
        for prompt_set in given.set:
            for temperature in given.temperature:
                params = SamplingParams(temperature=temperature)
                length, folder = given.max_new_tokens, given.reference
                print(store_reference(target, prompt_set, profile, params, max_new_tokens=length, reference=folder))


if __name__ == "__main__":
    main()
