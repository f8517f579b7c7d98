"""One fault put into the source on purpose: what `tests/mutations.py` tries, and the catalogues in the folders list."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """A fault put into the source: `edits` are (old, new), each old text occurring once in `file`."""

    name: str
    file: str
    edits: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]
    compiled: bool = False


def mutation(name, file, *edits, tests, compiled=False):
    pairs = tuple(zip(edits[::2], edits[1::2]))
    return Mutation(name, f"mdsd_core/{file}", pairs, (tests,) if isinstance(tests, str) else tuple(tests), compiled)


def mutated(text, edits):
    """The source with all edits made; ValueError if a text to replace does not occur exactly once."""
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} occurs {text.count(old)} times, not once")
        if new == old:
            raise ValueError(f"{old!r} is replaced by itself")
        text = text.replace(old, new)
    return text
