"""``mdsd bound``: the optimal acceptance rate of a user's own p and q."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from mdsd_study.cli.console import Json, console, print_json, reported

File = Annotated[
    Path,
    typer.Argument(help="A .json or .npz file with 'p' and 'q': one row of probabilities each, or one row a context."),
]
Numbers = Annotated[list[int], typer.Option("--n", "-n", min=1, help="Number of drafts; may be given several times.")]


def read_pairs(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64], dict[str, float]]:
    """Read p and q from a file, each of shape [contexts, V], checked; and how far their sums were from 1, at most.

    Raises ValueError if the file has no such arrays, or they hold no distributions.
    """
    from mdsd_core.distributions import check_distribution, sum_correction

    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    elif path.suffix == ".json":
        try:
            arrays = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} is no valid JSON: {error}") from error
    else:
        raise ValueError(f"the file must be .json or .npz, got {path.name!r}")
    missing = [name for name in "pq" if not isinstance(arrays, dict) or name not in arrays]
    if missing:
        raise ValueError(f"{path} must hold 'p' and 'q', {missing[0]!r} is missing")
    given = {name: np.atleast_2d(np.asarray(arrays[name])) for name in "pq"}
    p, q = (check_distribution(rows, name, ndim=2) for name, rows in given.items())
    if p.shape != q.shape:
        raise ValueError(f"p and q must have one shape, got {p.shape} and {q.shape}")
    return p, q, {name: sum_correction(rows, name) for name, rows in given.items()}


#: Numbers in a file, and drafts, up to which plain Python is as fast as kernels that are already compiled.
_FEW, _DRAFTS = 16, 4


def compiled_for(p: NDArray[np.float64], drafts: Sequence[int]) -> bool:
    """Whether kernels are compiled; for a handful of numbers they run as plain Python, with the same results.

    Compiling takes most of a minute, once on a machine; without it a file of three tokens takes a second. Kernels that
    are loaded already stay as they are. To be called before anything that has kernels is imported.
    """
    import numba

    config: Any = numba.config  # its attributes are made at run time
    if p.size <= _FEW and max(drafts) <= _DRAFTS and "mdsd_core._jit" not in sys.modules:
        config.DISABLE_JIT = 1
    return not config.DISABLE_JIT


def print_correction(correction: dict[str, float]) -> None:
    """Say how far the sums were from 1, where that is more than the rounding of float64."""
    from mdsd_core.distributions import SUM_TOLERANCE

    if max(correction.values()) > SUM_TOLERANCE["float64"]:
        sizes = ", ".join(f"{name} {size:.1e}" for name, size in correction.items())
        console.print(f"Rows were divided by their sums, which were off 1 by at most: {sizes}.")


def bound(
    file: File,
    n: Numbers = [1, 2, 4],  # noqa: B006
    scheme: Annotated[str, typer.Option(help="Law of the drafts; see `mdsd generate --help`.")] = "without_replacement",
    as_json: Json = False,
) -> None:
    """The optimal acceptance rate: what no lossless verifier can exceed."""
    with reported():
        p, q, correction = read_pairs(file)
        compiled_for(p, n)
        from mdsd_core.schemes.names import scheme_family
        from mdsd_core.transport.subset import optimal_acceptance

        family = scheme_family(scheme)
        rows = [
            {"n": k, "rate": float(np.mean([optimal_acceptance(a, b, family(k)).rate for a, b in zip(p, q)]))}
            for k in n
        ]
        if as_json:
            print_json({"scheme": scheme, "contexts": len(p), "correction": correction, "optimal": rows})
            return
        table = Table("n", "optimal acceptance rate", title=f"{scheme}, {len(p)} context(s), V = {p.shape[1]}")
        for row in rows:
            table.add_row(str(row["n"]), f"{row['rate']:.6f}")
        console.print(table)
        print_correction(correction)
