"""What other papers report, from ``published.toml``: their findings, and figures to set beside this project's own.

Facts only, each with its source. Figures read in other people's notes and not in the paper itself are marked.
"""

from dataclasses import dataclass
from typing import Any

from mdsd_study.report.data_files import check_fields, read_packaged


@dataclass(frozen=True)
class Paper:
    """A paper whose claims are judged here.

    Attributes
    ----------
    key : str
        Its key in the book's bibliography.
    name : str
        A short name.
    arxiv : str
        The number of its preprint.
    setup : str
        Models, tasks and settings.
    findings : dict of str to str
        Its claims, by a key of their own, one statement each, in our words.

    Examples
    --------
    >>> PAPERS[1].arxiv, PAPERS[1].findings["lossless"]
    ('2401.06706', 'the target distribution is kept')
    """

    key: str
    name: str
    arxiv: str
    setup: str
    findings: dict[str, str]


@dataclass(frozen=True)
class Figures:
    """A table of another paper.

    Attributes
    ----------
    source : str
        Whose, where.
    setup : str
        Models, tasks and settings.
    unit : str
        What the numbers are.
    columns : tuple of str
        Heads of the columns.
    rows : dict of str to tuple of float
        The numbers, a row each.

    Examples
    --------
    >>> dict(zip(TABLES["spectr"].columns, TABLES["spectr"].rows["as above"], strict=True))
    {'SpecTr': 4.0, 'one draft': 2.9}
    """

    source: str
    setup: str
    unit: str
    columns: tuple[str, ...]
    rows: dict[str, tuple[float, ...]]


def _paper(key: str, entry: Any) -> Paper:
    return Paper(
        key, **check_fields(entry, f"paper {key!r}", {"name": str, "arxiv": str, "setup": str, "findings": dict})
    )


def _figures(key: str, entry: Any) -> Figures:
    kinds = {"source": str, "setup": str, "unit": str, "columns": list, "rows": dict}
    fields = check_fields(entry, f"table {key!r}", kinds)
    for name, row in fields["rows"].items():
        if len(row) != len(fields["columns"]):
            raise ValueError(f"table {key!r}: row {name!r} must have {len(fields['columns'])} numbers, got {row}")
    rows = {name: tuple(row) for name, row in fields["rows"].items()}
    return Figures(**{**fields, "columns": tuple(fields["columns"]), "rows": rows})


_PUBLISHED = check_fields(
    read_packaged("mdsd_study.report", "published.toml"), "published.toml", {"papers": dict, "tables": dict}
)

#: The papers whose claims are judged here.
PAPERS = tuple(_paper(key, entry) for key, entry in _PUBLISHED["papers"].items())

#: Tables of other papers, each by a key of its own.
TABLES = {key: _figures(key, entry) for key, entry in _PUBLISHED["tables"].items()}

#: The one that a notebook shows beside its own.
KHISTI = TABLES["khisti"]
