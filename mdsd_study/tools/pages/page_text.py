"""What the pages made from data share: their text, which lies beside the module that makes it, and their tables."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path


def page_text(name: str, **filled: str) -> str:
    """The text of ``NAME.md`` in this folder, with each ``[[place]]`` in it filled in."""
    text = Path(__file__).with_name(f"{name}.md").read_text(encoding="utf-8")
    return re.sub(r"\[\[(\w+)\]\]", lambda place: filled[place[1]], text)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> print(markdown_table(["name", "what"], [("p", "target"), ("q", "draft")]))
    | name | what |
    | --- | --- |
    | p | target |
    | q | draft |
    """
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))
