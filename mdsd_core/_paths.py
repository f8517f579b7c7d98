"""Where this package keeps what it can always make again (compiled kernels, converted models)."""

import os
from pathlib import Path


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
