"""The reference of the library: every public name with its docstring, one page a part of the package.

Which names are public is read from the sources (``__all__`` of a package, the functions and classes of a module without
a leading underscore), not by importing them; Sphinx imports the library when it puts the docstrings in.
"""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mdsd_study.report.data_files import read_packaged
from mdsd_study.tools.notebooks.project import Project

#: What an underlined heading, a private or a command's function is not: part of the interface.
_NOT_PUBLIC = {"main"}


@dataclass(frozen=True)
class Part:
    """One page: a title, a sentence, and the paths of the modules that it lists (``folder/*``: all of a package)."""

    title: str
    words: str
    modules: list[str]


#: By the name of the page.
PARTS = {page: Part(**entry) for page, entry in read_packaged("mdsd_study.tools.pages", "api.toml").items()}


@dataclass(frozen=True)
class Name:
    """A public name: where it is found, whether it is a class, the first line of its docstring."""

    module: str
    name: str
    kind: str
    summary: str
    source: Path


def _definitions(path: Path) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def _exported(path: Path) -> tuple[list[str], dict[str, str]]:
    """What a package passes on (``__all__``, or imports of a name as itself), and where each name comes from."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: list[str] = []
    homes: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            homes.update({alias.asname or alias.name: node.module for alias in node.names})
            names += [alias.name for alias in node.names if alias.asname == alias.name]
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            names = [str(name) for name in ast.literal_eval(node.value)]
    return names, homes


def _source(root: Path, module: str) -> Path:
    path = root / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _found(root: Path, module: str, name: str) -> Name | None:
    """The definition behind an exported name, through packages that pass it on; None for a constant."""
    home = module
    for _ in range(4):
        path = _source(root, home)
        node = _definitions(path).get(name)
        if node is not None:
            summary = (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
            summary = re.sub(r":\w+:(`[^`]+`)", r"\1", summary)
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            return Name(module, name, kind, summary, path)
        homes = _exported(path)[1]
        if name not in homes:
            return None
        home = homes[name]
    return None


def _modules(folder: Path) -> list[Path]:
    """The modules of a package, and of the packages in it those that say what is public."""
    paths = [path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]
    return paths + [path for path in sorted(folder.glob("[a-z]*/__init__.py")) if _exported(path)[0]]


def names_of(project: Project, part: Part) -> list[Name]:
    """The public functions and classes of a part, in the order of its modules."""
    found: dict[str, Name] = {}
    for entry in part.modules:
        folder = project.root / entry.removesuffix("/*")
        if entry.endswith("/*"):
            paths = _modules(folder)
        else:
            paths = [folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")]
        for path in paths:
            inside = path.relative_to(project.root).with_suffix("")
            module = ".".join(inside.parts).removesuffix(".__init__")
            public = _exported(path)[0] or [name for name in _definitions(path) if not name.startswith("_")]
            for name in public:
                one = _found(project.root, module, name)
                if one is not None and name not in _NOT_PUBLIC:
                    found.setdefault(f"{one.source}:{name}", one)
    return list(found.values())


def _entry(one: Name) -> str:
    members = "\n   :members:\n   :member-order: bysource" if one.kind == "class" else ""
    return f"```{{eval-rst}}\n.. auto{one.kind}:: {one.module}.{one.name}{members}\n```"


def render_part(page: str) -> Callable[[Project, str], str]:
    """The function that renders one page of the reference."""
    part = PARTS[page]

    def render(project: Project, profile: str) -> str:
        blocks, module = [f"# {part.title}", part.words], ""
        for one in names_of(project, part):
            if one.module != module:
                module = one.module
                blocks.append(f"## `{module}`\n\n```{{eval-rst}}\n.. automodule:: {module}\n```")
            blocks.append(_entry(one))
        return "\n\n".join(blocks) + "\n"

    return render


def render(project: Project, profile: str) -> str:
    """The overview: the public interface in one table, and the parts."""
    package = project.root / "mdsd_core" / "__init__.py"
    rows = []
    for name in _exported(package)[0]:
        one = _found(project.root, "mdsd_core", name)
        assert one is not None, name
        rows.append(f"| {{py:obj}}`{name}` | {one.summary} |")
    parts = [f"| [{part.title}]({page.split('/')[1]}.md) | {part.words} |" for page, part in PARTS.items()]
    return (
        "# Reference of the library\n\n"
        "`import mdsd_core` gives the names below, each imported when it is first used; only models and decoding need "
        "torch. Everything else is found in the modules, by part. All arrays are in double precision, token ids are "
        "integers from 0, and no function changes what it is given.\n\n"
        "| name | what |\n|---|---|\n" + "\n".join(rows) + "\n\n## By part\n\n"
        "| part | what |\n|---|---|\n" + "\n".join(parts) + "\n"
    )
