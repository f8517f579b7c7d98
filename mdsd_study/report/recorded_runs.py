"""Recorded runs: small tables of what a long run found, kept in the repository with where and when it was made.

A page that is made in minutes shows the run at full size beside its own smaller one. There are two kinds of records,
both made by the same notebook with ``profile = "full"``:

* its *results*, ``reference/full/NAME.json``, which ``make reference-values PROFILE=full`` takes over, as for the other
  profiles; :func:`full_results` reads them, for notebooks and for the scorecard;
* for wall-clock experiments a *table* of its own: the notebook calls :func:`write_record`, and
  ``python -m mdsd_study.tools.reference.keep_record NAME`` takes the table over into ``reference/recorded/``.

Whatever is shown of a record carries machine, commit and date, see
:func:`~mdsd_study.report.provenance.recorded_line`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdsd_study.report.provenance import describe_run, project_folder, recorded_line
from mdsd_study.report.results import Results, read_results, results_folder, write_json

_FORMAT = 1


def full_results(name: str, profile: str = "", *, reference: Path | None = None) -> Results | None:
    """The results of a notebook's recorded full run; None if none is kept.

    Parameters
    ----------
    name : str
        The notebook's name.
    profile : str
        What the notebook runs with. With ``full`` its own results, just written, are the full run.
    reference : path, optional
        Default: ``reference/`` of the checkout.

    Examples
    --------
    >>> full_results("no-such-notebook") is None
    True
    """
    if profile == "full":
        return read_results(name)
    path = (project_folder() / "reference" if reference is None else reference) / "full" / f"{name}.json"
    return read_results(path) if path.is_file() else None


@dataclass(frozen=True)
class Record:
    """A recorded table.

    Attributes
    ----------
    name : str
        The notebook that made it.
    parameters : dict
        The notebook's parameters then, sizes included.
    rows : list of dict
        The table, one dictionary a row.
    made : dict
        Commit, date, machine and versions of that run.
    remark : str
        What a reader should know of the run; given when the record was taken over.
    """

    name: str
    parameters: dict[str, Any]
    rows: list[dict[str, Any]]
    made: dict[str, Any]
    remark: str = ""

    @property
    def line(self) -> str:
        """Machine, commit and date, and the remark, for below a table or a figure.

        >>> Record("x", {}, [], {"processor": "CPU", "cores": 2, "commit": "0123", "date": "2026-01-02T03:04"}).line
        'Recorded on 2026-01-02 on CPU (2 cores), commit 0123.'
        """
        return recorded_line(self.made, self.remark)

    def row(self, **wanted: Any) -> dict[str, Any]:
        """The one row with these entries.

        >>> Record("x", {}, [{"cell": "a", "speed": 2.0}], {}).row(cell="a")["speed"]
        2.0
        """
        found = [row for row in self.rows if all(row.get(key) == value for key, value in wanted.items())]
        if len(found) != 1:
            raise KeyError(f"the record of {self.name} has {len(found)} rows with {wanted}")
        return found[0]


def recorded_file(name: str, folder: Path | None = None) -> Path:
    """Where the record of a notebook is kept: ``reference/recorded/NAME/table.json``.

    >>> recorded_file("15_x", Path("reference")).as_posix()
    'reference/recorded/15_x/table.json'
    """
    base = project_folder() / "reference" if folder is None else folder
    return base / "recorded" / name / "table.json"


def write_record(
    name: str, rows: Iterable[Mapping[str, Any]], parameters: Mapping[str, Any], *, folder: Path | None = None
) -> None:
    """Write the table of a full run beside the results, as ``recorded/NAME.json``.

    Parameters
    ----------
    name : str
        The notebook's name.
    rows : iterable of mapping
        JSON values only; at least one row.
    parameters : mapping
        The notebook's parameters.
    folder : path, optional
        Where to write; by default ``recorded/`` in :func:`~mdsd_study.report.results.results_folder`.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> write_record("15_x", [{"cell": "a", "speed": 2.0}], {"profile": "full"}, folder=folder)
    >>> read_record("15_x", path=folder / "15_x.json").rows
    [{'cell': 'a', 'speed': 2.0}]
    """
    table = [dict(row) for row in rows]
    if not table:
        raise ValueError("rows must hold at least one row")
    target = folder if folder is not None else results_folder() / "recorded"
    content = {"format": _FORMAT, "name": name, "parameters": dict(parameters), "rows": table, "made": describe_run()}
    write_json(target / f"{name}.json", content)


def read_record(name: str, *, path: Path | None = None) -> Record | None:
    """The record of a notebook that is kept in the repository; None if there is none.

    Raises ValueError if the file is no record of this notebook.

    >>> read_record("no-such-notebook") is None
    True
    """
    path = recorded_file(name) if path is None else path
    if not path.is_file():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    if content.get("format") != _FORMAT or content.get("name") != name:
        raise ValueError(f"{path} is not a record of {name} of format {_FORMAT}")
    return Record(name, content["parameters"], content["rows"], content["made"], content.get("remark", ""))
