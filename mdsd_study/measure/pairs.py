"""Pairs of models by name, from a file: the packaged ``pairs.toml`` and files of the user's own."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mdsd_core.models.prompts import HubSet
from mdsd_study.report.data_files import check_fields, read_packaged


@dataclass(frozen=True)
class Pair:
    """A target and a draft, by name.

    Attributes
    ----------
    name : str
        What tables and files call the pair.
    target : str
        A packaged model, a folder, or a hub id.
    draft : str
        The same; or ``skip:17,14``, the target without these layers; or ``ngram``, a trigram model of the packaged
        prompts; or ``ngram:FILE``, one of a text file (paragraphs apart by empty lines) or of a stored ``.npz``.
    target_revision, draft_revision : str or None
        Branch, tag or commit on the hub.
    about : str
        One line for a reader.

    Examples
    --------
    >>> Pair("mine", "tiny-random", "skip:1").target_revision is None
    True
    """

    name: str
    target: str
    draft: str
    target_revision: str | None = None
    draft_revision: str | None = None
    about: str = ""

    def __post_init__(self) -> None:
        for field in ("name", "target", "draft"):
            if not isinstance(getattr(self, field), str) or not getattr(self, field):
                raise ValueError(f"a pair must have a {field}, got {getattr(self, field)!r}")


@cache
def packaged_pairs() -> dict[str, Pair]:
    """The pairs of ``pairs.toml`` by name.

    >>> packaged_pairs()["opt-6.7b/opt-125m"].draft
    'facebook/opt-125m'
    """
    return _pairs(read_packaged("mdsd_study.measure", "pairs.toml"), "pairs.toml")


def find_pair(name: str, own: Mapping[str, Pair] | None = None) -> Pair:
    """The pair of that name, the user's own first.

    Raises
    ------
    KeyError
        If there is none; the message lists the names there are.

    Examples
    --------
    >>> find_pair("tiny-random").target
    'tiny-random'
    """
    known = packaged_pairs() | dict(own or {})
    if name not in known:
        raise KeyError(f"no pair is named {name!r}; there are {', '.join(known)}")
    return known[name]


def read_config(path: Path) -> tuple[dict[str, Pair], dict[str, HubSet]]:
    """The pairs and prompt sets of a user's file; its format stands at the top of ``pairs.toml``.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no TOML, or an entry has a field it must not have, or lacks one.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "own.toml"
    >>> _ = path.write_text('pairs.mine = {target = "tiny-random", draft = "skip:1"}')
    >>> read_config(path)[0]["mine"].draft
    'skip:1'
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is no valid TOML: {error}") from None
    unknown = set(content) - {"pairs", "sets"}
    if unknown:
        raise ValueError(f"{path} must hold [pairs.NAME] and [sets.NAME], got {', '.join(sorted(unknown))}")
    sets = {
        name: HubSet(**check_fields(entry, f"{path}: set {name!r}", *_SET))
        for name, entry in content.get("sets", {}).items()
    }
    return _pairs(content, str(path)), sets


#: The fields that an entry must have, and those that it may have.
_PAIR = {"target": str, "draft": str}, {"target_revision": str, "draft_revision": str, "about": str}
_SET = {"dataset": str, "template": str}, {"split": str, "config": str, "chat": bool, "licence": str, "printable": bool}


def _pairs(content: Mapping[str, Any], where: str) -> dict[str, Pair]:
    entries = content.get("pairs", {}).items()
    return {name: Pair(name, **check_fields(entry, f"{where}: pair {name!r}", *_PAIR)) for name, entry in entries}
