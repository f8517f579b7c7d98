"""The one decorator for compiled kernels, with an on-disk cache that is neither stale nor mixed up.

Numba's own cache looks at the file of the compiled function only: after an edit to a *callee in another file* the
old machine code stays in use. Here the cache lives in a folder named by the version of Numba and a hash of every source
file of the package that holds kernels, so any such edit starts a new cache.

Numba numbers the files of a function's signatures. Two processes that compile two signatures of it at the same moment
may both take the next number, and then the index of one stands beside the machine code of the other: later calls read
arrays as what they are not, without an error. Here every file has a name that nobody else draws. This changes
internals of Numba: where they are missing, kernels are compiled without a cache, anew in each process.
"""

import uuid
from collections.abc import Callable
from typing import Any

import numba

from mdsd_core.disk_cache import PACKAGE, cache_dir, digest_of_files, sources_in

config: Any = numba.config  # its attributes are made at run time


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


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """Those of the options that this version of Numba has: all of them only save time."""
    return {name: value for name, value in options.items() if hasattr(numba.core.cpu.CPUTargetOptions, name)}


def _name_files_apart(dispatcher: Any) -> None:
    """Give each new file of machine code a name that is in use nowhere. AttributeError if the internals have moved."""
    files = dispatcher._cache._cache_file
    pattern, _ = files._data_name_pattern, files._data_name
    files._data_name = lambda number: pattern.format(number=uuid.uuid4().int)


def _decorator(**options: Any) -> Any:
    """``numba.njit`` with these options and files that are named apart."""
    options = _known({"no_cfunc_wrapper": True, **options})  # nobody calls kernels from C

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(error_model="numpy", nogil=True, **options)
        if config.DISABLE_JIT or not config.CACHE_DIR:
            return compiled(function)
        dispatcher = numba.njit(cache=True, error_model="numpy", nogil=True, **options)(function)
        try:
            _name_files_apart(dispatcher)
        except AttributeError:
            return compiled(function)
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
