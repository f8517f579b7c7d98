"""What can always be made again (kernels, models, sweeps): where it is kept, named by what, and how it is written."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


def key_of(*content: Any) -> str:
    """The name of what is kept: a digest of all that it depends on, ready for JSON.

    >>> key_of({"a": 1, "b": (2, 3)}) == key_of({"b": [2, 3], "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@contextmanager
def in_one_step(path: Path) -> Iterator[Path]:
    """Where to write what is to stand at `path` once it is complete: a reader never sees half a file.

    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "a" / "b.txt"
    >>> with in_one_step(path) as part:
    ...     _ = part.write_text("all of it")
    ...     path.exists()
    False
    >>> path.read_text()
    'all of it'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{os.getpid()}-{path.name}")  # the ending tells some writers the format
    yield part
    part.replace(path)


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
