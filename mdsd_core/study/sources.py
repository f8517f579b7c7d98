"""Where the figures of a claim come from: which values of a results file are its cells, each with its interval."""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mdsd_core.study.results import Results, Value


@dataclass(frozen=True)
class Cell:
    """One figure that a claim is judged by; an exact one has ``low == value == high``.

    >>> Cell("gap, RRS, n=2", 0.02, 0.01, 0.03).value
    0.02
    """

    label: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Values:
    """All values whose key matches; a list gives a cell for each entry.

    Attributes
    ----------
    notebook : str
        Whose results.
    keys : str
        A regular expression that the whole key must match.
    sign : int
        -1 turns the figure around: "b minus a" is then judged as "a minus b".

    Examples
    --------
    >>> from mdsd_core.study.results import exact
    >>> results = Results("06", "ci", {}, {"gap, a": exact(0.25, atol=0.0), "rate": exact(0.75, atol=0.0)})
    >>> Values("06", "gap, .*").cells(results)
    [Cell(label='gap, a', value=0.25, low=0.25, high=0.25)]
    """

    notebook: str
    keys: str
    sign: int = 1

    def matching(self, results: Results) -> list[str]:
        """The keys that match."""
        return [key for key in results if re.fullmatch(self.keys, key)]

    def cells(self, results: Results) -> list[Cell]:
        """The cells, in the order of the file."""
        found = [cell for key in self.matching(results) for cell in _cells(key, results[key])]
        return [_negated(cell) if self.sign < 0 else cell for cell in found]


@dataclass(frozen=True)
class Entry:
    """Of each matching list, the entry at one place of an axis that the file gives; none where the axis lacks it.

    Attributes
    ----------
    notebook : str
        Whose results.
    keys : str
        A regular expression that the whole key must match.
    axis : str
        The key of the list that the entries belong to, such as ``temperatures``.
    place : float
        The value on the axis.

    Examples
    --------
    >>> from mdsd_core.study.results import exact
    >>> values = {"n": exact([2, 4], atol=0), "gap, a": exact([0.25, 0.5], atol=0.0)}
    >>> Entry("12", "gap, .*", "n", 4).cells(Results("12", "ci", {}, values))
    [Cell(label='gap, a, n = 4', value=0.5, low=0.5, high=0.5)]
    """

    notebook: str
    keys: str
    axis: str
    place: float

    def matching(self, results: Results) -> list[str]:
        """The keys that match."""
        return [key for key in results if re.fullmatch(self.keys, key)]

    def cells(self, results: Results) -> list[Cell]:
        """One cell for each matching list."""
        axis = results[self.axis].value
        if self.place not in axis:
            return []
        at = axis.index(self.place)
        found = [(key, list(_cells(key, results[key]))[at]) for key in self.matching(results)]
        return [Cell(f"{key}, {self.axis} = {self.place:g}", c.value, c.low, c.high) for key, c in found]


@dataclass(frozen=True)
class Change:
    """Of each matching list, the entry at one place of its axis less that at another, measured apart.

    Attributes
    ----------
    notebook, keys, axis : str
        As for :class:`Entry`.
    first, second : float
        Places on the axis; the entry at the second is subtracted. The interval takes both ends at their worst.

    Examples
    --------
    >>> from mdsd_core.study.results import exact
    >>> values = {"n": exact([2, 4], atol=0), "gap, a": exact([0.25, 0.5], atol=0.0)}
    >>> Change("12", "gap, .*", "n", 4, 2).cells(Results("12", "ci", {}, values))[0].value
    0.25
    """

    notebook: str
    keys: str
    axis: str
    first: float
    second: float

    def matching(self, results: Results) -> list[str]:
        """The keys that match."""
        return [key for key in results if re.fullmatch(self.keys, key)]

    def cells(self, results: Results) -> list[Cell]:
        """One cell for each matching list; none where the axis lacks a place."""
        ends = [Entry(self.notebook, self.keys, self.axis, place).cells(results) for place in (self.first, self.second)]
        return [_less(a, b) for a, b in zip(*ends, strict=True)] if all(ends) else []


