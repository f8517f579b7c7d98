"""The scorecard: every claim of the two papers with its verdict, computed from the results of this very book.

Beside it stands the verdict from the recorded full run.
"""

from collections.abc import Iterable

from mdsd_study.report.provenance import recorded_line
from mdsd_study.report.published import PAPERS, TABLES, Figures
from mdsd_study.report.recorded_runs import full_results, read_record, recorded_file
from mdsd_study.report.results import Results, read_results
from mdsd_study.report.scorecard.cells import Cell
from mdsd_study.report.scorecard.claim_values import SCORES, recorded_scores
from mdsd_study.report.scorecard.claims import CLAIMS, DIFFERENCE, Claim
from mdsd_study.report.scorecard.conditions import CHANCE
from mdsd_study.report.scorecard.verdicts import ABSENT, CONDITION, UNTESTED, Judged, Judgement, Reader
from mdsd_study.tools.notebooks.execute import Place
from mdsd_study.tools.notebooks.project import Project
from mdsd_study.tools.pages.page_text import page_text

#: What stands at the top where there is a recorded run.
_BESIDE = """Beside it stands the verdict from the same notebooks at full size, which were recorded. They rest on more
or longer texts, and on more pairs, tasks and temperatures; where the two differ, believe the full run.

"""

_MARKS = {1: "for", 0: "open", -1: "against"}

#: The page that shows results which are not a notebook's own.
_SHOWN_BY = {SCORES: "08_decoding_with_trees"}

#: The properties that name a cell first.
_FIRST = ("rule", "scheme", "draft", "task")

#: Cells against a claim are named in its sentence up to this many.
_NAMED = 2


def _number(x: float, points: bool) -> str:
    if points:
        return f"{100 * x:.2f}"
    return f"{x:.4f}" if x == 0 or abs(x) >= 5e-5 else f"{x:.0e}"


def _figure(cell: Cell, points: bool) -> str:
    value = _number(cell.value, points)
    if cell.low == cell.value == cell.high:
        return value
    return f"{value} ({_number(cell.low, points)} to {_number(cell.high, points)})"


