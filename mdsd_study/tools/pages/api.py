"""The reference of the library: every public name with its docstring, one page a part of the package.

A name is public if ``__all__`` of its module or package lists it, or, where there is no such list, if it is defined in
the module and has no leading underscore. Sphinx puts the docstrings in.
"""

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import mdsd_core
from mdsd_study.report.data_files import read_packaged
from mdsd_study.tools.notebooks.project import Project
from mdsd_study.tools.pages.page_text import markdown_table

#: Functions of this name belong to a command, not to the interface.
_COMMAND = "main"


@dataclass(frozen=True)
class Part:
    """One page: a title, a sentence, and the modules that it lists (``package.*``: all modules of a package)."""

    title: str
    words: str
    modules: list[str]


#: By the name of the page.
PARTS = {page: Part(**entry) for page, entry in read_packaged("mdsd_study.tools.pages", "api.toml").items()}


@dataclass(frozen=True)
class Name:
    """A public class or function, and the module that it is listed under."""

    module: str
    name: str
    value: Any

    @property
    def kind(self) -> str:
        """``class`` or ``function``."""
        return "class" if inspect.isclass(self.value) else "function"

    @property
    def summary(self) -> str:
        """The first paragraph of its docstring, without roles."""
        first = (inspect.getdoc(self.value) or "").split("\n\n")[0].replace("\n", " ")
        return re.sub(r":\w+:(`[^`]+`)", r"\1", first)


def public_names(module: str) -> Iterator[Name]:
    """The public classes and functions of a module or package; constants are left out."""
    found = import_module(module)
    own = [name for name, value in vars(found).items() if getattr(value, "__module__", "") == module and name[0] != "_"]
    for name in getattr(found, "__all__", own):
        value = getattr(found, name)
        if name != _COMMAND and (inspect.isclass(value) or inspect.isroutine(inspect.unwrap(value))):
            yield Name(module, name, value)


def _modules(entry: str) -> list[str]:
    """The modules that an entry names: of ``package.*`` its modules, then the packages in it."""
    package = entry.removesuffix(".*")
    if package == entry:
        return [entry]
    inside = sorted(pkgutil.iter_modules(import_module(package).__path__), key=lambda one: one.ispkg)
    return [f"{package}.{one.name}" for one in inside if not one.name.startswith("_")]


def names_of(part: Part) -> list[Name]:
    """The public names of a part, in the order of its modules, each thing once."""
    found: dict[int, Name] = {}
    for module in (name for entry in part.modules for name in _modules(entry)):
        for one in public_names(module):
            found.setdefault(id(one.value), one)
    return list(found.values())


def render_part(page: str) -> Callable[[Project, str], str]:
    """The function that renders one page of the reference."""
    part = PARTS[page]

    def render(project: Project, profile: str) -> str:
        blocks, module = [f"# {part.title}", part.words], ""
        for one in names_of(part):
            if one.module != module:
                module = one.module
                blocks.append(f"## `{module}`\n\n```{{eval-rst}}\n.. automodule:: {module}\n```")
            members = "\n   :members:\n   :member-order: bysource" if one.kind == "class" else ""
            blocks.append(f"```{{eval-rst}}\n.. auto{one.kind}:: {one.module}.{one.name}{members}\n```")
        return "\n\n".join(blocks) + "\n"

    return render


def render(project: Project, profile: str) -> str:
    """The overview: the public interface in one table, and the parts."""
    names = [(f"{{py:obj}}`{one.name}`", one.summary) for one in public_names(mdsd_core.__name__)]
    parts = [(f"[{part.title}]({page.split('/')[1]}.md)", part.words) for page, part in PARTS.items()]
    return (
        "# Reference of the library\n\n"
        "`import mdsd_core` gives the names below, each imported when it is first used; only models and decoding need "
        "torch. Everything else is found in the modules, by part. All arrays are in double precision, token ids are "
        f"integers from 0, and no function changes what it is given.\n\n{markdown_table(['name', 'what'], names)}\n\n"
        f"## By part\n\n{markdown_table(['part', 'what'], parts)}\n"
    )
