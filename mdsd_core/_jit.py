"""The one decorator for compiled kernels, with an on-disk cache that is neither stale nor mixed up.

Numba's own cache looks at the file of the compiled function only: after an edit to a *callee in another file* the
old machine code stays in use. Here the cache lives in a folder named by the version of Numba and a hash of every source
file of the package that holds kernels, so any such edit starts a new cache.

Numba numbers the files of a function's signatures. Two processes that compile two signatures of it at the same moment
may both take the next number, and then the index of one stands beside the machine code of the other: later calls read
arrays as what they are not, without an error. Here every file has a name that nobody else draws.
"""

import uuid
from collections.abc import Callable
from typing import Any

import numba
from numba.core import caching as _caching
from numba.core import config as _config

from mdsd_core.disk_cache import PACKAGE, cache_dir, digest_of_files, sources_in

config: Any = _config  # its attributes are made at run time


def _source_hash() -> str:
    words = (b"_kernel", b"@kernel", b"njit")
    compiled = [path for path in sources_in(PACKAGE) if any(word in path.read_bytes() for word in words)]
    return digest_of_files(PACKAGE, compiled)[:16]


if not config.CACHE_DIR:  # a reader's own NUMBA_CACHE_DIR is respected
    _folder = cache_dir() / "numba" / f"{numba.__version__}-{_source_hash()}"
    try:
        _folder.mkdir(parents=True, exist_ok=True)
        config.CACHE_DIR = str(_folder)  # not the environment: a child process hashes for itself
    except OSError:  # a read-only home: compile in memory, each process anew
        pass


class _OwnFiles(_caching.IndexDataCacheFile):
    """Numba's cache files of one function; a new file of machine code never takes a name that is in use elsewhere."""

    def _data_name(self, number: int) -> str:
        return str(self._data_name_pattern.format(number=uuid.uuid4().int))


def _decorator(**options: Any) -> Any:
    """``numba.njit`` with these options and :class:`_OwnFiles`."""
    options["no_cfunc_wrapper"] = True  # nobody calls kernels from C
    compiled = numba.njit(cache=bool(config.CACHE_DIR), error_model="numpy", nogil=True, **options)

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = compiled(function)
        cache = getattr(dispatcher, "_cache", None)  # no dispatcher if compilation is turned off
        if isinstance(cache, _caching.Cache):
            cache._cache_file = _OwnFiles(
                cache.cache_path, cache._impl.filename_base, cache._impl.locator.get_source_stamp()
            )
        return dispatcher

    return decorate


#: Compile a private float64 kernel: no Python objects, IEEE division (no ZeroDivisionError), the GIL released.
kernel = _decorator()

#: The same, inlined where it is called: for a helper of a few operations in an inner loop.
inline_kernel = _decorator(inline="always")

#: The same for kernels that are mostly sums: the compiler may reorder additions (several running sums, SIMD), nothing
#: else; NaN and infinity keep their meaning. Results may differ by rounding between machines.
sum_kernel = _decorator(fastmath={"reassoc", "nsz"})

#: The same for long chains of products and sums without cancellation: may also fuse a product with a sum.
fused_kernel = _decorator(fastmath={"contract", "reassoc", "nsz"})

#: The same for products and sums in a chain that must keep its order: may only fuse a product with a sum.
contract_kernel = _decorator(fastmath={"contract"})

#: As `fused_kernel`, for kernels that only kernels call and that make no arrays. They have no entry from Python, which
#: saves a quarter of their compilation, and count no references, which for tuples of many arrays saves up to a third of
#: their running time.
inner_kernel = _decorator(fastmath={"contract", "reassoc", "nsz"}, no_cpython_wrapper=True, _nrt=False)

#: The same with an entry from Python.
outer_kernel = _decorator(fastmath={"contract", "reassoc", "nsz"}, _nrt=False)
