"""What the stage step writes into pages and notebooks: numbers from results files, lines under figures."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mdsd_study.report.provenance import provenance_line, recorded_line
from mdsd_study.report.results import Results, Value
from mdsd_study.tools.notebooks.project import ProjectError

_NUMBER = re.compile(
    r"\[\[(?P<run>full/)?(?P<name>\d\d_\w+)\.(?P<key>(?:[^\[\]:]|: )+?)(?::(?P<form>(?! )[^\[\]]*))?\]\]"
)
_RUN = re.compile(r"\[\[full/(\d\d_\w+)\]\]")
_FACT = re.compile(r"\[\[(version|commit|date|profile|findings)\]\]")
_FIGURE = re.compile(
    r"^(?P<indent>[ ]*)(?P<fence>`{3,}|:{3,})\{figure\}[ ]*(?P<path>\S+)[ ]*\n(?P<body>.*?)^(?P=indent)(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>$])")


def fill_numbers(
    text: str, read: Callable[[str], Results], facts: dict[str, str], where: str, read_full: Callable[[str], Results]
) -> str:
    """Replace ``[[01_first_look.rate:.3f]]`` by that value of the results file, formatted.

    ``[[full/01_first_look.rate:.3f]]`` takes the recorded full run, and ``[[full/01_first_look]]`` says which one it
    is. The key may end in ``.INDEX`` for an entry of a list. The format is one of Python's, with words before it:
    ``interval`` adds the interval, ``value (low to high)``; ``points`` shows hundredths. Two forms count, over all keys
    that match a regular expression: ``means above 0`` and ``intervals above 0``, as ``22 of 25``. ``[[version]]``,
    ``[[commit]]``, ``[[date]]``, ``[[profile]]`` and ``[[findings]]`` stand for `facts`.
    """

    def number(match: re.Match[str]) -> str:
        try:
            results = (read_full if match["run"] else read)(match["name"])
            return _shown(results, match["key"], match["form"] or "")
        except (FileNotFoundError, KeyError, IndexError, TypeError, ValueError) as error:
            raise ProjectError(f"{where}: {match[0]} cannot be filled in: {error}") from error

    def run(match: re.Match[str]) -> str:
        try:
            return recorded_line(read_full(match[1]).made)
        except FileNotFoundError as error:
            raise ProjectError(f"{where}: {match[0]} cannot be filled in: {error}") from error

    text = _FACT.sub(lambda match: facts[match[1]], text)
    return _RUN.sub(run, _NUMBER.sub(number, text))


def _shown(results: Results, key: str, form: str) -> str:
    if form in ("means above 0", "intervals above 0"):
        matching = [results[name] for name in results if re.fullmatch(key, name)]
        if not matching:
            raise KeyError(f"no key matches {key}")
        ends = [value.value if form.startswith("means") else value.interval[0] for value in matching]  # type: ignore[index]
        return f"{sum(end > 0 for end in ends)} of {len(ends)}"
    value, index = _find(results, key)
    *words, python = form.split(" ")
    unknown = set(words) - {"interval", "points"}
    if unknown:
        raise ValueError(f"the format has the unknown word {unknown.pop()!r}")

    def one(x: Any) -> str:
        x = _at(x, index)
        return format(100 * x if "points" in words else x, python)

    if "interval" not in words:
        return one(value.value)
    if value.interval is None:
        raise ValueError(f"{key} has no interval: it is {value.kind}")
    return f"{one(value.value)} ({one(value.interval[0])} to {one(value.interval[1])})"


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