def _plain(text: str) -> str:
    """Text that Markdown leaves alone inside a table."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _listed(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _notebook(name: str) -> str:
    shown = _SHOWN_BY.get(name, name)
    return f"[{shown}](notebooks/{shown}.ipynb)"


def _range(part: Judged) -> str:
    points = part.evidence.points
    low, high = (_figure(cell, points) for cell in part.extremes)
    unit = " points" if points else ""
    if len(part.cells) == 1:
        return f"{low}{unit}, one cell"
    for_, met = part.stances.count(1), part.met_by_value
    by_value = "" if met == for_ else f"; by the value alone, whatever the interval, {met} would speak for it"
    return f"{low} up to {high}{unit}; {for_} of {len(part.cells)} cells for it{by_value}"


def _names(cells: Iterable[Cell]) -> list[str]:
    """What tells these cells apart: the properties that differ if they do so, else the whole labels."""
    cells = list(cells)
    shared = [name for name in cells[0].properties if all(name in cell.properties for cell in cells)]
    differ = [name for name in shared if len({cell.properties[name] for cell in cells}) > 1]
    differ.sort(key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))

    def word(name: str, value: str | float) -> str:
        if isinstance(value, str):
            value = f"{value} replacement" if name == "scheme" and value in ("with", "without") else value
            return value if name in _FIRST else f"{name} {value}"
        return f"{name.replace('_', ' ')} = {value:g}"

    short = [", ".join(word(name, cell.properties[name]) for name in differ) for cell in cells]
    return short if differ and len(set(short)) == len(cells) else [cell.label for cell in cells]


def _dropdown(title: str, judgement: Judgement, stances: tuple[int, ...]) -> list[str]:
    """The cells that speak in one of these ways, evidence by evidence; nothing if there are none."""
    rows = []
    for part in judgement.parts:
        named = zip(_names(part.cells), part.cells, part.stances, strict=True) if part.cells else ()
        rows += [
            f"| {part.evidence.source.notebook[:2]} | {_plain(name)} | {_figure(cell, part.evidence.points)} | "
            f"{_MARKS[stance]} |"
            for name, cell, stance in named
            if stance in stances
        ]
    if not rows or len(judgement.cells) == 1:  # one cell stands in the text
        return []
    return [f"`````{{dropdown}} {title}", "| | cell | figure | speaks |", "|:--|:--|--:|:--|", *rows, "`````", ""]


def _condition(judgement: Judgement) -> str:
    """The condition in words, with the cells on both sides and how often chance would separate them as cleanly."""
    for_, undecided, against = judgement.counts
    first, *others = judgement.conditions
    inside = sum(first.met(cell) for cell, stance in judgement.cells if stance == 0)
    also = f" The same cells are separated by: {'; '.join(_plain(one.words()) for one in others)}." if others else ""
    return (
        f" Where that is so lie all {for_} cells for it, none of the {against} against it, and {inside} of the "
        f"{undecided} open ones. This property would separate shuffled cells as cleanly once in "
        f"{1 / first.chance:,.0f}.{also}"
    )


def _verdict(where: str, judgement: Judgement) -> list[str]:
    """A sentence: the verdict, its counts, its condition or the cells against it, and the pairs."""
    verdict = judgement.verdict
    if verdict in (ABSENT, UNTESTED):
        return [f"**{where}: {verdict}.**", ""]
    for_, undecided, against = judgement.counts
    words = f"{verdict}: {_plain(judgement.conditions[0].words())}" if verdict == CONDITION else verdict
    line = f"**{where}: {words}.** Cells for it: {for_}, open: {undecided}, against it: {against}."
    if verdict == CONDITION:
        line += _condition(judgement)
    elif 0 < against <= _NAMED < len(judgement.cells):
        named = [
            f"{_plain(name)}: {_figure(cell, part.evidence.points)}{' points' if part.evidence.points else ''}"
            for part in judgement.parts
            if part.cells
            for name, cell, stance in zip(_names(part.cells), part.cells, part.stances, strict=True)
            if stance < 0
        ]
        line += f" Against it: {'; '.join(named)}."
    pairs = [f"{target} with {_listed(drafts)}" for target, drafts in judgement.pairs.items()]
    line += f" Measured on {'; '.join(pairs)}." if pairs else " Measured on laws, without a pair of models."
    return [line, ""]


def _section(claim: Claim, judgement: Judgement, full: Judgement | None, profile: str) -> list[str]:
    lines = [f"({claim.key})=", f"### {claim.title}", "", f"*Claim*: {claim.statement}.", ""]
    if not claim.evidence:
        return [*lines, f"**{judgement.verdict[0].upper()}{judgement.verdict[1:]}.** *Needed*: {claim.needs}", ""]
    lines += _verdict(f"This book ({profile})", judgement)
    if full is not None:
        lines += _verdict("Full run", full) if full.verdict != ABSENT else ["**Full run: not recorded.**", ""]
    for i, part in enumerate(judgement.parts):
        evidence = part.evidence
        line = f"- *Measured by* {evidence.how} ({_notebook(evidence.source.notebook)})."
        line += f" *Criterion*: {evidence.criterion.words()}."
        line += f" *Found*: {_range(part) if part.cells else 'not in this profile'}."
        if full is not None:
            line += f" *Full run*: {_range(full.parts[i]) if full.parts[i].cells else 'not recorded'}."
        lines.append(line)
    lines += [f"- *Published*: {claim.published}"] if claim.published else []
    lines += [f"- *Difference*: {claim.difference}"] if claim.difference else []
    lines.append("")
    lines += _dropdown(f"All cells of this book: {len(judgement.cells)}", judgement, (1, 0, -1))
    if full is not None:
        rest = sum(full.counts[1:])
        lines += _dropdown(f"Cells of the full run that are open or against it: {rest}", full, (0, -1))
    return lines


def _short(judgement: Judgement, absent: str) -> str:
    """The verdict for a cell of the table."""
    if judgement.verdict in (ABSENT, UNTESTED):
        return absent if judgement.verdict == ABSENT else judgement.verdict
    condition = f": {_plain(judgement.conditions[0].words())}" if judgement.conditions else ""
    return f"**{judgement.verdict}**{condition} ({', '.join(map(str, judgement.counts))})"


def _recorded(claims: Iterable[Claim], read: Reader) -> list[str]:
    """Where and when the full run of each notebook was recorded."""
    lines = ["## Where the full run was recorded", ""]
    for name in dict.fromkeys(evidence.source.notebook for claim in claims for evidence in claim.evidence):
        results = read(name)
        said = "Not recorded, so without a part in the verdicts." if results is None else recorded_line(results.made)
        lines.append(f"- {_notebook(name)}: {said}")
    return [*lines, ""]


def _published(table: Figures) -> list[str]:
    lines = [f"**{table.unit[0].upper()}{table.unit[1:]}**, {table.source} ({table.setup}):", ""]
    lines += ["| | " + " | ".join(table.columns) + " |", "|:--|" + "--:|" * len(table.columns)]
    lines += [f"| {name} | " + " | ".join(f"{x:g}" for x in row) + " |" for name, row in table.rows.items()]
    return [*lines, ""]


def page(claims: tuple[Claim, ...], read: Reader, profile: str, read_full: Reader | None = None) -> str:
    """The page as Markdown, for any list of claims and any source of results, with recorded ones beside them."""
    judged = [(claim, claim.judge(read), None if read_full is None else claim.judge(read_full)) for claim in claims]
    groups = [(paper, paper.name) for paper in PAPERS] + [(None, "Asked by this book itself")]
    head = [f"| claim | {profile} |" + ("" if read_full is None else " full run |")]
    head += ["|:--|:--|" + ("" if read_full is None else ":--|")]
    verdicts, sections = [], []
    for paper, name in groups:
        verdicts += [f"**{name}**", "", *head]
        sections += [f"## {name}", ""]
        sections += [f"{{cite}}`{paper.key}`. Setting of the paper: {paper.setup}.", ""] if paper is not None else []
        for claim, judgement, full in judged:
            if claim.paper is paper:
                verdict = f"| [{claim.title}](#{claim.key}) | {_short(judgement, 'not measured')} |"
                verdicts.append(verdict + ("" if full is None else f" {_short(full, 'not recorded')} |"))
                sections += _section(claim, judgement, full, profile)
        verdicts.append("")
    return page_text(
        "scorecard",
        profile=profile,
        beside="" if read_full is None else _BESIDE,
        verdicts="\n".join(verdicts),
        once=f"{1 / CHANCE:.0f}",
        difference=DIFFERENCE,
        sections="\n".join(sections),
        recorded="" if read_full is None else "\n".join([*_recorded(claims, read_full), ""]),
        published="\n".join(line for table in TABLES.values() for line in _published(table)).rstrip(),
    )


def read_recorded(project: Project, name: str) -> Results | None:
    """The results of the full run of a notebook, or of the recorded run whose table is called so."""
    if name == SCORES:
        record = read_record(name, path=recorded_file(name, project.reference))
        return None if record is None else recorded_scores(record)
    return full_results(name, reference=project.reference)


def render(project: Project, profile: str) -> str:
    """The page as Markdown, from the results that the executed notebooks left."""

    def read(name: str) -> Results | None:
        if profile == "full" and name == SCORES:
            return read_recorded(project, name)
        folder = Place(project.executed(profile), name).results
        return read_results(name, folder=folder) if (folder / f"{name}.json").is_file() else None

    return page(CLAIMS, read, profile, None if profile == "full" else lambda name: read_recorded(project, name))
