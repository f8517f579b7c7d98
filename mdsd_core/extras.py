"""The extras of the installation, and the one sentence for a package that only an extra brings."""

from collections.abc import Iterator
from contextlib import contextmanager

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
