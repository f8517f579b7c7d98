"""What the benchmarks share: arguments, made-up distributions, the clock, the table that they print, the record."""

import argparse
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mdsd_study.report.provenance import processor

Array = NDArray[np.float64]
Row = dict[str, Any]


def arguments(doc: str, **defaults: Any) -> argparse.ArgumentParser:
    """A parser with an option for each of the defaults, and ``--json FILE``."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--json", metavar="FILE", help="write the tables there too")
    return parser


def softmax(z: Array, temperature: float = 1.0) -> Array:
    """Along the last axis."""
    p = np.exp((z - z.max(axis=-1, keepdims=True)) / temperature)
    return p / p.sum(axis=-1, keepdims=True)


def normal_logits(rng: np.random.Generator, size: Any, noise: float = 0.7) -> tuple[Array, Array]:
    """Logits of target and draft: normal (scale 3), and these with normal noise."""
    logits = 3.0 * rng.normal(size=size)
    return logits, logits + noise * rng.normal(size=size)


def keep_freed_memory() -> None:
    """A process that has freed a large array keeps freed memory instead of handing it back to the system each time.

    One that holds a language model has. Without this, fetching pages anew would cost as much as some of the work.
    """
    np.empty(3 << 20)


def seconds(work: Callable[..., Any]) -> float:
    """Processor time of this thread: other load on the machine falls on it least."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


def write_record(path: str | None, record: Mapping[str, Any]) -> None:
    """Write a record as JSON, with the machine it was made on, if a path is given."""
    if path:
        machine = {"processor": processor(), "python": platform.python_version(), "numpy": np.__version__}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"machine": machine, **record}, file, indent=1)


def print_table(title: str, rows: Sequence[Row], columns: str) -> None:
    """Some columns of the rows, to four digits."""
    print(f"\n{title}\n{pd.DataFrame(rows)[columns.split()].to_string(index=False, na_rep='-', float_format='%.4g')}")
