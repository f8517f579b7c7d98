"""What the stage step writes into pages and notebooks: numbers from results files, lines under figures."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mdsd_core.study.provenance import provenance_line
from mdsd_core.study.results import Results, Value
from tools.project import ProjectError

_NUMBER = re.compile(r"\[\[(?P<name>\d\d_\w+)\.(?P<key>[^\[\]:]+?)(?::(?P<form>[^\[\]]*))?\]\]")
_FACT = re.compile(r"\[\[(version|commit|date|profile)\]\]")
_FIGURE = re.compile(
    r"^(?P<indent>[ ]*)(?P<fence>`{3,}|:{3,})\{figure\}[ ]*(?P<path>\S+)[ ]*\n(?P<body>.*?)^(?P=indent)(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>$])")


def fill_numbers(text: str, read: Callable[[str], Results], facts: dict[str, str], where: str) -> str:
    """Replace ``[[01_first_look.rate:.3f]]`` by that value of the results file, formatted.

    The key may end in ``.INDEX`` for an entry of a list. The format is one of Python's; ``interval .3f`` gives the
    value with its interval, ``value (low to high)``. ``[[version]]``, ``[[commit]]``, ``[[date]]`` and ``[[profile]]``
    stand for `facts`.
    """

    def number(match: re.Match[str]) -> str:
        form = match["form"] or ""
        try:
            value, index = _find(read(match["name"]), match["key"])
            if not form.startswith("interval"):
                return format(_at(value.value, index), form)
            if value.interval is None:
                raise ValueError(f"{match['key']} has no interval: it is {value.kind}")
            one = form.removeprefix("interval").strip()
            middle, low, high = (format(_at(x, index), one) for x in (value.value, *value.interval))
            return f"{middle} ({low} to {high})"
        except (FileNotFoundError, KeyError, IndexError, TypeError, ValueError) as error:
            raise ProjectError(f"{where}: {match[0]} cannot be filled in: {error}") from error

    return _FACT.sub(lambda match: facts[match[1]], _NUMBER.sub(number, text))


def _find(results: Results, key: str) -> tuple[Value, list[int]]:
    index: list[int] = []
    while key not in results.values and re.search(r"\.\d+$", key):
        key, _, last = key.rpartition(".")
        index.insert(0, int(last))
    return results[key], index


def _at(value: Any, index: list[int]) -> Any:
    for i in index:
        value = value[i]
    return value


def add_provenance(text: str, page: Path, stage: Path) -> str:
    """Add "Made by notebook ..." under every figure directive of a page that is staged at `page`.

    Only figures of notebooks get the line (they have a note beside them); a drawing in ``book/`` gets none. A figure
    without a file, without alt text or without caption is refused.
    """

    def legend(match: re.Match[str]) -> str:
        where = f"{page.relative_to(stage)}: figure {match['path']}"
        body = match["body"]
        image = (page.parent / match["path"]).resolve()
        if not image.is_file():
            raise ProjectError(f"{where}: there is no such file")
        if not re.search(r"^\s*:alt:\s*\S", body, re.MULTILINE):
            raise ProjectError(f"{where}: say in `:alt:` what the picture shows")
        if not any(line.strip() and not line.strip().startswith(":") for line in body.splitlines()):
            raise ProjectError(f"{where}: it has no caption")
        note = image.with_suffix(".json")
        if not note.is_file():
            if "results" in image.relative_to(stage.resolve()).parts:
                raise ProjectError(f"{where}: there is no note of where it comes from; store it with save_figure")
            return match[0]
        content = json.loads(note.read_text(encoding="utf-8"))
        line = provenance_line(
            content["notebook"], content["made"]["commit"], content["parameters"], content.get("recorded")
        )
        end = f"{match['indent']}{match['fence']}"
        opening = match[0][: match[0].index("\n") + 1]
        line = match["indent"] + _SPECIAL.sub(r"\\\1", line)
        return f"{opening}{body.rstrip()}\n\n{line}\n{end}"

    return _FIGURE.sub(legend, text)
