"""The tidy table of a sweep: its columns, and what is made of it by averaging over positions.

One row is one verifier, or the bound, at one position. :data:`COLUMNS` says what each column holds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from mdsd_study.measure.grid import BOUND, Entry, Slice
from mdsd_study.measure.one_position import VALUES
from mdsd_study.statistics import bootstrap_mean

_NAME = pa.dictionary(pa.int32(), pa.string())

#: Column -> (type, what it holds). The columns of a position repeat in its rows.
COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "pair": (_NAME, "name of the pair of models"),
    "target": (_NAME, "the target, as it was asked for"),
    "draft": (_NAME, "the draft, as it was asked for"),
    "prompt_set": (_NAME, "name of the prompt set"),
    "prompt": (_NAME, "set/id of the prompt: the unit that is resampled"),
    "temperature": (pa.float64(), "temperature of the target"),
    "draft_temperature": (pa.float64(), "temperature of the draft"),
    "text_temperature": (pa.float64(), "temperature at which the text was drawn"),
    "text": (_NAME, "'same': drawn at the target's temperature; 'fixed': one text for all temperatures"),
    "position": (pa.int32(), "place in the continuation, from 0"),
    "scheme": (_NAME, "law of the drafts"),
    "verifier": (_NAME, f"the rule; {BOUND!r} for the optimal acceptance rate of the scheme"),
    "n": (pa.int16(), "number of drafts"),
    "acceptance": (pa.float64(), "P(the emitted token is one of the drafts), in [0, 1]"),
    "low": (pa.float64(), "lower end of the interval of `acceptance`; equal to it where it is exact"),
    "high": (pa.float64(), "upper end"),
    "level": (pa.float64(), "coverage of that interval: 1 for exact values and rigorous brackets"),
    "bound": (pa.float64(), "optimal acceptance rate of the scheme at this position"),
    "overlap": (pa.float64(), "sum_x min(p_x, q_x), the acceptance of a single draft"),
    "target_entropy": (pa.float64(), "entropy of p, in nats"),
    "draft_entropy": (pa.float64(), "entropy of q, in nats"),
}

SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])

#: Columns that tell the rows of a summary apart: those that say what was measured, but prompt and position.
KEYS = tuple(name for name in list(COLUMNS)[: list(COLUMNS).index("acceptance")] if name not in ("prompt", "position"))

#: Column of a summary -> what it holds, beside :data:`KEYS`.
SUMMARY: dict[str, str] = {
    "contexts": "number of positions",
    "prompts": "number of prompts",
    "enough": "whether there are enough prompts for the intervals to be relied on",
    "acceptance": "mean over positions",
    "acceptance_low": "lower end of its 95 % interval, prompts resampled",
    "acceptance_high": "upper end",
    "gap": "mean of bound - acceptance, both at the same position",
    "gap_low": "lower end of its interval",
    "gap_high": "upper end",
    "uncertainty": "mean half-width of the intervals at single positions: no sampling noise of the texts; 0 if exact",
}


def entropy(p: NDArray[np.float64]) -> float:
    """``-sum p log p`` in nats, 0 log 0 = 0.

    >>> round(entropy(np.array([0.5, 0.5, 0.0])), 6)
    0.693147
    """
    positive = p[p > 0.0]
    return float(-(positive * np.log(positive)).sum()) + 0.0


def rows_of(
    one: Slice,
    prompt: str,
    places: Sequence[int],
    entries: Sequence[Entry],
    values: NDArray[np.float64],
    facts: NDArray[np.float64],
) -> pa.Table:
    """The rows of one prompt and slice.

    Parameters
    ----------
    one, prompt
        What was measured.
    places : sequence of int, length C
        Positions in the text.
    entries : sequence, length R
        See :func:`mdsd_study.measure.grid.entries_of`.
    values : ndarray, shape (C, R, 5)
        See :data:`mdsd_study.measure.one_position.VALUES`.
    facts : ndarray, shape (C, 3)
        Overlap and entropies.
    """
    positions, rows = values.shape[:2]
    count = positions * rows
    target, draft, text = (s.temperature for s in (one.sampling, one.draft_sampling, one.text_sampling))
    columns: dict[str, Any] = {
        "pair": [one.pair.name] * count,
        "target": [one.pair.target] * count,
        "draft": [one.pair.draft] * count,
        "prompt_set": [one.prompt_set] * count,
        "prompt": [prompt] * count,
        "temperature": np.full(count, target),
        "draft_temperature": np.full(count, draft),
        "text_temperature": np.full(count, text),
        "text": ["same" if text == target else "fixed"] * count,
        "position": np.repeat(np.asarray(places, dtype=np.int32), rows),
        "scheme": [entry.scheme_name for entry in entries] * positions,
        "verifier": [entry.verifier for entry in entries] * positions,
        "n": np.tile(np.array([entry.n for entry in entries], dtype=np.int16), positions),
    }
    columns |= dict(zip(VALUES, values.reshape(count, -1).T, strict=True))
    columns |= dict(zip(("overlap", "target_entropy", "draft_entropy"), np.repeat(facts, rows, axis=0).T, strict=True))
    return pa.table({name: pa.array(column, type=COLUMNS[name][0]) for name, column in columns.items()}, schema=SCHEMA)


def summarize(table: pa.Table | pd.DataFrame, *, seed: int = 0, by: Sequence[str] = KEYS) -> pd.DataFrame:
    """Means over positions with bootstrap intervals over prompts, one row for each combination of `by`.

    Parameters
    ----------
    table : pyarrow.Table or pandas.DataFrame
        A table of a sweep, or a part of one.
    seed : int
        Of the resampling.
    by : sequence of str
        Columns to group by; leaving some out pools over them (never leave out `scheme`, `verifier` or `n`).

    Returns
    -------
    pandas.DataFrame
        `by` and :data:`SUMMARY`. With one prompt the intervals are NaN.

    Examples
    --------
    >>> rows = {"prompt": ["a", "b"], "acceptance": [0.5, 0.7], "bound": [0.6, 0.8], "low": [0.5, 0.7]}
    >>> frame = pd.DataFrame(rows | {"high": [0.5, 0.7], "scheme": "greedy", "verifier": "greedy", "n": 2})
    >>> summarize(frame, by=["scheme", "verifier", "n"])[["acceptance", "gap"]].round(6).values.tolist()
    [[0.6, 0.1]]
    """
    frame = table.to_pandas() if isinstance(table, pa.Table) else table
    missing = {"scheme", "verifier", "n"} - set(by)
    if missing:
        raise ValueError(f"by must hold scheme, verifier and n, {', '.join(sorted(missing))} is missing")
    rows = []
    for key, group in frame.groupby(list(by), sort=False, observed=True):
        prompts = group["prompt"].astype(str).tolist()
        accepted = bootstrap_mean(group["acceptance"], prompts, seed=seed)
        gap = bootstrap_mean(group["bound"] - group["acceptance"], prompts, seed=seed)
        rows.append(
            dict(zip(by, key, strict=True))
            | {
                "contexts": accepted.positions,
                "prompts": accepted.prompts,
                "enough": accepted.enough,
                "acceptance": accepted.mean,
                "acceptance_low": accepted.low,
                "acceptance_high": accepted.high,
                "gap": gap.mean,
                "gap_low": gap.low,
                "gap_high": gap.high,
                "uncertainty": float((group["high"] - group["low"]).mean() / 2),
            }
        )
    return pd.DataFrame(rows, columns=[*by, *SUMMARY])
