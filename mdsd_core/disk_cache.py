"""What can always be made again (kernels, converted models, sweeps): where it is kept, and what it is named by."""

import ast
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

#: The folder of this package.
PACKAGE = Path(__file__).parent

#: Endings of the files that can change what the code does.
_ENDINGS = (".py", ".json", ".toml", ".npz")


def cache_dir() -> Path:
    """The cache folder: ``$MDSD_CACHE``, else ``mdsd`` under the user's cache folder (not created here).

    >>> cache_dir().is_absolute()
    True
    """
    chosen = os.environ.get("MDSD_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "mdsd"


def digest_of_files(root: Path, paths: Iterable[Path]) -> str:
    """SHA-256 over names (relative to `root`) and bytes.

    >>> len(digest_of_files(PACKAGE, sources_in(PACKAGE)))
    64
    """
    digest = hashlib.sha256()
    for path in sorted(set(paths)):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def sources_in(folder: Path) -> list[Path]:
    """Code and data files below a folder.

    >>> PACKAGE / "disk_cache.py" in sources_in(PACKAGE)
    True
    """
    return [path for path in folder.rglob("*") if path.suffix in _ENDINGS and "__pycache__" not in path.parts]


def package_digest() -> str:
    """A digest of the whole source of the package.

    >>> package_digest() == package_digest()
    True
    """
    return digest_of_files(PACKAGE, sources_in(PACKAGE))


def imported_by(*modules: str) -> list[Path]:
    """The files of these modules and of all modules of this distribution that they import, at any depth.

    They are read, not run, so that imports inside functions count too. The ``__init__.py`` of a package counts where
    something is imported from the package itself, not where one of its modules is.

    >>> [path.name for path in imported_by("mdsd_core._sums")]
    ['_jit.py', '_sums.py', 'disk_cache.py']
    """
    found: set[Path] = set()
    left = list(modules)
    while left:
        path = _file_of(left.pop())
        if path is not None and path not in found:
            found.add(path)
            left += imports_of(path)
    return sorted(found)


def _file_of(module: str) -> Path | None:
    """Where a module of this package, or of one beside it that is built on it, is; None for others, and for names."""
    name, *inside = module.split(".")
    place = PACKAGE.parent.joinpath(name, *inside)
    files = (place.with_suffix(".py"), place / "__init__.py") if name.startswith("mdsd_") and inside else ()
    return next((path for path in files if path.is_file()), None)


def imports_of(path: Path) -> Iterator[str]:
    """The modules that a file imports anywhere, and what it takes from them.

    >>> list(imports_of(PACKAGE / "_sums.py"))
    ['mdsd_core._jit', 'mdsd_core._jit.inline_kernel']
    """
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
