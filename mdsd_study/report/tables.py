"""Tables of the study: comparisons of rules with their significance, and how a figure with its interval is written."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from mdsd_study.report.results import Value
from mdsd_study.statistics import (
    ENOUGH_PROMPTS,
    Interval,
    bootstrap_difference,
    bootstrap_mean,
    holm,
    paired_p_value,
)

#: A difference is marked if its corrected p-value is below this.
SIGNIFICANT = 0.05

#: A rule as a table names it: (scheme, verifier), the verifier "bound" for the optimal rate of the scheme.
Rule = tuple[str, str]


def values_of(frame: pd.DataFrame, rule: Rule, column: str = "acceptance") -> pd.Series:
    """One column of one rule, indexed by prompt and position: the rows of two rules can be paired.

    >>> frame = pd.DataFrame({"prompt": ["a"], "position": [0], "scheme": ["greedy"], "verifier": ["greedy"]})
    >>> values_of(frame.assign(acceptance=0.5), ("greedy", "greedy")).tolist()
    [0.5]
    """
    own = frame[(frame["scheme"] == rule[0]) & (frame["verifier"] == rule[1])]
    if own.empty:
        raise KeyError(f"the table has no rows of verifier {rule[1]!r} for scheme {rule[0]!r}")
    index = pd.MultiIndex.from_arrays([own["prompt"].astype(str), own["position"]])
    if index.has_duplicates:
        raise ValueError("the table holds several rows of this rule at one position: choose one pair, T and n first")
    return pd.Series(own[column].to_numpy(), index=index).sort_index()


def mean_of(frame: pd.DataFrame, rule: Rule, *, seed: int, gap: bool = False) -> Interval:
    """The mean acceptance of a rule with its interval; or, with `gap`, of what it stays below the bound of its drafts.

    >>> frame = pd.DataFrame({"prompt": ["a", "b"], "position": 0, "scheme": "greedy", "verifier": "greedy"})
    >>> found = mean_of(frame.assign(acceptance=[0.5, 0.6], bound=0.7), ("greedy", "greedy"), seed=0, gap=True)
    >>> round(found.mean, 12)
    0.15
    """
    values = values_of(frame, rule)
    if gap:
        values = values_of(frame, rule, "bound") - values
    return bootstrap_mean(values.to_numpy(), values.index.get_level_values(0).tolist(), seed=seed)


def compare_rules(
    frame: pd.DataFrame,
    comparisons: Sequence[tuple[Rule, Rule]],
    by: Sequence[str] = ("pair", "prompt_set", "temperature", "n"),
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Differences of two rules at the same positions, cell by cell, with Holm's correction over the whole table.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows of a sweep.
    comparisons : sequence of (rule, rule)
        First minus second.
    by : sequence of str
        What tells the cells apart.
    seed : int
        Of bootstrap and sign flips.

    Returns
    -------
    pandas.DataFrame
        `by`; `first`, `second`; `difference` with `low` and `high` (95 %, prompts resampled); `prompts`; `p_value`,
        from flipping the signs of whole prompts; `adjusted`, that by Holm's correction over all comparisons with enough
        prompts, NaN for the others.

    Examples
    --------
    >>> base = pd.DataFrame({"prompt": [str(i) for i in range(12)], "position": 0, "pair": "x", "scheme": "greedy"})
    >>> rows = [base.assign(verifier="greedy", acceptance=0.8), base.assign(verifier="bound", acceptance=0.6)]
    >>> found = compare_rules(pd.concat(rows), [(("greedy", "greedy"), ("greedy", "bound"))], by=["pair"])
    >>> found["difference"].round(6).tolist(), bool(found["adjusted"][0] < 0.01)
    ([0.2], True)
    """
    rows = []
    for key, cell in frame.groupby(list(by), sort=False, observed=True):
        for first, second in comparisons:
            a, b = values_of(cell, first), values_of(cell, second)
            if not a.index.equals(b.index):
                raise ValueError(f"{first} and {second} were not measured at the same positions of {key}")
            prompts = a.index.get_level_values(0).tolist()
            found = bootstrap_difference(a.to_numpy(), b.to_numpy(), prompts, seed=seed)
            rows.append(
                dict(zip(by, key, strict=True))
                | {
                    "first": first,
                    "second": second,
                    "difference": found.mean,
                    "low": found.low,
                    "high": found.high,
                    "prompts": found.prompts,
                    "enough": found.enough,
                    "p_value": paired_p_value(a.to_numpy(), b.to_numpy(), prompts, seed=seed),
                }
            )
    table = pd.DataFrame(rows)
    table["adjusted"] = np.nan
    enough = table["enough"].to_numpy(dtype=bool)
    if enough.any():
        table.loc[enough, "adjusted"] = holm(table.loc[enough, "p_value"].to_numpy())
    return table


def mark_of(adjusted: float | None) -> str:
    """What stands behind a difference: a star if its Holm-corrected p-value stays below 0.05.

    Parameters
    ----------
    adjusted : float or None
        The corrected p-value; None, or NaN as :func:`compare_rules` has it, where there are too few prompts for one.

    Examples
    --------
    >>> mark_of(0.01), mark_of(0.05), mark_of(None)
    ('*', '', ', too few')
    """
    if adjusted is None or math.isnan(adjusted):
        return ", too few"
    return "*" if adjusted < SIGNIFICANT else ""


def percent(found: Interval, digits: int = 1) -> str:
    """A mean in percent with its interval; it says so if that rests on too few prompts.

    >>> percent(Interval(0.5, 0.45, 0.55, 0.95, 12, 100))
    '50.0 (45.0 to 55.0)'
    >>> percent(Interval(0.5, 0.25, 0.75, 0.95, 6, 50))
    '50.0 (25.0 to 75.0), too few'
    """
    mean, low, high = (round(100 * end, digits) + 0.0 for end in (found.mean, found.low, found.high))  # no "-0.0"
    return f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})" + ("" if found.enough else ", too few")


def percent_of(value: Value, digits: int = 1, at: int | None = None, *, prompts: int = ENOUGH_PROMPTS) -> str:
    """:func:`percent` of an estimate in a results file, or of one entry of a list of them.

    Parameters
    ----------
    value : Value
        With an interval.
    digits : int
        Behind the point.
    at : int, optional
        Which entry of a list.
    prompts : int
        What the interval rests on; a results file says it apart.

    Raises
    ------
    ValueError
        If the value has no interval.

    Examples
    --------
    >>> from mdsd_study.report.results import estimate
    >>> percent_of(estimate([0.5, 0.6], ([0.45, 0.55], [0.55, 0.65]), atol=1e-4), at=1)
    '60.0 (55.0 to 65.0)'
    """
    if value.interval is None:
        raise ValueError(f"value must be an estimate, got one that is {value.kind}")
    mean, low, high = (end if at is None else end[at] for end in (value.value, *value.interval))
    return percent(Interval(mean, low, high, value.level or 0.0, prompts, prompts), digits)
