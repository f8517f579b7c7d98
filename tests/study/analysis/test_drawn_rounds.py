"""Recorded rounds are the loop's own; the picture shows each node once, in the colour of what became of it."""

import numpy as np
import pytest

from mdsd_core.decoding import DraftTree, ModelDrafter, generate
from mdsd_core.decoding.generate import as_scorer
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import tiny_random_pair
from mdsd_study.analysis import drawn_rounds
from mdsd_study.analysis.drawn_rounds import (
    draw_residual,
    draw_round,
    layout,
    record_rounds,
    rule_style,
    shown,
    telling_round,
)
from mdsd_study.analysis.rounds import RoundRule


@pytest.fixture(scope="module")
def rounds():
    pair = tiny_random_pair(7, noise=0.0)
    return pair, record_rounds(
        as_scorer(pair.target), ModelDrafter(as_scorer(pair.draft)), [1, 2], DraftTree.from_branching((2, 2)),
        "with_replacement", "rrs", SamplingParams(), rounds=30, seed=3,
    )  # fmt: skip


def test_recording_changes_nothing(rounds):
    pair, recorded = rounds
    tokens = [t for one in recorded for t in [*(one.tree.tokens[n] for n in one.walk.path), one.walk.token]]
    plain = generate(
        as_scorer(pair.target), pair.draft, [[1, 2]], (2, 2), sampling=SamplingParams(),
        max_new_tokens=len(tokens), seeds=3, eos_token_ids=(),
    )  # fmt: skip
    assert plain.tokens[0] == tokens
    for one in recorded:
        assert set(one.p) == set(range(len(one.tree)))
        assert all(rows.sum() == pytest.approx(1.0) for rows in [*one.p.values(), *one.q.values()])


def test_the_telling_round(rounds):
    _, recorded = rounds
    one = telling_round(recorded)
    assert one.accepted
    assert one.resampled
    complete = [r for r in recorded if not r.resampled]
    assert complete
    assert telling_round(complete).accepted == max(r.accepted for r in complete)
    with pytest.raises(ValueError, match="at least one"):
        telling_round([])


def test_layout_keeps_nodes_apart_and_parents_between_their_children():
    rng = np.random.default_rng(0)
    for _ in range(20):
        parents = [-1, *(int(rng.integers(0, i)) for i in range(1, 14))]
        place = layout(parents)
        assert len({tuple(row) for row in place.tolist()}) == len(parents)
        for node, parent in enumerate(parents[1:], start=1):
            assert place[node, 0] == place[parent, 0] + 1
            siblings = [place[i, 1] for i in range(len(parents)) if parents[i] == parent]
            assert min(siblings) <= place[parent, 1] <= max(siblings)


def test_the_picture_names_every_node_and_what_became_of_it(rounds):
    _, recorded = rounds
    one = telling_round(recorded)
    fig = draw_round(one, str)
    last = fig.axes[2]
    texts = {t.get_text().split(" ×")[0]: t for t in last.texts}
    assert len(last.texts) == len(one.tree) + 1
    assert {shown(str(t)) for t in [*one.tree.tokens, one.walk.token]} == set(texts)
    colours = [t.get_color() for t in last.texts]
    assert colours.count(drawn_rounds._ACCEPTED) == one.accepted + 1
    judged = [n for n in range(1, len(one.tree)) if one.tree.parents[n] in (0, *one.walk.path)]
    assert colours.count(drawn_rounds._REJECTED) == len(judged) - one.accepted
    assert colours[-1] == drawn_rounds._FINAL
    for ax, rows in ((fig.axes[0], one.q), (fig.axes[1], one.p)):
        for node in range(1, len(one.tree)):
            assert ax.texts[node].get_text().endswith(f"{rows[one.tree.parents[node]][one.tree.tokens[node]]:.2f}")


def test_the_residual_is_what_p_leaves_over_q(rounds):
    _, recorded = rounds
    one = telling_round(recorded)
    ax = draw_residual(one, str).axes[0]
    heights = np.array([[bar.get_height() for bar in group] for group in ax.containers])
    assert heights[2] == pytest.approx(np.maximum(heights[0] - heights[1], 0.0))
    labels = [t.get_text() for t in ax.get_xticklabels()]
    assert f"{one.walk.token}\nresampled" in labels
    with pytest.raises(ValueError, match="resampled token"):
        draw_residual(next(r for r in recorded if not r.resampled), str)


def test_no_two_rules_look_alike_in_a_figure():
    rules = [RoundRule("greedy", "greedy"), RoundRule("rrs_without", "without_replacement")]
    rules += [RoundRule(name, "with_replacement") for name in ("rrs", "kseq")]
    rules += [
        RoundRule("optimal", f"{how}_replacement", rule) for how in ("with", "without") for rule in ("node", "path")
    ]
    styles = [rule_style(rule) for rule in rules]
    assert len({(s["marker"], s["markerfacecolor"]) for s in styles}) == len(rules)
    assert len({(s["color"], s["linestyle"]) for s in styles}) == len(rules)
    with pytest.raises(ValueError, match="token_matching"):
        rule_style(RoundRule("token_matching", "with_replacement"))
