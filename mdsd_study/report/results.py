"""Results files: what a notebook found, and for each number of what kind it is, and how far a later run may differ.

A notebook ends with ``write_results(...)``; the book's prose, ``make check`` and ``make reference`` read the file.
Every value is made by one of three functions, so that an estimate is never taken for exact and a timing is never
compared:

* :func:`exact`: no sampling noise, given the texts it was measured on;
* :func:`estimate`: a figure with an interval;
* :func:`timing`: seconds, ratios of speed and the like; recorded, never compared.

The file lies in ``results/`` of the checkout (or in ``$MDSD_RESULTS``). The values it is compared with lie in
``reference/<profile>/NAME.json``; what a notebook *reads* from ``reference/`` (token ids of continuations) lies in
folders below, ``reference/<profile>/<folder>/``, because a change there makes every notebook run anew.
"""

import difflib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mdsd_core.disk_cache import in_one_step
from mdsd_study.report.provenance import describe_run, project_folder

#: Raised when the layout of the file changes.
FORMAT = 1

PROFILES = ("ci", "quick", "full")


@dataclass(frozen=True)
class Value:
    """One entry of a results file; make it with :func:`exact`, :func:`estimate` or :func:`timing`.

    Attributes
    ----------
    value : number, bool, str, or a (nested) list of them
    kind : str
        ``exact``, ``estimate`` or ``timing``.
    interval : pair of (lists of) float or None
        Lower and upper end, for an estimate.
    level : float or None
        The coverage that the interval aims at.
    tolerance : dict or None
        ``{"atol": a, "rtol": r}`` (equal if ``|x - reference| <= a + r |reference|``), ``{"overlap": True}`` (the two
        intervals must overlap), or None for a timing.
    """

    value: Any
    kind: str
    interval: tuple[Any, Any] | None = None
    level: float | None = None
    tolerance: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """The entry as it stands in the file: only the fields that say something.

        >>> exact(3, atol=0).as_json()
        {'value': 3, 'kind': 'exact', 'tolerance': {'atol': 0.0, 'rtol': 0.0}}
        """
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Results:
    """A results or reference file, read and checked; ``results["key"]`` is a :class:`Value`."""

    name: str
    profile: str
    parameters: dict[str, Any]
    values: dict[str, Value]
    made: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Value:
        if key not in self.values:
            near = difflib.get_close_matches(key, self.values, n=3, cutoff=0.0)
            raise KeyError(
                f"results of {self.name} ({self.profile}) have no value {key!r} among their {len(self.values)}"
                + (f"; the nearest: {'; '.join(near)}" if near else "")
                + ". If the notebook writes it now, run it anew with this profile."
            )
        return self.values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def as_json(self) -> dict[str, Any]:
        """The whole file as a dict.

        >>> Results("x", "ci", {}, {"n": exact(1, atol=0)}).as_json()["format"]
        1
        """
        values = {key: value.as_json() for key, value in self.values.items()}
        return {"format": FORMAT, **vars(self), "values": values}


def _plain(x: Any, what: str) -> Any:
    """`x` in plain Python types; numpy scalars and arrays are converted, NaN and infinities refused."""
    if hasattr(x, "tolist"):  # numpy and torch, neither imported for it
        x = x.tolist()
    if isinstance(x, (list, tuple)):
        return [_plain(item, what) for item in x]
    if isinstance(x, (bool, int, str)):
        return x
    if isinstance(x, float):
        if not math.isfinite(x):
            raise ValueError(f"{what} must be finite, got {x}; leave the entry out or say what is missing in words")
        return x
    raise TypeError(f"{what} must be a number, a bool, a string or a list of them, got {type(x).__name__}")


def _tolerance(atol: float, rtol: float) -> dict[str, float]:
    for name, bound in (("atol", atol), ("rtol", rtol)):
        if not (math.isfinite(bound) and bound >= 0):
            raise ValueError(f"{name} must be finite and >= 0, got {bound}")
    return {"atol": float(atol), "rtol": float(rtol)}


def exact(value: Any, *, atol: float, rtol: float = 0.0) -> Value:
    """A value without sampling noise, given its texts.

    Parameters
    ----------
    value : number, bool, str, array, or (nested) list of them
        Floats must be finite.
    atol, rtol : float, >= 0
        How far the value of another machine may differ: about 1e-4 for teacher-forced float32 quantities, less for
        float64 ones, 0 for counts and words.

    >>> exact(0.75, atol=1e-9).value
    0.75
    """
    return Value(_plain(value, "value"), "exact", tolerance=_tolerance(atol, rtol))


