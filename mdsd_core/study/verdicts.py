"""From results to verdicts: which cells speak for a claim, which against, and what follows.

A verdict is never written down. A claim says in which results files it is measured, which values there are its cells,
and by which criterion a cell speaks for it; the verdict is computed from the values and their intervals each time.
"""

from collections.abc import Callable
from dataclasses import dataclass

from mdsd_core.study.results import Results
from mdsd_core.study.sources import Cell, Source

HOLDS = "holds"
CONDITION = "holds with a condition"
FAILS = "does not hold here"
OPEN = "not decided here"
ABSENT = "not measured in this profile"

#: Reads the results of a notebook; None if there are none.
Reader = Callable[[str], Results | None]


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
class Evidence:
    """One measurement that a claim is judged by.

    Attributes
    ----------
    how : str
        What is measured, in words.
    source : Values, Entry, Change, Turn or Differences
        Which values.
    criterion : Above or AtMost
        When a cell speaks for the claim.

    Examples
    --------
    >>> from mdsd_core.study.sources import Values
    >>> Evidence("the gap of RRS", Values("06", "gap, .*")).criterion.words()
    'the interval lies above 0'
    """

    how: str
    source: Source
    criterion: Above | AtMost = Above()


@dataclass(frozen=True)
class Judged:
    """An evidence with its cells and how each speaks; no cells if its notebook has no results here.

    >>> from mdsd_core.study.sources import Values
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
    >>> from mdsd_core.study.sources import Values
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
        notebook has no results, or lacks the place on an axis, takes no part.

    Raises
    ------
    ValueError
        If there are results but no value matches: the claim names keys that do not exist.

    Examples
    --------
    >>> from mdsd_core.study.results import estimate
    >>> from mdsd_core.study.sources import Values
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
        if results is not None and not one.source.matching(results):
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
