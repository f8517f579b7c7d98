"""Where the figures of a claim come from: which values of a results file are its cells.

:class:`Values` finds values by a regular expression that the whole key must match, and adds, subtracts or divides by
others; the named groups become properties of the cells. :class:`At`, :class:`Change` and :class:`Turn` take the cells
of another source along one of their properties.
"""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from mdsd_study.report.recorded_runs import Record
from mdsd_study.report.results import Results, exact
from mdsd_study.report.scorecard.cells import Cell, Properties, cells_of, difference, negated, ratio, total

#: The recorded run in which accepted drafts were counted against expected ones, see
#: :mod:`mdsd_study.analysis.target_law_in_the_loop`.
SCORES = "decoding_martingale"


@dataclass(frozen=True)
class Values:
    r"""All values whose key matches, alone or with others of the same file; a list gives a cell for each entry.

    Attributes
    ----------
    notebook : str
        Whose results.
    keys : str
        A regular expression that the whole key must match; its named groups are properties of the cells.
    plus, minus : tuple of str
        The keys of values that are added and subtracted, as templates of the groups of `keys` (``\1``, ``\g<rule>``).
    of : str
        The key of the value that is divided by in the end, as such a template.
    axis : str
        For lists: the key of the places of their entries, such as ``temperatures``; the place is a property too.
    sign : int
        -1 turns the figure around: "b minus a" is then judged as "a minus b".
    given : mapping
        Properties of all cells that do not stand in their keys.

    Notes
    -----
    Values are taken as measured apart: the interval has every end at its worst. So ``a - b`` is wider than needed; a
    sum of differences that were paired by prompt is not so wide.

    Examples
    --------
    >>> from mdsd_study.report.results import exact
    >>> values = {"a, n=2": exact(0.5, atol=0.0), "a, n=4": exact(0.75, atol=0.0), "rate": exact(1.0, atol=0.0)}
    >>> results = Results("06", "ci", {}, values)
    >>> Values("06", "(?P<rule>.), n=2").cells(results)
    [Cell(label='a, n=2', value=0.5, low=0.5, high=0.5, properties={'rule': 'a'})]
    >>> Values("06", "(.), n=4", minus=(r"\1, n=2",)).cells(results)[0].value
    0.25
    >>> Values("06", "(.), n=4", of=r"\1, n=2").cells(results)[0].value
    1.5
    """

    notebook: str
    keys: str
    plus: tuple[str, ...] = ()
    minus: tuple[str, ...] = ()
    of: str = ""
    axis: str = ""
    sign: int = 1
    given: Properties = field(default_factory=dict)

    def partners(self, key: str) -> list[str]:
        """The keys of what is added to this one, subtracted from it and divided by; none if this one does not match."""
        match = re.fullmatch(self.keys, key)
        return [match.expand(template) for template in (*self.plus, *self.minus, self.of) if template] if match else []

    def matching(self, results: Results) -> list[str]:
        """The keys that match and whose partners are there."""
        return [
            key
            for key in results
            if re.fullmatch(self.keys, key) and all(partner in results.values for partner in self.partners(key))
        ]

    def cells(self, results: Results) -> list[Cell]:
        """The cells, in the order of the file."""
        steps = [total] * len(self.plus) + [difference] * len(self.minus) + [ratio] * bool(self.of)
        found = []
        for key in self.matching(results):
            figures = cells_of(results, key, self.keys, self.axis, self.given)
            for step, partner in zip(steps, self.partners(key), strict=True):
                others = cells_of(results, partner, re.escape(partner), self.axis)
                figures = [step(a, b) for a, b in zip(figures, others, strict=True)]
            found += figures
        return [negated(cell) if self.sign < 0 else cell for cell in found]


@dataclass(frozen=True)
class _Along:
    """The cells of another source, taken along one of their properties."""

    source: "Source"
    name: str

    @property
    def notebook(self) -> str:
        """Whose results: those of the other source."""
        return self.source.notebook

    def matching(self, results: Results) -> list[str]:
        """The keys that match."""
        return self.source.matching(results)

    def curves(self, results: Results) -> list[dict[float, Cell]]:
        """The cells by place, those together that differ in nothing else."""
        found: dict[tuple[tuple[str, str | float], ...], dict[float, Cell]] = {}
        for cell in self.source.cells(results):
            curve, place = found.setdefault(cell.without(self.name), {}), float(cell.properties[self.name])
            if place in curve:
                raise ValueError(
                    f"{cell.label} and {curve[place].label} have the same properties: name the group of the pattern "
                    "that they differ in"
                )
            curve[place] = cell
        return list(found.values())


@dataclass(frozen=True)
class At(_Along):
    """Of another source, the cells at one place of a numeric property; none where no cell has it.

    Attributes
    ----------
    source : Source
        The other source.
    name : str
        The property, such as ``T``.
    place : float
        Its value.

    Examples
    --------
    >>> from mdsd_study.report.results import exact
    >>> values = {"drafts": exact([2, 4], atol=0), "gap, a": exact([0.25, 0.5], atol=0.0)}
    >>> At(Values("12", "gap, .*", axis="drafts"), "n", 4).cells(Results("12", "ci", {}, values))[0].label
    'gap, a, n = 4'
    """

    place: float

    def cells(self, results: Results) -> list[Cell]:
        """The cells at that place."""
        return [curve[self.place] for curve in self.curves(results) if self.place in curve]


