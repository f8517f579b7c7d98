"""The architecture page: rooms as ``pyproject.toml`` declares them, arrows from the imports, a line for every file."""

import ast
from pathlib import Path

from mdsd_study.report.provenance import imports_of
from mdsd_study.tools.check.code_lines import counted, sources
from mdsd_study.tools.notebooks.project import Project
from mdsd_study.tools.pages.page_text import markdown_table, page_text

#: What is drawn of a room: its column from the left, and what it is for. Those that serve all others are not drawn.
ROOMS = {
    "randomness": (0, "uniforms, choices"),
    "distributions": (1, "logits to p and q"),
    "schemes": (1, "laws of the drafts"),
    "transport": (1, "the best possible"),
    "verifiers": (1, "rules for one node"),
    "trees": (1, "shapes, tree rules"),
    "models": (2, "pairs, texts by name"),
    "decoding": (2, "cache, drafters, loop"),
    "statistics": (0, "intervals"),
    "report": (0, "results, scorecard"),
    "measure": (1, "sweeps"),
    "analysis": (1, "what notebooks ask"),
    "cli": (0, "the command mdsd"),
    "benchmarks": (2, "speed"),
    "tools": (1, "from it all, a book"),
}

#: What makes a room need torch.
_TORCH = {"torch", "transformers"}


def layers(project: Project) -> list[list[str]]:
    """The rooms, a list a row from the ground up: the layers of ``pyproject.toml``."""
    wall = {contract["id"]: contract for contract in project.declared()["tool"]["importlinter"]["contracts"]}
    return [row.split(" | ") for row in reversed(wall["study"]["layers"] + wall["core"]["layers"])]


def imports(project: Project) -> dict[str, set[str]]:
    """Room -> the rooms that it imports anywhere in its sources, and torch."""
    uses: dict[str, set[str]] = {room: set() for row in layers(project) for room in row}
    for room, used in uses.items():
        for path in _files(project, room):
            for package, *inside in (name.split(".") for name in imports_of(path)):
                used.update(inside[:1] if package in ("mdsd_core", "mdsd_study") else {package} & _TORCH)
        used &= uses.keys() - {room} | _TORCH
    return uses


def _files(project: Project, room: str) -> list[Path]:
    return sources(project, f"mdsd_core.{room}") + sources(project, f"mdsd_study.{room}")


def reached(uses: dict[str, set[str]], room: str) -> set[str]:
    """What a room imports, directly or through others."""
    return uses.get(room, set()).union(*(reached(uses, name) for name in uses.get(room, ())))


def down(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    """The imports of rooms, without those that follow from others (A uses B, B uses C: not A to C)."""
    return {
        room: {name for name in used if name in uses and not any(name in reached(uses, other) for other in used)}
        for room, used in uses.items()
    }


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x0, y0), (x1, y1) = start, end
    towards = 26 if y1 > y0 else -26
    start_at, end_at = (max(-80.0, min(80.0, share * (x1 - x0))) for share in (0.3, 0.25))
    ends = x0 + start_at, y0 + towards, x1 - end_at, y1 - towards
    return (
        '<line x1="{:.0f}" y1="{:.0f}" x2="{:.0f}" y2="{:.0f}"'.format(*ends)
        + ' stroke="#555555" stroke-width="1.6" marker-end="url(#to)"/>'
    )


def draw(uses: dict[str, set[str]], rows: list[list[str]]) -> str:
    """The drawing as SVG."""
    drawn = {room: used & ROOMS.keys() for room, used in uses.items() if room in ROOMS}
    rows = [row for row in rows if ROOMS.keys() & row]
    step, width, height = 72, 760, 72 * len(rows)
    heights = {room: height - step * (row + 0.5) for row, rooms in enumerate(rows) for room in rooms}
    place = {room: (130 + 250 * ROOMS[room][0], y) for room, y in heights.items()}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="DejaVu Sans, Arial, sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        '<defs><marker id="to" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="9" markerHeight="9" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#555555"/></marker></defs>',
    ]
    lines += [_arrow(place[room], place[name]) for room, used in down(drawn).items() for name in sorted(used)]
    for room, (x, y) in place.items():
        fill, edge = ("#fff4e0", "#d55e00") if reached(uses, room) & _TORCH else ("#e6f2fa", "#0072b2")
        lines += [
            f'<rect x="{x - 88:.0f}" y="{y - 24:.0f}" width="176" height="48" rx="7" fill="{fill}" stroke="{edge}" '
            'stroke-width="2"/>',
            f'<text x="{x:.0f}" y="{y - 3:.0f}" text-anchor="middle" font-size="17" font-weight="bold">{room}</text>',
            f'<text x="{x:.0f}" y="{y + 16:.0f}" text-anchor="middle" font-size="14">{ROOMS[room][1]}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def index(project: Project, row: list[str]) -> str:
    """A folded list of the files of rooms, each with the first words of its docstring."""
    rows = []
    for path in [path for room in row for path in _files(project, room)]:
        words = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]
        rows.append(f"`{path.relative_to(project.root).as_posix()}`\n: {' '.join(words.split())}\n")
    return f"```{{dropdown}} {', '.join(row)}\n" + "\n".join(rows) + "```\n"


def render(project: Project, profile: str) -> str:
    """The page: the text beside this module, with what is read from the sources; the drawing goes into the stage."""
    rows, uses = layers(project), imports(project)
    drawing = project.stage / "drawings" / "architecture.svg"
    drawing.parent.mkdir(exist_ok=True)
    drawing.write_text(draw(uses, rows), encoding="utf-8")
    budgets = [(part, f"{lines:,}", f"{most:,}") for part, (lines, most) in counted(project).items()]
    files = "\n".join(index(project, row) for row in rows)
    return page_text("architecture", files=files, budgets=markdown_table(["part", "lines", "budget"], budgets))
