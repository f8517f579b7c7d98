"""From results to verdicts: which cells speak for a claim, which against, and what follows.

A verdict is never written down. A claim says in which results files it is measured, which values there are its cells,
and by which criterion a cell speaks for it; the verdict is computed from the values and their intervals each time.
"""

from collections.abc import Callable
from dataclasses import dataclass

from mdsd_study.report.results import Results
from mdsd_study.report.scorecard.cells import Cell
from mdsd_study.report.scorecard.claim_values import Source
from mdsd_study.report.scorecard.conditions import Condition, conditions

HOLDS = "holds"
CONDITION = "holds with a condition"
OPEN = "not decided here"
MIXED = "mixed here"
UNSEEN = "not seen on these pairs"
FAILS = "does not hold"
ABSENT = "not measured in this profile"
UNTESTED = "not tested here"

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
        return -Above(self.limit).stance(cell)

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
    source : Values, Sum, Share, At, Change or Turn
        Which values.
    criterion : Above or AtMost
        When a cell speaks for the claim.
    points : bool
        Whether its figures are shown in points, hundredths of an acceptance.

    Examples
    --------
    >>> from mdsd_study.report.scorecard.claim_values import Values
    >>> Evidence("the gap of RRS", Values("06", "gap, .*")).criterion.words()
    'the interval lies above 0'
    """

    how: str
    source: Source
    criterion: Above | AtMost = Above()
    points: bool = False


@dataclass(frozen=True)
class Judged:
    """An evidence with its cells and how each speaks; no cells if its notebook has no results here.

    >>> from mdsd_study.report.scorecard.claim_values import Values
    >>> cells = (Cell("n=2", 0.1, 0.1, 0.1), Cell("n=4", 0.3, 0.3, 0.3))
    >>> [cell.label for cell in Judged(Evidence("gap", Values("06", "gap")), cells, (1, 1)).extremes]
    ['n=2', 'n=4']
    """

    evidence: Evidence
    cells: tuple[Cell, ...]
    stances: tuple[int, ...]

    @property
    def met_by_value(self) -> int:
        """How many cells meet the criterion by their value alone, whatever the interval."""
        plain = [Cell(cell.label, cell.value, cell.value, cell.value) for cell in self.cells]
        return sum(self.evidence.criterion.stance(cell) > 0 for cell in plain)

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
        :data:`HOLDS`, :data:`CONDITION`, :data:`OPEN`, :data:`MIXED`, :data:`UNSEEN`, :data:`FAILS`, :data:`ABSENT` or
        :data:`UNTESTED`.
    parts : tuple of Judged
        One for each evidence of the claim.
    conditions : tuple of Condition
        With :data:`CONDITION`: the properties that separate the cells, the clearest first.

    Examples
    --------
    >>> from mdsd_study.report.scorecard.claim_values import Values
    >>> cells = (Cell("n=2", 0.1, 0.1, 0.1), Cell("n=4", 0.0, 0.0, 0.0))
    >>> judgement = Judgement(MIXED, (Judged(Evidence("gap", Values("06", "gap")), cells, (1, -1)),))
    >>> judgement.counts, judgement.pairs
    ((1, 0, 1), {})
    """

    verdict: str
    parts: tuple[Judged, ...]
    conditions: tuple[Condition, ...] = ()

    @property
    def cells(self) -> list[tuple[Cell, int]]:
        """All cells, each with how it speaks."""
        return [pair for part in self.parts for pair in zip(part.cells, part.stances, strict=True)]

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many cells speak for the claim, do not tell, and speak against it."""
        every = [stance for _, stance in self.cells]
        return every.count(1), every.count(0), every.count(-1)

    @property
    def pairs(self) -> dict[str, list[str]]:
        """On which pairs it was measured: the drafts of each target."""
        found: dict[str, set[str]] = {}
        for cell, _ in self.cells:
            if {"target", "draft"} <= set(cell.properties):
                found.setdefault(str(cell.properties["target"]), set()).add(str(cell.properties["draft"]))
        return {target: sorted(drafts) for target, drafts in found.items()}


def judge(evidence: tuple[Evidence, ...], read: Reader, *, law: bool = False) -> Judgement:
    """Compute a verdict.

    Parameters
    ----------
    evidence : tuple of Evidence
        What the claim is judged by; none for a claim that nothing here tests.
    read : callable
        From the name of a notebook to its results, or to None where there are none.
    law : bool
        Whether the claim is a formula or a theorem. One cell against it refutes it; a claim about models is at most
        not seen on the pairs at hand.

    Returns
    -------
    Judgement
        Let a cell be open if its interval contains its limit. The first of these that fits:

        - *not tested here*: the claim has no evidence; *not measured in this profile*: it has no cells;
        - *does not hold*: the claim is a law and a cell speaks against it;
        - *not decided here*: more than half of the cells are open, or none speaks against and half are open;
        - *holds*: no cell speaks against it;
        - *not seen on these pairs*: no cell speaks for it;
        - *holds with a condition*: a property separates the cells
          (:func:`~mdsd_study.report.scorecard.conditions.conditions`);
        - *mixed here*: all else.

        Evidence whose notebook has no results, or lacks the place on an axis, takes no part.

    Raises
    ------
    ValueError
        If there are results but no value matches: the claim names keys that do not exist.

    Examples
    --------
    >>> from mdsd_study.report.results import estimate
    >>> from mdsd_study.report.scorecard.claim_values import Values
    >>> results = Results("06", "ci", {}, {"gap, RRS": estimate(0.02, (0.01, 0.03), atol=1e-4)})
    >>> evidence = Evidence("the gap of RRS", Values("06", "gap, .*"))
    >>> judge((evidence,), lambda name: results).verdict
    'holds'
    >>> judge((evidence,), lambda name: None).verdict
    'not measured in this profile'
    """
    if not evidence:
        return Judgement(UNTESTED, ())
    parts = []
    for one in evidence:
        results = read(one.source.notebook)
        cells = tuple(one.source.cells(results)) if results is not None else ()
        if results is not None and not one.source.matching(results):
            raise ValueError(f"results of {one.source.notebook} have no value for: {one.source}")
        parts.append(Judged(one, cells, tuple(one.criterion.stance(cell) for cell in cells)))
    return _judgement(tuple(parts), law)


def _judgement(parts: tuple[Judged, ...], law: bool) -> Judgement:
    open_judgement = Judgement(OPEN, parts)
    for_, undecided, against = open_judgement.counts
    if not for_ + undecided + against:
        return Judgement(ABSENT, parts)
    if law and against:
        return Judgement(FAILS, parts)
    if undecided > for_ + against or (not against and undecided >= for_):
        return open_judgement
    if not against:
        return Judgement(HOLDS, parts)
    if not for_:
        return Judgement(UNSEEN, parts)
    found = conditions(*zip(*open_judgement.cells, strict=True))
    return Judgement(CONDITION if found else MIXED, parts, tuple(found))
