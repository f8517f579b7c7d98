"""``mdsd bound`` and ``mdsd compare``: acceptance rates of a user's own p and q."""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from mdsd_core.cli.console import Json, console, print_json, reported

File = Annotated[
    Path,
    typer.Argument(help="A .json or .npz file with 'p' and 'q': one row of probabilities each, or one row a context."),
]
Numbers = Annotated[list[int], typer.Option("--n", "-n", min=1, help="Number of drafts; may be given several times.")]


def read_pairs(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Read p and q from a file, each of shape [contexts, V], checked.

    Raises ValueError if the file has no such arrays, or they hold no distributions.
    """
    from mdsd_core.distributions import check_distribution

    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}")
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
    p, q = (check_distribution(np.atleast_2d(np.asarray(arrays[name])), name, ndim=2) for name in "pq")
    if p.shape != q.shape:
        raise ValueError(f"p and q must have one shape, got {p.shape} and {q.shape}")
    return p, q


def bound(
    file: File,
    n: Numbers = [1, 2, 4],  # noqa: B006
    scheme: Annotated[str, typer.Option(help="Law of the drafts; see `mdsd generate --help`.")] = "without_replacement",
    as_json: Json = False,
) -> None:
    """The optimal acceptance rate: what no lossless verifier can exceed."""
    with reported():
        from mdsd_core.decoding.families import scheme_family
        from mdsd_core.transport.subset import optimal_acceptance

        p, q = read_pairs(file)
        family = scheme_family(scheme)
        rows = [
            {"n": k, "rate": float(np.mean([optimal_acceptance(a, b, family(k)).rate for a, b in zip(p, q)]))}
            for k in n
        ]
        if as_json:
            print_json({"scheme": scheme, "contexts": len(p), "optimal": rows})
            return
        table = Table("n", "optimal acceptance rate", title=f"{scheme}, {len(p)} context(s), V = {p.shape[1]}")
        for row in rows:
            table.add_row(str(row["n"]), f"{row['rate']:.6f}")
        console.print(table)


def compare(
    file: File,
    n: Numbers = [2, 4],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Every scheme and verifier on your p and q: acceptance, and how far it stays below the optimum."""
    with reported():
        p, q = read_pairs(file)
        rows = [row for k in n for row in compare_rows(p, q, k)]
        if as_json:
            print_json({"contexts": len(p), "rows": rows})
            return
        table = Table("n", "scheme", "verifier", "acceptance", "optimum", "gap", title=f"{len(p)} context(s)")
        for row in rows:
            exact = "" if row["exact"] else " ±"
            table.add_row(
                str(row["n"]),
                row["scheme"],
                row["verifier"],
                f"{row['acceptance']:.4f}{exact}",
                f"{row['optimum']:.4f}",
                f"{row['optimum'] - row['acceptance']:.4f}",
            )
        console.print(table)
        if not all(row["exact"] for row in rows):
            console.print("±: an estimate; --json gives its interval")


def compare_rows(p: NDArray[np.float64], q: NDArray[np.float64], n: int) -> list[dict[str, Any]]:
    """One row for each scheme with n drafts and each verifier that is lossless for it, means over contexts."""
    from mdsd_core.decoding.families import FAMILIES
    from mdsd_core.transport.subset import optimal_acceptance
    from mdsd_core.verifiers import Estimate, verifier, verifiers_for

    rows = []
    for name, family in FAMILIES.items():
        if name == "spechub" and n != 2:
            continue
        scheme = family(n)
        best = float(np.mean([optimal_acceptance(a, b, scheme).rate for a, b in zip(p, q)]))
        for rule in verifiers_for(scheme):
            values = [verifier(rule).acceptance(a, b, scheme) for a, b in zip(p, q)]
            exact = not any(isinstance(v, Estimate) for v in values)
            low, middle, high = (
                float(np.mean([getattr(v, at) if isinstance(v, Estimate) else v for v in values]))
                for at in ("low", "value", "high")
            )
            row = {"n": n, "scheme": name, "verifier": rule, "acceptance": middle, "optimum": best, "exact": exact}
            rows.append(row if exact else {**row, "low": low, "high": high})
    return rows
