"""How many lines of code each part has, and how many it may have: ``[tool.mdsd.budgets]`` in ``pyproject.toml``."""

import ast
import io
import sys
import tokenize
from pathlib import Path

from mdsd_study.tools.notebooks.project import HERE, Project

#: Tokens that make no line of code.
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(source: str) -> int:
    r"""Lines that hold code: no docstrings, comments and blank lines.

    >>> code_lines('def f():\n    "A docstring."\n\n    # a comment\n    return 1  # another\n')
    2
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def sources(project: Project, module: str) -> list[Path]:
    """The files of a module, or of a package and all that is in it."""
    place = project.root.joinpath(*module.split("."))
    return [path for path in (place.with_suffix(".py"), *sorted(place.rglob("*.py"))) if path.is_file()]


def counted(project: Project) -> dict[str, tuple[int, int]]:
    """Part -> its lines of code, and how many it may have."""
    found = {}
    for part, budget in project.declared()["tool"]["mdsd"]["budgets"].items():
        paths = [path for module in budget["modules"] for path in sources(project, module)]
        found[part] = sum(code_lines(path.read_text(encoding="utf-8")) for path in paths), budget["lines"]
    return found


def main() -> int:
    """0 if every part is within its budget, else 1."""
    found = counted(HERE)
    for part, (lines, most) in found.items():
        print(f"{lines:6,} of {most:,} lines of code: {part}" + (" (TOO MANY)" if lines > most else ""))
    return int(any(lines > most for lines, most in found.values()))


if __name__ == "__main__":
    sys.exit(main())