@dataclass(frozen=True)
class Turn:
    """Of each matching list, how clearly it both rises and falls: the smaller of its largest rise and largest fall.

    A rise is the difference of a later entry and an earlier one, a fall the reverse, measured apart; of all pairs that
    one counts whose interval reaches highest at its lower end. A monotone list gives a figure <= 0.

    With `between` the list must turn *there*: it rises to an entry whose place lies between the two and falls from it,
    or falls to it and rises from it.

    Attributes
    ----------
    notebook, keys : str
        As for :class:`Values`.
    axis : str
        The key of the list that the entries belong to; needed with `between`.
    between : (float, float) or None
        Places on the axis, both included.

    Examples
    --------
    >>> from mdsd_core.study.results import exact
    >>> values = {"T": exact([0.5, 0.75, 1.0], atol=0.0), "rate": exact([0.25, 0.75, 0.5], atol=0.0)}
    >>> results = Results("11", "ci", {}, values)
    >>> Turn("11", "rate").cells(results)
    [Cell(label='rate', value=0.25, low=0.25, high=0.25)]
    >>> Turn("11", "rate", axis="T", between=(0.7, 0.8)).cells(results)[0].label
    'rate, T 0.7 to 0.8'
    >>> Turn("11", "rate", axis="T", between=(0.1, 0.2)).cells(results)
    []
    """

    notebook: str
    keys: str
    axis: str = ""
    between: tuple[float, float] | None = None

    def matching(self, results: Results) -> list[str]:
        """The keys that match."""
        return [key for key in results if re.fullmatch(self.keys, key)]

    def cells(self, results: Results) -> list[Cell]:
        """One cell for each matching list of two or more entries, or with an entry inside that lies `between`."""
        found = []
        for key in self.matching(results):
            entries = list(_cells(key, results[key]))
            if self.between is None:
                label, turns = key, _any_turn(entries)
            else:
                first, last = self.between
                label = f"{key}, {self.axis} {first:g} to {last:g}"
                places = [first <= place <= last for place in results[self.axis].value]
                inside = [i for i in range(1, len(entries) - 1) if places[i]]
                turns = [turn for i in inside for turn in _turns_at(entries, i)]
            if turns:
                best = _clearest(turns)
                found.append(Cell(label, best.value, best.low, best.high))
        return found


@dataclass(frozen=True)
class Differences:
    r"""Values less other values of the same file, measured apart: the interval takes both ends at their worst.

    Attributes
    ----------
    notebook : str
        Whose results.
    first : str
        A regular expression for the keys that are subtracted from.
    second : str
        The key that is subtracted, as a template of the first's groups (``\1``).

    Examples
    --------
    >>> from mdsd_core.study.results import exact
    >>> results = Results("06", "ci", {}, {"a, n=4": exact(0.75, atol=0.0), "a, n=2": exact(0.5, atol=0.0)})
    >>> Differences("06", r"(.*), n=4", r"\1, n=2").cells(results)[0].value
    0.25
    """

    notebook: str
    first: str
    second: str

    def partner(self, key: str) -> str | None:
        """The key that is subtracted from this one; None if this one does not match."""
        match = re.fullmatch(self.first, key)
        return match.expand(self.second) if match else None

    def matching(self, results: Results) -> list[str]:
        """The keys that match and whose partner is there."""
        return [key for key in results if self.partner(key) in results.values]

    def cells(self, results: Results) -> list[Cell]:
        """One cell for each matching key."""
        found = []
        for key in self.matching(results):
            other = str(self.partner(key))
            pairs = zip(_cells(key, results[key]), _cells(other, results[other]), strict=True)
            found += [_less(a, b) for a, b in pairs]
        return found


#: Where the figures of an evidence come from.
Source = Values | Entry | Change | Turn | Differences


def _less(a: Cell, b: Cell) -> Cell:
    """``a - b``, measured apart: the interval takes both ends at their worst."""
    return Cell(f"{a.label} less {b.label}", a.value - b.value, a.low - b.high, a.high - b.low)


def _clearest(cells: Iterable[Cell]) -> Cell:
    return max(cells, key=lambda cell: cell.low)


def _any_turn(entries: list[Cell]) -> list[Cell]:
    """The smaller of the largest rise and the largest fall; nothing for fewer than two entries."""
    pairs = list(itertools.combinations(entries, 2))
    if not pairs:
        return []
    rise, fall = _clearest(_less(b, a) for a, b in pairs), _clearest(_less(a, b) for a, b in pairs)
    return [min(rise, fall, key=lambda cell: cell.low)]


def _turns_at(entries: list[Cell], i: int) -> list[Cell]:
    """How clearly entry i is a peak between its sides, and how clearly a trough."""
    sides = (entries[:i], entries[i + 1 :])
    peak = [_clearest(_less(entries[i], other) for other in side) for side in sides]
    trough = [_clearest(_less(other, entries[i]) for other in side) for side in sides]
    return [min(both, key=lambda cell: cell.low) for both in (peak, trough)]


def _cells(key: str, value: Value) -> Iterator[Cell]:
    if value.kind == "timing":
        raise ValueError(f"{key} is a timing, and no verdict hangs on timings")
    low, high = value.interval if value.interval is not None else (value.value, value.value)
    yield from _flat(key, value.value, low, high)


def _flat(label: str, value: Any, low: Any, high: Any) -> Iterator[Cell]:
    if isinstance(value, list):
        for i, one in enumerate(zip(value, low, high, strict=True)):
            yield from _flat(f"{label} [{i}]", *one)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{label} must be a number to be judged, got {value!r}")
    else:
        yield Cell(label, float(value), float(low), float(high))


def _negated(cell: Cell) -> Cell:
    return Cell(f"less {cell.label}", -cell.value, -cell.high, -cell.low)
