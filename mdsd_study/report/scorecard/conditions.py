"""Under which condition a claim holds: a property of the cells that separates those for it from those against it.

A condition is found, never written down: a threshold on a numeric property (``T at most 1``) or a set of values of one
in words (``draft skip4 or skip6``), with every cell for the claim on one side and every cell against it on the other.
Among few cells such a split comes easily, and properties that name each cell would always give one. So a condition
counts only if shuffled cells would seldom be split as cleanly, see :func:`conditions`.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from mdsd_study.report.scorecard.cells import Cell

#: A condition is taken seriously if shuffled cells are split as cleanly no more often than this, over all properties.
CHANCE = 0.05


@dataclass(frozen=True)
class Condition:
    """A property that all cells for a claim have, and none of those against it.

    Attributes
    ----------
    name : str
        The property.
    low, high : float
        Between which a numeric property lies.
    values : tuple of str
        The values of one in words; empty for a numeric one.
    chance : float
        How often this property would split shuffled cells as cleanly.

    Examples
    --------
    >>> Condition("T", high=1.0).words(), Condition("draft", values=("skip4", "skip6")).words()
    ('T at most 1', 'draft skip4 or skip6')
    """

    name: str
    low: float = -math.inf
    high: float = math.inf
    values: tuple[str, ...] = ()
    chance: float = 0.0

    def met(self, cell: Cell) -> bool:
        """Whether the cell lies where the claim holds.

        >>> Condition("T", high=1.0).met(Cell("lead", 0.0, 0.0, 0.0, {"T": 1.2}))
        False
        """
        value = cell.properties[self.name]
        return value in self.values if isinstance(value, str) else self.low <= value <= self.high

    def words(self) -> str:
        """The condition in words."""
        name = self.name.replace("_", " ")
        if self.values:
            *others, last = self.values
            return f"{name} {', '.join(others)} or {last}" if others else f"{name} {last}"
        return f"{name} at most {self.high:g}" if self.high < math.inf else f"{name} at least {self.low:g}"


def conditions(cells: Sequence[Cell], stances: Sequence[int]) -> list[Condition]:
    """The properties that separate the cells for a claim from those against it, the least likely by chance first.

    Parameters
    ----------
    cells : sequence of Cell
        All cells of the claim.
    stances : sequence of {1, 0, -1}
        How each speaks. Cells that do not tell may lie on either side.

    Returns
    -------
    list of Condition
        Those of properties that every cell has and that separate without exception. On the side of the claim at least
        two cells and more than half of all speak for it. The chance, times the number of properties that were tried,
        is at most :data:`CHANCE`; it is exact: of all ways to pick as many of the cells that tell as speak for the
        claim, the share that the property would separate from the others.

    Examples
    --------
    >>> cells = [Cell(f"T={t}", 0.0, 0.0, 0.0, {"T": t / 10, "name": f"cell {t}"}) for t in range(1, 12)]
    >>> [one.words() for one in conditions(cells, [1, 1, 1, 1, 1, 0, -1, -1, -1, -1, -1])]
    ['T at most 0.5']
    >>> conditions(cells, [1, 1, 1, 1, -1, 0, 1, -1, -1, -1, -1])
    []
    >>> conditions(cells[:2], [1, -1])
    []
    """
    told = [i for i, stance in enumerate(stances) if stance]
    shared = [name for name in (cells[0].properties if cells else ()) if all(name in cell.properties for cell in cells)]
    tried = [name for name in shared if len({cells[i].properties[name] for i in told}) > 1]
    found = []
    for name in tried:
        condition = _split(name, [cells[i] for i in told], [stances[i] for i in told])
        if condition is None or condition.chance * len(tried) > CHANCE:
            continue
        inside = [stance for cell, stance in zip(cells, stances, strict=True) if condition.met(cell)]
        if inside.count(1) > 1 and 2 * inside.count(1) > len(inside):
            found.append(condition)
    return sorted(found, key=lambda condition: condition.chance)


def _split(name: str, cells: list[Cell], stances: list[int]) -> Condition | None:
    """The condition by one property, if it separates without exception; every cell is for or against."""
    for_ = [cell.properties[name] for cell, stance in zip(cells, stances, strict=True) if stance > 0]
    against = [cell.properties[name] for cell, stance in zip(cells, stances, strict=True) if stance < 0]
    if not for_ or not against or set(for_) & set(against):
        return None
    sizes = Counter([*for_, *against])
    ways = math.comb(len(cells), len(for_))
    if any(isinstance(value, str) for value in sizes):
        values = tuple(sorted(map(str, set(for_))))
        return Condition(name, values=values, chance=_subsets(list(sizes.values()), len(for_)) / ways)
    ordered = [sizes[value] for value in sorted(sizes, key=float)]
    ends = sum(list(accumulate(end)).count(len(for_)) for end in (ordered, ordered[::-1]))
    numbers, others = [float(value) for value in for_], [float(value) for value in against]
    if max(numbers) < min(others):
        return Condition(name, high=max(numbers), chance=ends / ways)
    if min(numbers) > max(others):
        return Condition(name, low=min(numbers), chance=ends / ways)
    return None


def _subsets(sizes: list[int], total: int) -> int:
    """How many subsets of groups of these sizes have `total` members together."""
    counts = [1] + [0] * total
    for size in sizes:
        for reached in range(total, size - 1, -1):
            counts[reached] += counts[reached - size]
    return counts[total]
