"""From results to verdicts: which cells speak for a claim, which against, and what follows.

A verdict is never written down. A claim says in which results files it is measured, which values there are its cells,
and by which criterion a cell speaks for it; the verdict is computed from the values and their intervals each time.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mdsd_core.study.results import Results, Value

HOLDS = "holds"
CONDITION = "holds with a condition"
FAILS = "does not hold here"
OPEN = "not decided here"
ABSENT = "not measured in this profile"

#: Reads the results of a notebook; None if there are none.
Reader = Callable[[str], Results | None]


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
class Above:
    """A cell speaks for the claim if its whole interval lies above `limit`, against it if no part does."""

    limit: float = 0.0

    def stance(self, cell: Cell) -> int:
        """1 for the claim, -1 against it, 0 if the interval holds the limit.

        >>> Above().stance(Cell("gap", 0.02, 0.01, 0.03)), Above().stance(Cell("gap", 0.0, 0.0, 0.0))
        (1, -1)
        """
        return 1 if cell.low > self.limit else (-1 if cell.high <= self.limit else 0)

    def words(self) -> str:
        """The criterion in words."""
        return f"the interval lies above {self.limit:g}"


@dataclass(frozen=True)
class AtMost:
    """A cell speaks for the claim if its whole interval lies at or below `limit`, against it if no part does."""

    limit: float

    def stance(self, cell: Cell) -> int:
        """1 for the claim, -1 against it, 0 if the interval holds the limit.

        >>> AtMost(1e-9).stance(Cell("gap", 1e-12, 1e-12, 1e-12))
        1
        """
        return 1 if cell.high <= self.limit else (-1 if cell.low > self.limit else 0)

    def words(self) -> str:
        """The criterion in words."""
        return f"the interval lies at or below {self.limit:g}"


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

    def cells(self, results: Results) -> list[Cell]:
        """The cells, in the order of the file."""
        found = [cell for key in results if re.fullmatch(self.keys, key) for cell in _cells(key, results[key])]
        return [_negated(cell) if self.sign < 0 else cell for cell in found]


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

    def cells(self, results: Results) -> list[Cell]:
        """One cell for each matching key whose partner is there."""
        found = []
        for key in results:
            match = re.fullmatch(self.first, key)
            other = match.expand(self.second) if match else None
            if other in results.values:
                for a, b in zip(_cells(key, results[key]), _cells(str(other), results[str(other)]), strict=True):
                    label = f"{a.label} less {b.label}"
                    found.append(Cell(label, a.value - b.value, a.low - b.high, a.high - b.low))
        return found


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


@dataclass(frozen=True)
class Evidence:
    """One measurement that a claim is judged by.

    Attributes
    ----------
    how : str
        What is measured, in words.
    source : Values or Differences
        Which values.
    criterion : Above or AtMost
        When a cell speaks for the claim.

    Examples
    --------
    >>> Evidence("the gap of RRS", Values("06", "gap, .*")).criterion.words()
    'the interval lies above 0'
    """

    how: str
    source: Values | Differences
    criterion: Above | AtMost = Above()


@dataclass(frozen=True)
class Judged:
    """An evidence with its cells and how each speaks; no cells if its notebook has no results here.

    >>> cells = (Cell("n=2", 0.1, 0.1, 0.1), Cell("n=4", 0.3, 0.3, 0.3))
    >>> [cell.label for cell in Judged(Evidence("gap", Values("06", "gap")), cells, (1, 1)).extremes]
    ['n=2', 'n=4']
    """

    evidence: Evidence
    cells: tuple[Cell, ...]
    stances: tuple[int, ...]

    @property
    def extremes(self) -> tuple[Cell, Cell]:
        """The cells with the smallest and the largest value."""
        return min(self.cells, key=lambda cell: cell.value), max(self.cells, key=lambda cell: cell.value)


@dataclass(frozen=True)
class Judgement:
    """A verdict with what it rests on.

    Attributes
    ----------
    verdict : str
        :data:`HOLDS`, :data:`CONDITION`, :data:`FAILS`, :data:`OPEN` or :data:`ABSENT`.
    parts : tuple of Judged
        One for each evidence of the claim.

    Examples
    --------
    >>> cells = (Cell("n=2", 0.1, 0.1, 0.1), Cell("n=4", 0.0, 0.0, 0.0))
    >>> judgement = Judgement(OPEN, (Judged(Evidence("gap", Values("06", "gap")), cells, (1, -1)),))
    >>> judgement.counts, [cell.label for cell in judgement.exceptions]
    ((1, 0, 1), ['n=4'])
    """

    verdict: str
    parts: tuple[Judged, ...]

    @property
    def exceptions(self) -> list[Cell]:
        """The cells that do not speak for the claim: its condition, where it holds with one."""
        return [
            cell for part in self.parts for cell, stance in zip(part.cells, part.stances, strict=True) if stance < 1
        ]

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many cells speak for the claim, do not tell, and speak against it."""
        every = [stance for part in self.parts for stance in part.stances]
        return every.count(1), every.count(0), every.count(-1)


def judge(evidence: tuple[Evidence, ...], read: Reader) -> Judgement:
    """Compute a verdict.

    Parameters
    ----------
    evidence : tuple of Evidence
        What the claim is judged by.
    read : callable
        Gives the results of a notebook, or None.

    Returns
    -------
    Judgement
        *holds*: no cell speaks against and more than half speak for; *holds with a condition*: more speak for than
        against; *not decided here*: no interval is clear of its limit; *does not hold here*: all else. Evidence whose
        notebook has no results takes no part.

    Raises
    ------
    ValueError
        If there are results but no value matches: the claim names keys that do not exist.

    Examples
    --------
    >>> from mdsd_core.study.results import estimate
    >>> results = Results("06", "ci", {}, {"gap, RRS": estimate(0.02, (0.01, 0.03), atol=1e-4)})
    >>> evidence = Evidence("the gap of RRS", Values("06", "gap, .*"))
    >>> judge((evidence,), lambda name: results).verdict
    'holds'
    >>> judge((evidence,), lambda name: None).verdict
    'not measured in this profile'
    """
    parts = []
    for one in evidence:
        results = read(one.source.notebook)
        cells = tuple(one.source.cells(results)) if results is not None else ()
        if results is not None and not cells:
            raise ValueError(f"results of {one.source.notebook} have no value for: {one.source}")
        parts.append(Judged(one, cells, tuple(one.criterion.stance(cell) for cell in cells)))
    return Judgement(_verdict([stance for part in parts for stance in part.stances]), tuple(parts))


def _verdict(stances: list[int]) -> str:
    for_, against = stances.count(1), stances.count(-1)
    if not stances:
        return ABSENT
    if for_ == against == 0:
        return OPEN
    if against == 0 and 2 * for_ > len(stances):
        return HOLDS
    return CONDITION if for_ > against else FAILS
