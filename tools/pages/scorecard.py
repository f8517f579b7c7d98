"""The scorecard: every claim of the two papers with its verdict, computed from the results of this very book.

Beside it stands the verdict from the recorded full run.
"""

from mdsd_core.study.claims import CLAIMS, Claim
from mdsd_core.study.provenance import recorded_line
from mdsd_core.study.published import PAPERS, TABLES, Figures
from mdsd_core.study.records import full_results
from mdsd_core.study.results import Results, read_results
from mdsd_core.study.sources import Cell
from mdsd_core.study.verdicts import ABSENT, Judged, Judgement, Reader
from tools.execute import Place
from tools.project import Project

_INTRODUCTION = """(scorecard)=
# Scorecard

What two papers claim, and what was found here. **No verdict on this page is written by hand.** Each claim names the
results it is judged by and a criterion; when the book is built, the verdict is computed from the values and intervals
of this book's own notebooks (profile `{profile}`), and once more from those of the same notebooks at full size, which
were recorded with machine, commit and date (see [the execution record](execution.md)):

- **holds**: no cell speaks against it, more than half speak for it;
- **holds with a condition**: more cells speak for it than against; the others are listed;
- **not decided here**: no interval is clear of its limit;
- **does not hold here**: all else;
- **not measured in this profile**: its notebook has no results here.

The full run rests on more or longer texts, and on more pairs, tasks and temperatures; where it differs, believe it.

The models here are far smaller than the papers', and the drafts are made of the target itself. A verdict is therefore
about the *statement*, not about anybody's numbers, and nothing was tuned to match one.
"""

_MARKS = {1: "for", 0: "open", -1: "against"}

#: Exceptions are listed one by one up to this many.
_LISTED = 8


def _number(x: float) -> str:
    return f"{x:.4f}" if x == 0 or abs(x) >= 5e-5 else f"{x:.0e}"


def _figure(cell: Cell) -> str:
    if cell.low == cell.value == cell.high:
        return _number(cell.value)
    return f"{_number(cell.value)} ({_number(cell.low)} to {_number(cell.high)})"


