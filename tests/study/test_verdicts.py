"""Verdicts are computed: what each criterion says, how cells add up, and that a change of results changes them."""

import pytest

from mdsd_core.study.results import Results, estimate, exact, timing
from mdsd_core.study.sources import Cell, Change, Differences, Entry, Turn, Values
from mdsd_core.study.verdicts import (
    ABSENT,
    CONDITION,
    FAILS,
    HOLDS,
    OPEN,
    Above,
    AtMost,
    Evidence,
    judge,
)


def results(**values):
    return Results("nb", "ci", {}, values)


def around(value, half=0.01):
    return estimate(value, (value - half, value + half), atol=1e-4)


def verdict(values, source=None, criterion=None):
    source = Values("nb", r"gap.*") if source is None else source
    return judge(
        (Evidence("gap", source, Above() if criterion is None else criterion),), lambda name: results(**values)
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.05, 0.03], HOLDS),
        ([0.05, 0.03, 0.005], HOLDS),  # one does not tell, none speaks against
        ([0.05, 0.005, -0.005], CONDITION),  # fewer than half speak for
        ([0.05, 0.03, -0.05], CONDITION),
        ([0.05, -0.05], FAILS),
        ([-0.05, -0.03], FAILS),
        ([0.005, -0.005], OPEN),
    ],
)
def test_cells_add_up(values, expected):
    found = verdict({f"gap{i}": around(x) for i, x in enumerate(values)})
    assert found.verdict == expected
    assert sum(found.counts) == len(values)
    assert len(found.exceptions) == len(values) - found.counts[0]


def test_limits_are_met_by_the_whole_interval():
    assert Above(0.1).stance(Cell("x", 0.2, 0.11, 0.3)) == 1
    assert Above(0.1).stance(Cell("x", 0.2, 0.10, 0.3)) == 0
    assert Above(0.1).stance(Cell("x", 0.05, 0.0, 0.1)) == -1
    assert AtMost(0.1).stance(Cell("x", 0.05, 0.0, 0.1)) == 1
    assert AtMost(0.1).stance(Cell("x", 0.05, 0.0, 0.11)) == 0
    assert AtMost(0.1).stance(Cell("x", 0.2, 0.11, 0.3)) == -1
    assert "0.1" in Above(0.1).words()
    assert "0.1" in AtMost(0.1).words()


def test_lists_give_a_cell_an_entry_and_a_sign_turns_them():
    values = {"gap": estimate([0.1, -0.2], ([0.05, -0.3], [0.2, -0.1]), atol=0.0)}
    found = verdict(values, Values("nb", "gap", sign=-1)).parts[0].cells
    assert [(c.value, c.low, c.high) for c in found] == [(-0.1, -0.2, -0.05), (0.2, 0.1, 0.3)]
    assert found[0].label != found[1].label


def test_differences_take_the_ends_at_their_worst():
    values = {"gap, a, n=4": around(0.3, 0.02), "gap, a, n=2": around(0.1, 0.01), "gap, b, n=4": around(0.3)}
    (cell,) = verdict(values, Differences("nb", r"gap, (.*), n=4", r"gap, \1, n=2")).parts[0].cells
    assert (cell.value, cell.low, cell.high) == pytest.approx((0.2, 0.17, 0.23))


def test_words_and_timings_are_no_figures():
    with pytest.raises(ValueError, match="must be a number"):
        verdict({"gap": exact("large", atol=0)})
    with pytest.raises(ValueError, match="no verdict hangs on timings"):
        verdict({"gap": timing(3.0)})


def test_missing_results_and_missing_keys_are_not_the_same():
    evidence = (Evidence("gap", Values("nb", "gap")), Evidence("other", Values("absent", "gap")))
    read = {"nb": results(gap=around(0.5))}.get
    found = judge(evidence, read)
    assert found.verdict == HOLDS
    assert found.parts[1].cells == ()
    assert judge(evidence, lambda name: None).verdict == ABSENT
    assert judge((), read).verdict == ABSENT
    with pytest.raises(ValueError, match="have no value for"):
        judge((Evidence("gap", Values("nb", "gone")),), read)


def test_entries_and_changes_go_by_the_axis():
    values = {
        "temperatures": exact([0.1, 0.7, 1.0], atol=0),
        "lead, a": estimate([0.3, 0.2, 0.05], ([0.25, 0.1, 0.0], [0.35, 0.3, 0.1]), atol=0.0),
    }
    (cell,) = Entry("nb", "lead, .*", "temperatures", 0.7).cells(results(**values))
    assert (cell.value, cell.low, cell.high) == (0.2, 0.1, 0.3)
    (cell,) = Change("nb", "lead, .*", "temperatures", 0.1, 1.0).cells(results(**values))
    assert (cell.value, cell.low, cell.high) == pytest.approx((0.25, 0.15, 0.35))
    # a profile may lack the place on the axis: no cell, and no error; a key that is not there is one
    assert verdict(values, Entry("nb", "lead, .*", "temperatures", 0.2)).verdict == ABSENT
    assert verdict(values, Change("nb", "lead, .*", "temperatures", 0.2, 1.0)).verdict == ABSENT
    with pytest.raises(ValueError, match="have no value for"):
        verdict(values, Entry("nb", "gone", "temperatures", 0.1))


@pytest.mark.parametrize(
    ("curve", "least"),
    [([0.5, 0.7, 0.6], 0.1), ([0.6, 0.4, 0.9], 0.2), ([0.1, 0.2, 0.3], -0.1), ([0.3, 0.2, 0.1], -0.1)],
)
def test_a_turn_needs_a_rise_and_a_fall(curve, least):
    width = 0.02
    values = {"rate": estimate(curve, ([x - width for x in curve], [x + width for x in curve]), atol=0.0)}
    (cell,) = Turn("nb", "rate").cells(results(**values))
    assert (cell.value, cell.low, cell.high) == pytest.approx((least, least - 2 * width, least + 2 * width))


@pytest.mark.parametrize(
    ("curve", "between", "least"),
    [
        ([0.5, 0.5, 0.7, 0.6], (0.8, 1.0), 0.1),  # a peak at 0.9
        ([0.9, 0.7, 0.4, 0.6], (0.8, 1.0), 0.2),  # a trough there
        ([0.5, 0.7, 0.6, 0.1], (0.8, 1.0), 0.1),  # a peak at 0.7, and still above the first at 0.9
        ([0.5, 0.9, 0.6, 0.7], (0.5, 0.7), 0.3),  # elsewhere
        ([0.1, 0.2, 0.3, 0.4], (0.8, 1.0), -0.1),
    ],
)
def test_a_turn_at_a_place_rises_to_it_and_falls_from_it(curve, between, least):
    width = 0.02
    ends = ([x - width for x in curve], [x + width for x in curve])
    values = {"T": exact([0.5, 0.7, 0.9, 1.5], atol=0), "rate": estimate(curve, ends, atol=0.0)}
    (cell,) = Turn("nb", "rate", "T", between).cells(results(**values))
    assert (cell.value, cell.low, cell.high) == pytest.approx((least, least - 2 * width, least + 2 * width))
    assert cell.label == f"rate, T {between[0]:g} to {between[1]:g}"
    # the ends of the axis have one side only, and a profile may lack the place: no cell
    assert Turn("nb", "rate", "T", (1.2, 2.0)).cells(results(**values)) == []
    assert Turn("nb", "rate", "T", (0.75, 0.85)).cells(results(**values)) == []