@dataclass(frozen=True)
class Change(_Along):
    """Of another source, the cell at one place of a property less that at another, measured apart.

    Attributes
    ----------
    source, name
        As for :class:`At`.
    first, second : float
        Places; the cell at the second is subtracted. The interval takes both ends at their worst.

    Examples
    --------
    >>> from mdsd_study.report.results import exact
    >>> values = {"drafts": exact([2, 4], atol=0), "gap, a": exact([0.25, 0.5], atol=0.0)}
    >>> Change(Values("12", "gap, .*", axis="drafts"), "n", 4, 2).cells(Results("12", "ci", {}, values))[0].value
    0.25
    """

    first: float
    second: float

    def cells(self, results: Results) -> list[Cell]:
        """One cell for each curve that has both places."""
        return [
            _apart(difference(curve[self.first], curve[self.second]), self.name)
            for curve in self.curves(results)
            if self.first in curve and self.second in curve
        ]


@dataclass(frozen=True)
class Turn(_Along):
    """Of another source, how clearly it both rises and falls along a property: the smaller of the two.

    A rise is the difference of a later cell and an earlier one, a fall the reverse, measured apart; of all pairs that
    one counts whose interval reaches highest at its lower end. A monotone curve gives a figure <= 0.

    With `between` the curve must turn *there*: it rises to a cell whose place lies between the two and falls from it,
    or falls to it and rises from it.

    Attributes
    ----------
    source, name
        As for :class:`At`.
    between : (float, float) or None
        Places, both included.

    Examples
    --------
    >>> from mdsd_study.report.results import exact
    >>> values = {"T": exact([0.5, 0.75, 1.0], atol=0.0), "rate": exact([0.25, 0.75, 0.5], atol=0.0)}
    >>> results, rates = Results("11", "ci", {}, values), Values("11", "rate", axis="T")
    >>> Turn(rates, "T").cells(results)[0].value
    0.25
    >>> Turn(rates, "T", between=(0.7, 0.8)).cells(results)[0].label
    'rate, T = 0.5 to 1, turn at 0.7 to 0.8'
    >>> Turn(rates, "T", between=(0.1, 0.2)).cells(results)
    []
    """

    between: tuple[float, float] | None = None

    def cells(self, results: Results) -> list[Cell]:
        """One cell for each curve of two or more cells, or with a cell inside that lies `between`."""
        found = []
        for curve in self.curves(results):
            entries = [curve[place] for place in sorted(curve)]
            if self.between is None:
                where, turns = "", _any_turn(entries)
            else:
                first, last = self.between
                where = f", turn at {first:g} to {last:g}"
                places = [first <= place <= last for place in sorted(curve)]
                inside = [i for i in range(1, len(entries) - 1) if places[i]]
                turns = [turn for i in inside for turn in _turns_at(entries, i)]
            if turns:
                best = _apart(_clearest(turns), self.name)
                label = f"{entries[0].label} to {max(curve):g}{where}"
                found.append(Cell(label, best.value, best.low, best.high, best.properties))
        return found


#: Where the figures of an evidence come from.
Source = Values | At | Change | Turn


def _apart(cell: Cell, name: str) -> Cell:
    """The cell without the property that it was taken along."""
    return Cell(cell.label, cell.value, cell.low, cell.high, dict(cell.without(name)))


def _clearest(cells: Iterable[Cell]) -> Cell:
    return max(cells, key=lambda cell: cell.low)


def _any_turn(entries: list[Cell]) -> list[Cell]:
    """The smaller of the largest rise and the largest fall; nothing for fewer than two entries."""
    pairs = list(itertools.combinations(entries, 2))
    if not pairs:
        return []
    rise, fall = _clearest(difference(b, a) for a, b in pairs), _clearest(difference(a, b) for a, b in pairs)
    return [min(rise, fall, key=lambda cell: cell.low)]


def _turns_at(entries: list[Cell], i: int) -> list[Cell]:
    """How clearly entry i is a peak between its sides, and how clearly a trough."""
    sides = (entries[:i], entries[i + 1 :])
    peak = [_clearest(difference(entries[i], other) for other in side) for side in sides]
    trough = [_clearest(difference(other, entries[i]) for other in side) for side in sides]
    return [min(both, key=lambda cell: cell.low) for both in (peak, trough)]


def recorded_scores(record: Record) -> Results:
    """The sizes of the standard scores of the record :data:`SCORES`, as results that a source can read.

    >>> score = {"depth": 0, "given": "drafts", "z": -1.5}
    >>> record = Record(SCORES, {}, [{"scheme": "greedy", "verifier": "rrs", "scores": [score]}], {})
    >>> {key: value.value for key, value in recorded_scores(record).values.items()}
    {'score, greedy, rrs, depth 0, given drafts': 1.5}
    """
    values = {
        f"score, {row['scheme']}, {row['verifier']}, depth {one['depth']}, given {one['given']}": exact(
            abs(one["z"]), atol=0.0
        )
        for row in record.rows
        for one in row["scores"]
    }
    return Results(record.name, "full", record.parameters, values, record.made)
