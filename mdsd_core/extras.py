"""The extras of the installation: names that are imported when asked for, and what is said if a package is missing."""

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

#: Package -> the extra that brings it, as ``pyproject.toml`` has it.
EXTRAS = {
    "torch": "models",
    "transformers": "models",
    "rich": "cli",
    "typer": "cli",
    "matplotlib": "study",
    "pandas": "study",
    "pyarrow": "study",
    "datasets": "hub",
    "distributed": "distributed",
}


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Say, if an import in this block fails for want of a package, which extra brings it.

    Raises
    ------
    ImportError
        In place of Python's own; any other error passes as it is.

    Examples
    --------
    >>> with needed_for("an example"):
    ...     raise ModuleNotFoundError("No module named 'torch'", name="torch")
    Traceback (most recent call last):
    ImportError: the package torch is needed for an example: `pip install 'mdsd-core[models]'`
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise ImportError(
            f"the package {package} is needed for {what}: `pip install 'mdsd-core[{EXTRAS[package]}]'`", name=package
        ) from None


def names_on_demand(package: str, file: str) -> tuple[list[str], Callable[[str], Any]]:
    """``__all__`` and ``__getattr__`` (PEP 562) of a package whose names are imported when they are first asked for.

    The names are read from the imports that stand below ``if TYPE_CHECKING:`` in the package's file. So they are listed
    once, where type checkers and editors see them too.

    Parameters
    ----------
    package, file : str
        ``__name__`` and ``__file__`` of the package.

    Raises
    ------
    AttributeError, ImportError
        By the second of the two, if there is no such name, or if it needs a package that is missing.

    Examples
    --------
    >>> import mdsd_core
    >>> names, get = names_on_demand("mdsd_core", mdsd_core.__file__)
    >>> names == mdsd_core.__all__, get("SamplingParams") is mdsd_core.SamplingParams
    (True, True)
    """
    (block,) = (node for node in ast.parse(Path(file).read_text(encoding="utf-8")).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: str(node.module) for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with needed_for(f"{package}.{name}"):
            value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return sorted(homes), get
