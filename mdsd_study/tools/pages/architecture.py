"""The page on the architecture: a drawing of which part of the library uses which, made from the imports themselves."""

import ast
from pathlib import Path

from mdsd_study.tools.notebooks.project import Project

#: Where each part stands in the drawing: column from the left, row from the bottom. A new part needs a place.
PLACES = {
    "randomness": (0, 0),
    "distributions": (1, 0),
    "models": (2, 0),
    "schemes": (1, 1),
    "transport": (1, 2),
    "verifiers": (1, 3),
    "trees": (1, 4),
    "statistics": (0, 4),
    "decoding": (2, 5),
    "report": (0, 5),
    "measure": (1, 6),
    "analysis": (1, 7),
    "cli": (0, 8),
    "benchmarks": (2, 8),
    "tools": (1, 9),
}
#: Those that need torch.
HEAVY = {"models", "decoding", "measure", "analysis", "cli", "benchmarks", "tools"}

#: What each part is for.
WORDS = {
    "randomness": "uniforms, choices",
    "distributions": "logits to p and q",
    "schemes": "laws of the drafts",
    "transport": "the best possible",
    "verifiers": "rules for one node",
    "trees": "shapes, tree rules",
    "models": "pairs, texts by name",
    "decoding": "cache, drafters, loop",
    "statistics": "intervals",
    "report": "results, scorecard",
    "measure": "sweeps",
    "analysis": "what notebooks ask",
    "cli": "the command mdsd",
    "benchmarks": "speed",
    "tools": "from it all, a book",
}


def imports(project: Project) -> dict[str, set[str]]:
    """Part -> the parts that it imports anywhere in its sources; modules with an underscore belong to nobody."""
    paths = [path for name in ("mdsd_core", "mdsd_study") for path in sorted((project.root / name).rglob("*.py"))]
    found: dict[str, set[str]] = {}
    for path in paths:
        part = path.relative_to(project.root).parts[1].removesuffix(".py")
        if part.startswith("_"):
            continue
        used = found.setdefault(part, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                package, *inside = node.module.split(".")
                if package in ("mdsd_core", "mdsd_study"):
                    used.update(inside[:1] or (alias.name for alias in node.names))
    return {part: {name for name in used if name in found and name != part} for part, used in found.items()}


def down(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    """The imports of parts that stand lower, without those that follow from others (A uses B, B uses C: not A to C)."""
    below = {part: {x for x in used if PLACES[x][1] < PLACES[part][1]} for part, used in uses.items()}

    def reach(part: str) -> set[str]:
        return set().union(*({name} | reach(name) for name in below[part]))

    return {
        part: {name for name in used if not any(name in reach(other) for other in used - {name})}
        for part, used in below.items()
    }


def up(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    """The imports of parts that stand no lower: there are to be none."""
    return {part: {x for x in used if PLACES[x][1] >= PLACES[part][1]} for part, used in uses.items()}


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x0, y0), (x1, y1) = start, end
    towards = 26 if y1 > y0 else -26
    start_at, end_at = (max(-80.0, min(80.0, share * (x1 - x0))) for share in (0.3, 0.25))
    ends = x0 + start_at, y0 + towards, x1 - end_at, y1 - towards
    return (
        '<line x1="{:.0f}" y1="{:.0f}" x2="{:.0f}" y2="{:.0f}"'.format(*ends)
        + ' stroke="#555555" stroke-width="1.6" marker-end="url(#to)"/>'
    )


def draw(uses: dict[str, set[str]]) -> str:
    """The drawing as SVG."""
    step, rows = 88, 1 + max(row for _, row in PLACES.values())
    width, height = 760, step * rows
    place = {part: (130 + 250 * PLACES[part][0], height - step * (PLACES[part][1] + 0.5)) for part in uses}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="DejaVu Sans, Arial, sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        '<defs><marker id="to" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="9" markerHeight="9" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#555555"/></marker></defs>',
    ]
    lines += [_arrow(place[part], place[name]) for part, used in down(uses).items() for name in sorted(used)]
    for part, (x, y) in place.items():
        fill, edge = ("#fff4e0", "#d55e00") if part in HEAVY else ("#e6f2fa", "#0072b2")
        lines += [
            f'<rect x="{x - 88:.0f}" y="{y - 26:.0f}" width="176" height="52" rx="7" fill="{fill}" stroke="{edge}" '
            'stroke-width="2"/>',
            f'<text x="{x:.0f}" y="{y - 4:.0f}" text-anchor="middle" font-size="17" font-weight="bold">{part}</text>',
            f'<text x="{x:.0f}" y="{y + 16:.0f}" text-anchor="middle" font-size="14">{WORDS[part]}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def render(project: Project, profile: str) -> str:
    """The page: the text beside this module, with the table of imports; the drawing is written into the stage."""
    uses = imports(project)
    drawing = project.stage / "drawings" / "architecture.svg"
    drawing.parent.mkdir(exist_ok=True)
    drawing.write_text(draw(uses), encoding="utf-8")
    order = sorted(uses, key=lambda part: (PLACES[part][1], PLACES[part][0]))
    rows = [f"| `{part}` | {', '.join(f'`{name}`' for name in sorted(uses[part])) or '–'} |" for part in order]
    text = Path(__file__).with_name("architecture.md").read_text(encoding="utf-8")
    return text.replace("[[table of imports]]", "| part | uses |\n|---|---|\n" + "\n".join(rows))
