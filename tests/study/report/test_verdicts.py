"""Verdicts are computed: what each criterion says, how cells add up, and that a change of results changes them."""

import pytest

from mdsd_study.report.results import Results, estimate, exact, timing
from mdsd_study.report.scorecard.cells import Cell
from mdsd_study.report.scorecard.claim_values import At, Change, Turn, Values
from mdsd_study.report.scorecard.verdicts import (
    ABSENT,
    CONDITION,
    FAILS,
    HOLDS,
    MIXED,
    OPEN,
    UNSEEN,
    UNTESTED,
    Above,
    AtMost,
    Evidence,
    judge,
)


def results(**values):
    return Results("nb", "ci", {}, values)


def around(value, half=0.01):
    return estimate(value, (value - half, value + half), atol=1e-4)


def verdict(values, source=None, criterion=None, *, law=False):
    source = Values("nb", r"gap.*") if source is None else source
    evidence = Evidence("gap", source, Above() if criterion is None else criterion)
    return judge((evidence,), lambda name: results(**values), law=law)


FOR, UNDECIDED, AGAINST = 0.05, 0.005, -0.05


@pytest.mark.parametrize(
    ("values", "expected", "of_a_law"),
    [
        ([FOR, FOR], HOLDS, HOLDS),
        ([FOR, FOR, UNDECIDED], HOLDS, HOLDS),
        ([FOR, UNDECIDED], OPEN, OPEN),  # half of them are open
        ([FOR, UNDECIDED, AGAINST], MIXED, FAILS),
        ([FOR, UNDECIDED, UNDECIDED, AGAINST], MIXED, FAILS),
        ([FOR, FOR, UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED, AGAINST], OPEN, FAILS),  # most of them are open
        ([FOR] + [UNDECIDED] * 11, OPEN, OPEN),  # one cell of twelve is no finding
        ([FOR] * 9 + [AGAINST], MIXED, FAILS),  # nine to one is no condition
        ([FOR, AGAINST], MIXED, FAILS),
        ([AGAINST, AGAINST], UNSEEN, FAILS),
        ([AGAINST, UNDECIDED], UNSEEN, FAILS),
        ([AGAINST, UNDECIDED, UNDECIDED], OPEN, FAILS),
        ([UNDECIDED, UNDECIDED], OPEN, OPEN),
    ],
)
def test_cells_add_up(values, expected, of_a_law):
    table = {f"gap{i}": around(x) for i, x in enumerate(values)}
    found = verdict(table)
    assert found.verdict == expected
    assert found.counts == tuple(values.count(x) for x in (FOR, UNDECIDED, AGAINST))
    assert found.conditions == ()
    assert verdict(table, law=True).verdict == of_a_law


def test_a_condition_is_found_among_the_cells():
    def table(values):
        return {f"gap, T={i / 10:g}": around(x) for i, x in enumerate(values, 1)}

    source = Values("nb", r"gap, T=(?P<T>.*)")
    found = verdict(table([FOR] * 5 + [UNDECIDED] + [AGAINST] * 4), source)
    assert found.verdict == CONDITION
    assert [one.words() for one in found.conditions] == ["T at most 0.5"]
    assert verdict(table([FOR] * 5 + [UNDECIDED] + [AGAINST] * 4), source, law=True).verdict == FAILS
    # one exception, and it is none; without the property there is nothing to find; and most must not be open
    assert verdict(table([FOR] * 4 + [AGAINST, FOR] + [AGAINST] * 4), source).verdict == MIXED
    assert verdict(table([FOR] * 5 + [UNDECIDED] + [AGAINST] * 4), Values("nb", "gap, .*")).verdict == MIXED
    assert verdict(table([FOR] * 5 + [UNDECIDED] * 10 + [AGAINST] * 4), source).verdict == OPEN


def test_a_verdict_names_its_pairs():
    values = {f"gap, {draft}": around(FOR) for draft in ("skip4", "skip2")}
    both = Results("nb", "ci", {"target": "big", "draft": "big-skip8"}, values | {"toy": exact(1.0, atol=0)})

    def pairs(keys):
        return judge((Evidence("gap", Values("nb", keys)),), lambda name: both).pairs

    assert pairs("gap, (?P<draft>.*)") == {"big": ["skip2", "skip4"]}
    assert pairs("gap, .*") == {"big": ["skip8"]}
    assert pairs("toy") == {}


def test_properties_come_from_the_key_then_the_source_then_the_parameters():
    values = {"gap, n=2": around(FOR), "gap": around(FOR)}
    found = Values("nb", "gap(?:, n=(?P<n>.))?", given={"n": 3.0, "rule": "RRS"}).cells(
        Results("nb", "ci", {"target": "big", "draft": "big-skip4", "temperature": 0.7, "n": 4}, values)
    )
    assert [cell.properties["n"] for cell in found] == [2.0, 3.0]
    assert found[0].properties == {"target": "big", "draft": "skip4", "T": 0.7, "n": 2.0, "rule": "RRS"}


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
    values = {"drafts": exact([2, 4], atol=0), "gap": estimate([0.1, -0.2], ([0.05, -0.3], [0.2, -0.1]), atol=0.0)}
    found = verdict(values, Values("nb", "gap", axis="drafts", sign=-1)).parts[0].cells
    assert [(c.value, c.low, c.high) for c in found] == [(-0.1, -0.2, -0.05), (0.2, 0.1, 0.3)]
    assert [c.properties for c in found] == [{"n": 2.0}, {"n": 4.0}]
    with pytest.raises(ValueError, match="the source must name its axis"):
        verdict(values, Values("nb", "gap"))


