"""Where the figures of a claim come from: which values of a results file are its cells.

:class:`Values`, :class:`Sum` and :class:`Share` find values by a regular expression that the whole key must match; its
named groups become properties of the cells. :class:`At`, :class:`Change` and :class:`Turn` take the cells of another
source along one of their properties.
"""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from mdsd_study.report.recorded_runs import Record
from mdsd_study.report.results import Results, exact
from mdsd_study.report.scorecard.cells import Cell, Properties, cells_of, less, more, negated, share

#: The recorded run in which accepted drafts were counted against expected ones, see
#: :mod:`mdsd_study.analysis.target_law_in_the_loop`.
SCORES = "decoding_martingale"


@dataclass(frozen=True)
class Values:
    """All values whose key matches; a list gives a cell for each entry.

    Attributes
    ----------
    notebook : str
        Whose results.
    keys : str
        A regular expression that the whole key must match; its named groups are properties of the cells.
    axis : str
        For lists: the key of the places of their entries, such as ``temperatures``; the place is a property too.
    sign : int
        -1 turns the figure around: "b minus a" is then judged as "a minus b".
    given : mapping
        Properties of all cells that do not stand in their keys.

    Examples
    --------
    >>> from mdsd_study.report.results import exact
    >>> results = Results("06", "ci", {}, {"gap, a": exact(0.25, atol=0.0), "rate": exact(0.75, atol=0.0)})
    >>> Values("06", "gap, (?P<rule>.*)").cells(results)
    [Cell(label='gap, a', value=0.25, low=0.25, high=0.25, properties={'rule': 'a'})]
    """

    notebook: str
    keys: str
    axis: str = ""
    sign: int = 1
    given: Properties = field(default_factory=dict)

    def matching(self, results: Results) -> list[str]:
        """The keys that match."""
        return [key for key in results if re.fullmatch(self.keys, key)]

    def cells(self, results: Results) -> list[Cell]:
        """The cells, in the order of the file."""
        found = [
            cell for key in self.matching(results) for cell in _cells(results, key, self.keys, self.axis, self.given)
        ]
        return [negated(cell) if self.sign < 0 else cell for cell in found]


@dataclass(frozen=True)
class Sum:
    r"""Values more and less others of the same file: the interval takes every end at its worst.

    Measured apart, ``a - b`` is wider than needed; a sum of differences that were paired by prompt is not so wide.

    Attributes
    ----------
    notebook, keys, axis, given
        As for :class:`Values`.
    plus, minus : tuple of str
        The keys that are added and subtracted, as templates of the groups of `keys` (``\1``, ``\g<rule>``).

    Examples
    --------
    >>> from mdsd_study.report.results import exact
    >>> results = Results("06", "ci", {}, {"a, n=4": exact(0.75, atol=0.0), "a, n=2": exact(0.5, atol=0.0)})
    >>> Sum("06", r"(.*), n=4", minus=(r"\1, n=2",)).cells(results)[0].value
    0.25
    """

    notebook: str
    keys: str
    plus: tuple[str, ...] = ()
    minus: tuple[str, ...] = ()
    axis: str = ""
    given: Properties = field(default_factory=dict)

    def partners(self, key: str) -> list[str]:
        """The keys that are added to and subtracted from this one; none if this one does not match."""
        match = re.fullmatch(self.keys, key)
        return [match.expand(template) for template in (*self.plus, *self.minus)] if match else []

    def matching(self, results: Results) -> list[str]:
        """The keys that match and whose partners are there."""
        return [
            key
            for key in results
            if (partners := self.partners(key)) and all(partner in results.values for partner in partners)
        ]

    def cells(self, results: Results) -> list[Cell]:
        """One cell for each matching key, or for each entry of its list."""
        found = []
        for key in self.matching(results):
            sums = _cells(results, key, self.keys, self.axis, self.given)
            for i, partner in enumerate(self.partners(key)):
                add = more if i < len(self.plus) else less
                other = _cells(results, partner, re.escape(partner), self.axis)
                sums = [add(a, b) for a, b in zip(sums, other, strict=True)]
            found += sums
        return found


@dataclass(frozen=True)
class Share:
    r"""Values divided by others of the same file, measured apart: the interval takes both ends at their worst.

    Attributes
    ----------
    notebook, keys, given
        As for :class:`Values`.
    of : str
        The key that is divided by, as a template of the groups of `keys`.

    Examples
    --------
    >>> from mdsd_study.report.results import exact
    >>> results = Results("10", "ci", {}, {"gain, a": exact(0.25, atol=0.0), "one, a": exact(0.5, atol=0.0)})
    >>> Share("10", r"gain, (.*)", r"one, \1").cells(results)[0].value
    0.5
    """

    notebook: str
    keys: str
    of: str
    given: Properties = field(default_factory=dict)

    def partners(self, key: str) -> list[str]:
        """The key that this one is divided by; none if this one does not match."""
        return Sum(self.notebook, self.keys, (self.of,)).partners(key)

    def matching(self, results: Results) -> list[str]:
        """The keys that match and whose partner is there."""
        return Sum(self.notebook, self.keys, (self.of,)).matching(results)

    def cells(self, results: Results) -> list[Cell]:
        """One cell for each matching key."""
        found = []
        for key in self.matching(results):
            whole = [cell for other in self.partners(key) for cell in _cells(results, other, re.escape(other))]
            figures = _cells(results, key, self.keys, given=self.given)
            found += [share(a, b) for a, b in zip(figures, whole, strict=True)]
        return found


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
    >>> At(Values("12", "gap, .*", "drafts"), "n", 4).cells(Results("12", "ci", {}, values))[0].label
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
    >>> Change(Values("12", "gap, .*", "drafts"), "n", 4, 2).cells(Results("12", "ci", {}, values))[0].value
    0.25
    """

    first: float
    second: float

    def cells(self, results: Results) -> list[Cell]:
        """One cell for each curve that has both places."""
        return [
            _apart(less(curve[self.first], curve[self.second]), self.name)
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
    >>> results, rates = Results("11", "ci", {}, values), Values("11", "rate", "T")
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
Source = Values | Sum | Share | At | Change | Turn


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
    rise, fall = _clearest(less(b, a) for a, b in pairs), _clearest(less(a, b) for a, b in pairs)
    return [min(rise, fall, key=lambda cell: cell.low)]


def _turns_at(entries: list[Cell], i: int) -> list[Cell]:
    """How clearly entry i is a peak between its sides, and how clearly a trough."""
    sides = (entries[:i], entries[i + 1 :])
    peak = [_clearest(less(entries[i], other) for other in side) for side in sides]
    trough = [_clearest(less(other, entries[i]) for other in side) for side in sides]
    return [min(both, key=lambda cell: cell.low) for both in (peak, trough)]


def _cells(results: Results, key: str, keys: str, axis: str = "", given: Properties | None = None) -> list[Cell]:
    match = re.fullmatch(keys, key)
    return cells_of(results, key, match, axis, given) if match else []


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
