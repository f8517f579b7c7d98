"""Cells: the figures that a claim is judged by, each with its interval and with the properties it was measured under.

The properties (temperature ``T``, number of drafts ``n``, ``draft``, ``task``, ``rule``, ``scheme``, ``tree``) come
from three places, the later ones giving way: the named groups of the pattern that found the key, what the source says
of all its cells, and the parameters of the notebook. A verdict can only be made to depend on such a property, see
:mod:`mdsd_study.report.scorecard.conditions`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mdsd_study.report.results import Results

Properties = Mapping[str, str | float]

#: What the entries of a list differ in, by the key of the axis that the results file gives.
AXES = {"temperatures": "T", "drafts": "n"}


@dataclass(frozen=True)
class Cell:
    """One figure that a claim is judged by; an exact one has ``low == value == high``.

    >>> Cell("gap, RRS, n=2", 0.02, 0.01, 0.03, {"n": 2.0}).properties["n"]
    2.0
    """

    label: str
    value: float
    low: float
    high: float
    properties: Properties = field(default_factory=dict)

    def without(self, name: str) -> tuple[tuple[str, str | float], ...]:
        """All properties but one, to find the cells that differ in nothing else.

        >>> Cell("gap", 0.02, 0.01, 0.03, {"n": 2.0, "rule": "RRS"}).without("n")
        (('rule', 'RRS'),)
        """
        return tuple(sorted((key, value) for key, value in self.properties.items() if key != name))


def negated(cell: Cell) -> Cell:
    """The figure with its sign turned.

    >>> negated(Cell("a", 1.0, 0.5, 2.0)).low
    -2.0
    """
    return Cell(f"less {cell.label}", -cell.value, -cell.high, -cell.low, cell.properties)


def total(a: Cell, b: Cell) -> Cell:
    """``a + b`` with the properties of `a`; the interval takes both ends at their worst.

    >>> total(Cell("a", 1.0, 0.5, 2.0), Cell("b", 1.0, 0.5, 2.0)).high
    4.0
    """
    return Cell(f"{a.label} plus {b.label}", a.value + b.value, a.low + b.low, a.high + b.high, a.properties)


def difference(a: Cell, b: Cell) -> Cell:
    """``a - b`` with the properties of `a`, measured apart: the interval takes both ends at their worst.

    >>> difference(Cell("a", 1.0, 0.5, 2.0), Cell("b", 1.0, 0.5, 2.0)).low
    -1.5
    """
    return Cell(f"{a.label} less {b.label}", a.value - b.value, a.low - b.high, a.high - b.low, a.properties)


def ratio(a: Cell, b: Cell) -> Cell:
    """``a / b`` with the properties of `a`, measured apart: the interval takes both ends at their worst.

    >>> ratio(Cell("a", 1.0, 0.5, 2.0), Cell("b", 1.0, 0.5, 2.0)).high
    4.0
    """
    if b.low <= 0:
        raise ValueError(f"{b.label} must lie above 0 with its whole interval to be divided by, got {b.low}")
    ends = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
    return Cell(f"{a.label} over {b.label}", a.value / b.value, min(ends), max(ends), a.properties)


def cells_of(results: Results, key: str, pattern: str, axis: str = "", given: Properties | None = None) -> list[Cell]:
    """The cells of one value of a results file: one, or one for each entry of a list.

    Parameters
    ----------
    results : Results
        What the value stands in.
    key : str
        The value's key.
    pattern : str
        The regular expression that found it; its named groups are properties.
    axis : str
        For a list: the key of the places of its entries, such as ``temperatures``.
    given : mapping, optional
        Properties that the source knows; named groups come before them.

    Returns
    -------
    list of Cell

    Raises
    ------
    ValueError
        If the value is a timing, or no number, or the pattern does not match its key.

    Examples
    --------
    >>> from mdsd_study.report.results import exact
    >>> results = Results("06", "ci", {"temperature": 0.7}, {"gap, n=2": exact(0.25, atol=0.0)})
    >>> found = cells_of(results, "gap, n=2", r"gap, n=(?P<n>.)")
    >>> found[0].value, dict(found[0].properties)
    (0.25, {'T': 0.7, 'n': 2.0})
    """
    value = results[key]
    if value.kind == "timing":
        raise ValueError(f"{key} is a timing, and no verdict hangs on timings")
    match = re.fullmatch(pattern, key)
    if match is None:
        raise ValueError(f"{key} must match {pattern}")
    groups = {name: _number(text.strip()) for name, text in match.groupdict().items() if text is not None}
    properties = {**_settings(results, key), **(given or {}), **groups}
    low, high = value.interval if value.interval is not None else (value.value, value.value)
    if not isinstance(value.value, list):
        return [_cell(key, value.value, low, high, properties)]
    name = AXES.get(axis, axis)
    return [
        _cell(f"{key}, {name} = {place:g}", *entry, {**properties, name: float(place)})
        for place, entry in zip(_places(results, key, axis), zip(value.value, low, high, strict=True), strict=True)
    ]


def _places(results: Results, key: str, axis: str) -> Iterator[float]:
    if not axis:
        raise ValueError(f"{key} is a list: the source must name its axis, the key of the places of the entries")
    yield from results[axis].value


def _cell(label: str, value: Any, low: Any, high: Any, properties: Properties) -> Cell:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{label} must be a number to be judged, got {value!r}")
    return Cell(label, float(value), float(low), float(high), properties)


def _settings(results: Results, key: str) -> dict[str, str | float]:
    """What the notebook's parameters say of all its cells; small examples and toys rest on no pair of models."""
    if key.startswith(("small example", "toy")):
        return {}
    parameters, found = results.parameters, {}
    if target := parameters.get("target"):
        found["target"] = target
        if draft := parameters.get("draft"):
            found["draft"] = draft.removeprefix(f"{target}-")
    for parameter, name in (("temperature", "T"), ("n", "n")):
        if parameter in parameters:
            found[name] = float(parameters[parameter])
    return found


def _number(text: str) -> str | float:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text
