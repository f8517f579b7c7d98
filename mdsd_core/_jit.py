"""The one decorator for compiled kernels, with an on-disk cache that cannot be stale.

Numba's own cache looks at the file of the compiled function only: after an edit to a *callee in another file* the
old machine code stays in use. Here the cache lives in a folder named by a hash of every source file of the package
that holds kernels, so any such edit starts a new cache.
"""

import hashlib
from pathlib import Path
from typing import Any

import numba
from numba.core import config as _config

from mdsd_core._paths import cache_dir

config: Any = _config  # its attributes are made at run time


def _source_hash(package: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        text = path.read_bytes()
        if b"_kernel" in text or b"@kernel" in text or b"njit" in text:
            digest.update(str(path.relative_to(package)).encode() + b"\0" + text)
    return digest.hexdigest()[:16]


if not config.CACHE_DIR:  # a reader's own NUMBA_CACHE_DIR is respected
    _folder = cache_dir() / "numba" / _source_hash(Path(__file__).parent)
    try:
        _folder.mkdir(parents=True, exist_ok=True)
        config.CACHE_DIR = str(_folder)  # not the environment: a child process hashes for itself
    except OSError:  # a read-only home: compile in memory, each process anew
        pass

_OPTIONS: dict[str, Any] = {"cache": bool(config.CACHE_DIR), "error_model": "numpy", "nogil": True}

#: Compile a private float64 kernel: no Python objects, IEEE division (no ZeroDivisionError), the GIL released.
kernel: Any = numba.njit(**_OPTIONS)

#: The same, inlined where it is called: for a helper of a few operations in an inner loop.
inline_kernel: Any = numba.njit(inline="always", **_OPTIONS)

#: The same for kernels that are mostly sums: the compiler may reorder additions (several running sums, SIMD), nothing
#: else; NaN and infinity keep their meaning. Results may differ by rounding between machines.
sum_kernel: Any = numba.njit(fastmath={"reassoc", "nsz"}, **_OPTIONS)

#: The same for long chains of products and sums without cancellation: may also fuse a product with a sum.
fused_kernel: Any = numba.njit(fastmath={"contract", "reassoc", "nsz"}, **_OPTIONS)

#: The same for products and sums in a chain that must keep its order: may only fuse a product with a sum.
contract_kernel: Any = numba.njit(fastmath={"contract"}, **_OPTIONS)
