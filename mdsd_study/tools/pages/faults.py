"""The catalogue of faults as a checklist: each kind with the tests that make it impossible here."""

import ast
import re
from typing import Any

from mdsd_study.report.data_files import read_packaged
from mdsd_study.tools.notebooks.project import Project
from mdsd_study.tools.pages.page_text import page_text

#: The table that says where each fault is tested, below ``tests/``.
TABLE = "core/verifiers/test_faults.py"


def places(project: Project) -> dict[str, str]:
    """Fault id -> where it is tested (as the table in ``tests/`` has it), read without importing the tests."""
    tree = ast.parse((project.root / "tests" / TABLE).read_text(encoding="utf-8"))
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    values: dict[str, Any] = {ast.unparse(node.targets[0]): node.value for node in assigned}
    table = values["FAULTS"]
    return {ast.literal_eval(key): _text(place, values) for key, place in zip(table.keys, table.values, strict=True)}


def _text(node: ast.expr, values: dict[str, Any]) -> str:
    if isinstance(node, ast.BinOp):
        return _text(node.left, values) + _text(node.right, values)
    return _text(values[node.id], values) if isinstance(node, ast.Name) else str(ast.literal_eval(node))


def tests_of(project: Project, fault: str, place: str) -> list[str]:
    """The tests of one fault as ``file::name``; only the file where it names the fault elsewhere than in a test."""
    if place.startswith("out of scope"):
        return []
    if not place.endswith(".py"):
        file, _, name = place.rpartition("::")
        return [f"{file or TABLE}::{name if file else 'test_' + name}"]
    found = []
    for line in (project.root / "tests" / place).read_text(encoding="utf-8").splitlines():
        match = re.match(r"\s*def (test_\w+)\(.*?(?:#(.*))?$", line)
        if match and fault in [*match[1].split("_"), *re.findall(r"\w+", match[2] or "")]:
            found.append(f"{place}::{match[1]}")
    return found or [place]


def read_groups() -> list[dict[str, Any]]:
    """The entries of ``faults.toml``."""
    return list(read_packaged("mdsd_study.tools.pages", "faults.toml")["group"])


def render(project: Project, profile: str) -> str:
    """The page as Markdown."""
    where = places(project)
    parts = []
    for group in read_groups():
        parts.append(f"## {group['title']}\n\n{group['why']}")
        for fault in group["fault"]:
            tests = sorted({test for name in fault["ids"] for test in tests_of(project, name, where[name])})
            seen = f" [Seen here]({fault['where']})." if "where" in fault else ""
            listed = "".join(f"\n  - `{test}`" for test in tests)
            parts.append(f"- {fault['check']}\n  *Smallest case:* {fault['example']}.{seen}{listed}")
    return page_text("faults", faults="\n\n".join(parts))
