"""Tables of comparisons: rules paired at the same positions, one correction over all cells that have enough prompts."""

import numpy as np
import pandas as pd
import pytest

from mdsd_study.report.results import estimate, exact
from mdsd_study.report.tables import compare_rules, mark_of, mean_of, percent, percent_of, values_of
from mdsd_study.statistics import holm, paired_p_value

A, B = ("greedy", "greedy"), ("greedy", "bound")


def rows(pair, prompts, rule, values):
    """Two positions a prompt."""
    names = [str(i) for i in range(prompts) for _ in range(2)]
    cells = {"pair": pair, "scheme": rule[0], "verifier": rule[1], "bound": 0.9}
    return pd.DataFrame({"prompt": names, "position": [0, 1] * prompts, "acceptance": values}).assign(**cells)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    parts = []
    for pair, prompts in (("many", 14), ("other", 13), ("few", 5)):
        base = rng.random(2 * prompts) / 2
        parts += [rows(pair, prompts, A, base + 0.1), rows(pair, prompts, B, base + 0.05 * rng.normal(size=base.size))]
    return pd.concat(parts).sample(frac=1.0, random_state=1)  # in any order


def test_differences_are_paired_and_corrected_over_the_cells_with_enough_prompts(frame):
    found = compare_rules(frame, [(A, B), (B, A)], by=["pair"], seed=3)
    found = found.assign(first=found["first"].map({A: "A", B: "B"})).set_index(["pair", "first"])
    for pair in ("many", "other", "few"):
        cell = frame[frame["pair"] == pair]
        a, b = (values_of(cell, rule) for rule in (A, B))
        row = found.loc[(pair, "A")]
        assert row["difference"] == pytest.approx((a - b).mean(), abs=1e-12)
        assert row["low"] < row["difference"] < row["high"]
        assert row["p_value"] == paired_p_value(a, b, a.index.get_level_values(0).tolist(), seed=3)
        assert found.loc[(pair, "B"), "difference"] == pytest.approx(-row["difference"], abs=1e-12)
    assert found.loc["few"]["adjusted"].isna().all()
    enough = found.loc[["many", "other"]]
    assert enough["adjusted"].to_numpy() == pytest.approx(holm(enough["p_value"].to_numpy()))


def test_marks_follow_the_corrected_value_and_say_where_there_are_too_few_prompts(frame):
    found = compare_rules(frame, [(A, B), (B, B)], by=["pair"], seed=3)
    found["mark"] = [mark_of(value) for value in found["adjusted"]]
    few = found["pair"] == "few"
    assert set(found[few]["mark"]) == {", too few"}
    assert (found[~few & (found["first"] == B)]["mark"] == "").all()  # a rule against itself
    sure = ~few & (found["first"] == A)
    assert (found[sure]["p_value"] < 0.0125).all()
    assert (found[sure]["mark"] == "*").all()


def test_what_cannot_be_paired_is_refused(frame):
    many = frame[frame["pair"] == "many"]
    with pytest.raises(KeyError, match="no rows of verifier 'rrs' for scheme 'greedy'"):
        values_of(many, ("greedy", "rrs"))
    with pytest.raises(ValueError, match="several rows of this rule at one position"):
        values_of(frame, A)
    gone = many[~((many["verifier"] == "bound") & (many["prompt"] == "3"))]
    with pytest.raises(ValueError, match="not measured at the same positions"):
        compare_rules(gone, [(A, B)], by=["pair"])


def test_a_gap_is_that_to_the_bound_of_the_row(frame):
    many = frame[frame["pair"] == "many"]
    rate, gap = mean_of(many, A, seed=0), mean_of(many, A, seed=0, gap=True)
    assert gap.mean == pytest.approx(0.9 - rate.mean, abs=1e-12)
    assert (gap.low, gap.high) == pytest.approx((0.9 - rate.high, 0.9 - rate.low), abs=1e-2)


def test_a_figure_from_too_few_prompts_says_so(frame):
    many, few = (mean_of(frame[frame["pair"] == pair], A, seed=0) for pair in ("many", "few"))
    assert not percent(many).endswith("too few")
    assert percent(few).endswith("), too few")
    kept = estimate(few.mean, (few.low, few.high), atol=0.0)
    assert percent_of(kept, prompts=5) == percent(few)
    assert percent_of(kept, prompts=12) == percent(few).removesuffix(", too few")


def test_a_value_without_an_interval_is_no_estimate():
    with pytest.raises(ValueError, match="must be an estimate, got one that is exact"):
        percent_of(exact(0.5, atol=1e-6))