def estimate(
    value: Any,
    interval: Any,
    *,
    level: float = 0.95,
    atol: float | None = None,
    rtol: float = 0.0,
    overlap: bool = False,
) -> Value:
    """A value with its interval.

    Parameters
    ----------
    value : number or (nested) list
        Floats must be finite.
    interval : pair (low, high)
        Each of the shape of `value`, around it.
    level : float, in (0, 1)
        The coverage that the interval aims at.
    atol, rtol : float, >= 0
        For the same texts and seeds: how far the value and both ends may differ in a later run.
    overlap : bool
        For texts drawn anew on every machine: the two intervals must overlap; give no `atol` then.

    >>> estimate(0.7, (0.68, 0.72), atol=1e-4).interval
    (0.68, 0.72)
    >>> estimate(0.7, (0.71, 0.72), atol=1e-4)
    Traceback (most recent call last):
        ...
    ValueError: interval must contain the value, got 0.7 and (0.71, 0.72)
    """
    value = _plain(value, "value")
    low, high = (_plain(end, "interval") for end in interval)
    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}")
    if overlap == (atol is not None):
        raise ValueError("give either atol (same texts on every machine) or overlap=True (drawn anew), not both")
    if not np.shape(value) == np.shape(low) == np.shape(high):
        raise ValueError(f"interval must have the shape of the value, got {low} and {high} for {value}")
    if not (np.less_equal(low, value) & np.less_equal(value, high)).all():
        raise ValueError(f"interval must contain the value, got {value} and ({low}, {high})")
    tolerance = {"overlap": True} if atol is None else _tolerance(atol, rtol)
    return Value(value, "estimate", (low, high), float(level), tolerance)


def timing(value: Any) -> Value:
    """Seconds, speeds and their ratios: recorded, never compared.

    >>> timing(1.5).tolerance is None
    True
    """
    return Value(_plain(value, "value"), "timing")


def results_folder() -> Path:
    """``$MDSD_RESULTS``, else ``results/`` of the checkout (not created here).

    >>> results_folder().is_absolute()
    True
    """
    chosen = os.environ.get("MDSD_RESULTS")
    return Path(chosen).absolute() if chosen else project_folder() / "results"


def write_results(
    name: str,
    profile: str,
    values: Mapping[str, Value],
    parameters: Mapping[str, Any],
    *,
    folder: Path | str | None = None,
) -> None:
    """Write ``NAME.json``; returns nothing, so that a notebook which ends with it shows no path of this machine.

    Parameters
    ----------
    name : str
        The notebook's name without suffix.
    profile : str
        ``ci``, ``quick`` or ``full``: which reference the file is compared with.
    values : mapping of str to Value
        What was found, see :func:`exact`, :func:`estimate` and :func:`timing`.
    parameters : mapping of str to number, bool, str or list
        All parameters of the notebook. Runs with other parameters than the reference's are not compared.
    folder : path, optional
        Where to write; by default :func:`results_folder`.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = mkdtemp()
    >>> write_results("demo", "ci", {"rate": exact(0.75, atol=1e-9)}, {"seed": 0}, folder=folder)
    >>> read_results("demo", folder=folder)["rate"].value
    0.75
    """
    if profile not in PROFILES:
        raise ValueError(f"profile must be one of {', '.join(PROFILES)}, got {profile!r}")
    if not values:
        raise ValueError("values must not be empty: a notebook without a result has nothing to check")
    for key, value in values.items():
        if not isinstance(value, Value):
            raise TypeError(f"values[{key!r}] must be made by exact, estimate or timing, got {type(value).__name__}")
    plain = {key: _plain(value, f"parameters[{key!r}]") for key, value in parameters.items()}
    results = Results(name, profile, plain, dict(values), describe_run())
    target = Path(folder) if folder is not None else results_folder()
    write_json(target / f"{name}.json", results.as_json())


def write_json(path: Path, content: Mapping[str, Any]) -> Path:
    """Write `content` as readable JSON, in one step.

    >>> from tempfile import mkdtemp
    >>> write_json(Path(mkdtemp()) / "a.json", {"b": 1}).read_text().split()
    ['{', '"b":', '1', '}']
    """
    with in_one_step(path) as part:
        part.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return path


def read_results(name: str | Path, *, folder: Path | str | None = None) -> Results:
    """Read a results or reference file, by its path or by its name in `folder` (default :func:`results_folder`).

    Raises
    ------
    FileNotFoundError
        If there is no such file; the message says how to make it.
    ValueError
        If the file is not one of this format, or a value in it has no kind or no tolerance.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_results("tiny", "ci", {"rate": exact(0.5, atol=0.0)}, {"profile": "ci"}, folder=folder)
    ...     read_results("tiny", folder=folder)["rate"].value
    0.5
    """
    path = Path(name)
    if path.suffix != ".json":
        path = (Path(folder) if folder is not None else results_folder()) / f"{name}.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; `make notebooks` writes results, `make reference` the references")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is not a results file of format {FORMAT}")
    values = {key: _read_value(entry, f"{path}: {key}") for key, entry in content["values"].items()}
    return Results(content["name"], content["profile"], content["parameters"], values, content["made"])


def _read_value(entry: Mapping[str, Any], where: str) -> Value:
    kind, tolerance = entry.get("kind"), entry.get("tolerance")
    if kind not in ("exact", "estimate", "timing"):
        raise ValueError(f"{where} must be exact, estimate or timing, got {kind!r}")
    wanted = {"exact": ({"atol", "rtol"},), "estimate": ({"atol", "rtol"}, {"overlap"}), "timing": (set(),)}[kind]
    if set(tolerance or {}) not in wanted:
        raise ValueError(f"{where} is {kind} and has the tolerance {tolerance}: say how far a later run may differ")
    interval = entry.get("interval")
    if (interval is None) == (kind == "estimate"):
        raise ValueError(f"{where} is {kind} and has the interval {interval}")
    return Value(entry["value"], kind, tuple(interval) if interval else None, entry.get("level"), tolerance)
