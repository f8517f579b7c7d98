"""The text of a page that is made from data lies beside the module that makes it."""

import re
from pathlib import Path


def page_text(name: str, **filled: str) -> str:
    """The text of ``NAME.md`` in this folder, with each ``[[place]]`` in it filled in."""
    text = Path(__file__).with_name(f"{name}.md").read_text(encoding="utf-8")
    return re.sub(r"\[\[(\w+)\]\]", lambda place: filled[place[1]], text)
