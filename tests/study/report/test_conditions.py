"""A condition separates without exception, is a property that cells share or that is ordered, and is no accident."""

import itertools

import numpy as np
import pytest

from mdsd_study.report.scorecard.cells import Cell
from mdsd_study.report.scorecard.conditions import CHANCE, conditions


def cells(**properties):
    """Cells with these properties, a list of values each."""
    return [
        Cell(str(i), 0.0, 0.0, 0.0, dict(zip(properties, row, strict=True)))
        for i, row in enumerate(zip(*properties.values(), strict=True))
    ]


def words(stances, **properties):
    return [one.words() for one in conditions(cells(**properties), stances)]


DRAFTS = [draft for draft in ("skip2", "skip4", "ngram") for _ in range(4)]


def test_a_threshold_and_a_set_of_values():
    assert words([1] * 5 + [0] + [-1] * 5, T=list(range(11))) == ["T at most 4"]
    assert words([-1] * 5 + [0] + [1] * 5, T=list(range(11))) == ["T at least 6"]
    assert words([1] * 8 + [-1] * 4, draft=DRAFTS) == ["draft skip2 or skip4"]
    assert words([-1] * 4 + [1] * 4 + [-1] * 4, draft=DRAFTS) == ["draft skip4"]
    assert words([1] * 5 + [-1] * 5, to_n=list(range(10))) == ["to n at most 4"]


@pytest.mark.parametrize("wrong", [0, 3, 7])
def test_one_exception_and_there_is_no_condition(wrong):
    stances = [1] * 8 + [-1] * 4
    stances[wrong] = -stances[wrong]
    assert words(stances, draft=DRAFTS) == []
    ordered = [1] * 7 + [-1] * 5
    ordered[wrong], ordered[11 - wrong // 2] = -1, 1
    assert words(ordered, T=list(range(12))) == []


def test_a_middle_range_is_no_condition():
    assert words([-1] * 4 + [1] * 6 + [-1] * 4, T=list(range(14))) == []


def test_the_name_of_a_cell_is_no_condition():
    assert words([1] * 10 + [-1] * 10, name=[f"cell {i}" for i in range(20)]) == []
    assert words([1] * 10 + [-1], name=["a"] * 10 + ["b"]) == []  # one against of eleven: once in eleven by chance


def test_few_cells_give_none():
    assert words([1, 1, -1], T=[0.1, 0.2, 0.9]) == []
    assert words([1, 1, 1, -1, -1, -1], T=[1, 2, 3, 4, 5, 6]) == []  # twice in twenty
    assert words([1] + [-1] * 60, T=list(range(61))) == []  # one cell for it is none


def test_every_property_that_is_tried_costs():
    stances, ordered = [1] * 4 + [-1] * 4, list(range(8))  # twice in seventy
    assert words(stances, T=ordered) == ["T at most 3"]
    assert words(stances, T=ordered, n=[1, 2] * 4) == []


def test_a_property_that_some_cells_lack_is_none():
    table = cells(T=list(range(11)))
    table[5] = Cell("5", 0.0, 0.0, 0.0, {})
    assert conditions(table, [1] * 5 + [0] + [-1] * 5) == []


def test_where_it_is_met_the_claim_holds():
    """More than half of the cells on its side speak for the claim, the open ones counted."""
    stances = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1]
    assert words(stances, T=[1, 2, 3, 4, 5] + [6] * 5 + [7, 8, 9, 10, 11]) == ["T at most 5"]
    assert words(stances, T=[1, 2, 3, 4, 5] + [2] * 5 + [7, 8, 9, 10, 11]) == []


def test_the_least_likely_by_chance_comes_first():
    stances = [1] * 8 + [-1] * 8
    found = conditions(cells(draft=["a", "b"] * 4 + ["c", "d"] * 4, T=list(range(16))), stances)
    assert [one.words() for one in found] == ["T at most 7", "draft a or b"]
    assert found[0].chance < found[1].chance


@pytest.mark.parametrize("seed", range(6))
def test_the_chance_is_that_of_shuffled_cells(seed):
    """By trying out all shuffles: the share that the same property separates."""
    rng = np.random.default_rng(seed)
    values = [float(x) for x in np.sort(rng.integers(0, 7, 12))]
    value = values[rng.integers(4, 8)]
    stances = [1 if x <= value else -1 for x in values]
    if stances.count(1) in (0, 1, 12):
        pytest.skip("nothing to separate")

    def separated(names, chosen, ordered):
        for_, against = {names[i] for i in chosen}, {names[i] for i in range(12) if i not in chosen}
        apart = max(for_) < min(against) or max(against) < min(for_)
        return apart if ordered else not for_ & against

    for ordered in (True, False):
        names = values if ordered else [f"draft {x:g}" for x in values]
        ways = list(itertools.combinations(range(12), stances.count(1)))
        expected = sum(separated(names, set(chosen), ordered) for chosen in ways) / len(ways)
        found = conditions(cells(x=names), stances)
        if expected > CHANCE:
            assert found == []
        else:
            assert [one.chance for one in found] == pytest.approx([expected])