def _plain(text: str) -> str:
    """Text that Markdown leaves alone inside a table."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _range(part: Judged) -> str:
    low, high = part.extremes
    return _figure(low) if len(part.cells) == 1 else f"{_figure(low)} up to {_figure(high)}"


def _cells(part: Judged) -> list[str]:
    notebook = part.evidence.source.notebook
    lines = [
        f"`````{{dropdown}} The {len(part.cells)} cells from {notebook}",
        "| cell | figure | speaks |",
        "|:--|--:|:--|",
    ]
    lines += [
        f"| {_plain(cell.label)} | {_figure(cell)} | {_MARKS[stance]} |"
        for cell, stance in zip(part.cells, part.stances, strict=True)
    ]
    return [*lines, "`````", ""]


def _verdict(judgement: Judgement) -> list[str]:
    for_, undecided, against = judgement.counts
    told = "" if judgement.verdict == ABSENT else f" Cells for it: {for_}, open: {undecided}, against it: {against}."
    lines = [f"**{judgement.verdict[0].upper()}{judgement.verdict[1:]}.**{told}", ""]
    exceptions = judgement.exceptions
    if exceptions and for_:
        named = "; ".join(f"{_plain(cell.label)}: {_figure(cell)}" for cell in exceptions[:_LISTED])
        rest = f"; and {len(exceptions) - _LISTED} more" if len(exceptions) > _LISTED else ""
        lines += [f"Open or against it: {named}{rest}.", ""]
    return lines


def _recorded(judgement: Judgement, read: Reader) -> list[str]:
    """The verdict of the full run, with what each evidence found there and where it was recorded."""
    if judgement.verdict == ABSENT:
        return ["*Full run*: none is recorded.", ""]
    lines = ["*Full run*:", *_verdict(judgement)]
    for part in judgement.parts:
        results = read(part.evidence.source.notebook)
        if results is not None and part.cells:
            lines += [f"- {results.name}: {_range(part)} ({len(part.cells)} cells). {recorded_line(results.made)}"]
    missing = dict.fromkeys(part.evidence.source.notebook for part in judgement.parts if not part.cells)
    if missing:
        lines += [f"- Not recorded, so without a part in this verdict: {', '.join(missing)}."]
    return [*lines, ""]


def _section(claim: Claim, judgement: Judgement, full: list[str]) -> list[str]:
    lines = [f"({claim.key})=", f"### {claim.statement[0].upper()}{claim.statement[1:]}", "", *_verdict(judgement)]
    for part in judgement.parts:
        notebook = part.evidence.source.notebook
        if not part.cells:
            lines += [f"- *Measured by* {part.evidence.how}: {ABSENT} (`{notebook}`).", ""]
            continue
        lines += [
            f"- *Measured by* {part.evidence.how} ([{notebook}](notebooks/{notebook}.ipynb)). "
            f"*Criterion*: {part.evidence.criterion.words()}. *Found*: {_range(part)}.",
            "",
        ]
    if not judgement.parts:
        lines += [f"- {ABSENT[0].upper()}{ABSENT[1:]}: no notebook of this book measures it.", ""]
    if claim.published:
        lines += [f"- *Published*: {claim.published}", ""]
    lines += [f"- *Difference*: {claim.difference}", "", *full]
    for part in judgement.parts:
        if part.cells:
            lines += _cells(part)
    return lines


def _published(table: Figures) -> list[str]:
    lines = [f"**{table.unit[0].upper()}{table.unit[1:]}**, {table.source} ({table.setup}):", ""]
    lines += ["| | " + " | ".join(table.columns) + " |", "|:--|" + "--:|" * len(table.columns)]
    lines += [f"| {name} | " + " | ".join(f"{x:g}" for x in row) + " |" for name, row in table.rows.items()]
    return [*lines, ""]


def page(claims: tuple[Claim, ...], read: Reader, profile: str, read_full: Reader | None = None) -> str:
    """The page as Markdown, for any list of claims and any source of results, with recorded ones beside them."""
    judged = [(claim, claim.judge(read), None if read_full is None else claim.judge(read_full)) for claim in claims]
    more = ("", "") if read_full is None else (" at full size, recorded |", ":--|")
    lines = [_INTRODUCTION.format(profile=profile), "## All claims", ""]
    lines += [f"| claim | paper | here ({profile}) |{more[0]}", f"|:--|:--|:--|{more[1]}"]
    lines += [
        f"| [{claim.statement}](#{claim.key}) | {{cite:t}}`{claim.paper.key}` | **{judgement.verdict}** |"
        + ("" if full is None else f" **{full.verdict.replace(ABSENT, 'not recorded')}** |")
        for claim, judgement, full in judged
    ]
    for paper in PAPERS:
        lines += ["", f"## {paper.name}", "", f"{{cite}}`{paper.key}`. Setting of the paper: {paper.setup}.", ""]
        for claim, judgement, full in judged:
            if claim.paper is paper:
                beside = [] if full is None or read_full is None else _recorded(full, read_full)
                lines += _section(claim, judgement, beside)
    lines += [
        "## Other published figures",
        "",
        "To set beside the tables of this book: other models, other texts, other trees, so only the order of the rules "
        "and the size of the steps can be compared.",
        "",
    ]
    for table in TABLES:
        lines += _published(table)
    return "\n".join(lines).rstrip() + "\n"


def render(project: Project, profile: str) -> str:
    """The page as Markdown, from the results that the executed notebooks left."""

    def read(name: str) -> Results | None:
        folder = Place(project.executed(profile), name).results
        return read_results(name, folder=folder) if (folder / f"{name}.json").is_file() else None

    def read_full(name: str) -> Results | None:
        return full_results(name, reference=project.reference)

    return page(CLAIMS, read, profile, None if profile == "full" else read_full)
