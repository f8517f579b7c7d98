"""What the benchmarks share: their arguments, softmax, the clock, the table that they print, the record of a run."""

import argparse
import json
import platform
import time

import numpy as np

from mdsd_study.report.provenance import processor


def arguments(doc, **defaults):
    """A parser with an option for each of the defaults, and ``--json FILE``."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--json", metavar="FILE", help="write the tables there too")
    return parser


def softmax(z, temperature=1.0):
    """Along the last axis."""
    p = np.exp((z - z.max(axis=-1, keepdims=True)) / temperature)
    return p / p.sum(axis=-1, keepdims=True)


def seconds(work):
    """Processor time of this thread: other load on the machine falls on it least."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


def machine():
    """Where a record was made."""
    return {"processor": processor(), "python": platform.python_version()}


def write_record(path, record):
    """Write a record as JSON, if a path is given."""
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)


def print_table(head, rows, forms):
    """Rows of dictionaries, a column for each key of forms."""
    titles = zip(head, forms.values(), strict=True)
    print("".join(format(title, ("<" if "<" in form else ">") + width(form)) for title, form in titles))
    for row in rows:
        print("".join(cell(row.get(key), form) for key, form in forms.items()))


def width(form):
    """The width of a form such as "9.2f"."""
    return form.lstrip("<>").split(".")[0].rstrip("d")


def cell(value, form):
    """A value in a form, or a dash as wide."""
    return format(value, form) if value is not None else format("-", ">" + width(form))
