"""Checks of a finished plan for the tests."""

import numpy as np


def checked(plan):
    """The plan itself, every entry of it looked at; ValueError says what is wrong."""
    drawn = plan.row >= 0
    rows = np.sort(plan.row[drawn])
    if (plan.row < -1).any() or not np.array_equal(rows, np.arange(plan.start.size - 1)):
        raise ValueError(f"row must hold each of the {plan.start.size - 1} rows once, and -1 elsewhere")
    first, last = plan.start[:-1], plan.start[1:] - 1
    if plan.start[0] != 0 or plan.start[-1] != plan.key.size or (last < first).any():
        raise ValueError(f"start must rise from 0 to the number of segments, {plan.key.size}, at every row")
    if np.unique(plan.key).size != plan.key.size:
        raise ValueError("key must not repeat: the winner of two equal keys would not be defined")
    inner = np.ones(plan.key.size, dtype=bool)
    inner[first] = False  # segments that follow another one of the same row
    if (np.diff(plan.key)[inner[1:]] < 0).any():
        raise ValueError("key must increase within a row")
    if not (np.isfinite(plan.cumulative).all() and (plan.cumulative[first] >= 0).all()):
        raise ValueError("cumulative must be finite and >= 0")
    if (np.diff(plan.cumulative)[inner[1:]] < 0).any() or (plan.cumulative[last] != 1).any():
        raise ValueError("cumulative must not fall within a row, and must end at 1")
    r = plan.marginal
    if not (np.isfinite(r).all() and (r >= 0).all() and abs(r.sum() - 1) <= 1e-9):
        raise ValueError(f"marginal must be a probability distribution, got sum {float(r.sum())!r}")
    if r[~drawn].any():
        raise ValueError("marginal must be 0 for tokens without segments")
    return plan