def test_sums_and_shares_take_the_ends_at_their_worst():
    values = {"gap, a, n=4": around(0.3, 0.02), "gap, a, n=2": around(0.1, 0.01), "gap, b, n=4": around(0.3)}
    (cell,) = verdict(values, Values("nb", r"gap, (.*), n=4", minus=(r"gap, \1, n=2",))).parts[0].cells
    assert (cell.value, cell.low, cell.high) == pytest.approx((0.2, 0.17, 0.23))
    (cell,) = verdict(values, Values("nb", r"gap, (?P<x>.*), n=4", plus=(r"gap, \g<x>, n=2",))).parts[0].cells
    assert (cell.value, cell.low, cell.high) == pytest.approx((0.4, 0.37, 0.43))
    (cell,) = verdict(values, Values("nb", r"gap, (.*), n=4", of=r"gap, \1, n=2")).parts[0].cells
    assert (cell.value, cell.low, cell.high) == pytest.approx((3.0, 0.28 / 0.11, 0.32 / 0.09))
    below = {"gap, a": around(-0.3, 0.02), "one, a": around(0.1, 0.01)}
    (cell,) = verdict(below, Values("nb", r"gap, (.*)", of=r"one, \1")).parts[0].cells
    assert (cell.low, cell.high) == pytest.approx((-0.32 / 0.09, -0.28 / 0.11))
    with pytest.raises(ValueError, match="must lie above 0"):
        verdict({"gap, a": around(0.3), "one, a": around(0.005)}, Values("nb", r"gap, (.*)", of=r"one, \1"))


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
    assert judge((), read).verdict == UNTESTED
    with pytest.raises(ValueError, match="have no value for"):
        judge((Evidence("gap", Values("nb", "gone")),), read)


def test_places_and_changes_go_by_a_property():
    values = {
        "temperatures": exact([0.1, 0.7, 1.0], atol=0),
        "lead, a": estimate([0.3, 0.2, 0.05], ([0.25, 0.1, 0.0], [0.35, 0.3, 0.1]), atol=0.0),
    }
    lead = Values("nb", "lead, .*", axis="temperatures")
    (cell,) = At(lead, "T", 0.7).cells(results(**values))
    assert (cell.value, cell.low, cell.high) == (0.2, 0.1, 0.3)
    (cell,) = Change(lead, "T", 0.1, 1.0).cells(results(**values))
    assert (cell.value, cell.low, cell.high) == pytest.approx((0.25, 0.15, 0.35))
    assert "T" not in cell.properties
    # a profile may lack the place on the axis: no cell, and no error; a key that is not there is one
    assert verdict(values, At(lead, "T", 0.2)).verdict == ABSENT
    assert verdict(values, Change(lead, "T", 0.2, 1.0)).verdict == ABSENT
    with pytest.raises(ValueError, match="have no value for"):
        verdict(values, At(Values("nb", "gone", axis="temperatures"), "T", 0.1))


def test_curves_are_told_apart_by_their_properties():
    two = estimate([0.3, 0.2], ([0.2, 0.1], [0.4, 0.3]), atol=0.0)
    values = {"temperatures": exact([0.1, 0.7], atol=0), "lead, a": two, "lead, b": two}
    assert len(At(Values("nb", "lead, (?P<rule>.)", axis="temperatures"), "T", 0.7).cells(results(**values))) == 2
    with pytest.raises(ValueError, match="have the same properties"):
        At(Values("nb", "lead, .", axis="temperatures"), "T", 0.7).cells(results(**values))


@pytest.mark.parametrize(
    ("curve", "least"),
    [([0.5, 0.7, 0.6], 0.1), ([0.6, 0.4, 0.9], 0.2), ([0.1, 0.2, 0.3], -0.1), ([0.3, 0.2, 0.1], -0.1)],
)
def test_a_turn_needs_a_rise_and_a_fall(curve, least):
    width = 0.02
    rate = estimate(curve, ([x - width for x in curve], [x + width for x in curve]), atol=0.0)
    values = {"T": exact([0.5, 0.7, 0.9], atol=0), "rate": rate}
    (cell,) = Turn(Values("nb", "rate", axis="T"), "T").cells(results(**values))
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
    (cell,) = Turn(Values("nb", "rate", axis="T"), "T", between).cells(results(**values))
    assert (cell.value, cell.low, cell.high) == pytest.approx((least, least - 2 * width, least + 2 * width))
    assert cell.label == f"rate, T = 0.5 to 1.5, turn at {between[0]:g} to {between[1]:g}"
    # the ends of the axis have one side only, and a profile may lack the place: no cell
    assert Turn(Values("nb", "rate", axis="T"), "T", (1.2, 2.0)).cells(results(**values)) == []
    assert Turn(Values("nb", "rate", axis="T"), "T", (0.75, 0.85)).cells(results(**values)) == []
