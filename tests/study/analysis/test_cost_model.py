"""The cost model: arithmetic by hand, enumeration of trees, and a model whose passes take a known time."""

import itertools
import time

import numpy as np
import pytest

from mdsd_core.decoding import DraftTree, ModelDrafter, PromptLookup
from mdsd_core.decoding.generate import as_scorer
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import tiny_random_pair
from mdsd_core.schemes import WithReplacement
from mdsd_core.trees.rules import tree_rule
from mdsd_core.verifiers import verifier
from mdsd_study.analysis import cost_model
from mdsd_study.analysis.cost_model import PassCost, RoundCost, best_tree, branchings, check_prediction
from mdsd_study.analysis.drawn_rounds import record_rounds

COST = RoundCost(PassCost((1, 5, 21), (0.10, 0.12, 0.20)), PassCost((1, 4), (0.05, 0.08)), 0.001, 0.002, 0.003)


def test_parts_of_a_round_by_hand():
    parts = COST.parts((4, 2), 2.5)  # levels 1, 4, 8
    assert parts["draft"] == pytest.approx(0.05 + 0.08)  # at the root and at 4 nodes
    assert parts["scheme"] == pytest.approx(5 * 0.001)
    assert parts["target"] == pytest.approx(0.12 + 0.08 * 8 / 16)  # 13 tokens
    assert parts["verify"] == pytest.approx(2.5 * 0.002)
    assert COST.tokens_per_second((4, 2), 2.5) == pytest.approx(2.5 / sum(parts.values()))
    plain = COST.parts((), 1.0)
    assert plain == {"draft": 0, "scheme": 0.0, "target": 0.10, "verify": 0.002, "cache": 0.003}


def test_a_run_reads_its_prompt_first():
    seconds = COST.target.of(21) + COST.draft.of(21) + 10 / COST.tokens_per_second((2,), 1.5)
    assert COST.speed_of_run((2,), 1.5, 21, 10, draft_reads=True) == pytest.approx(10 / seconds)
    alone = COST.speed_of_run((2,), 1.5, 21, 10, draft_reads=False)
    assert alone == pytest.approx(10 / (seconds - COST.draft.of(21)))


def test_extrapolation_keeps_the_last_slope():
    assert COST.target.of(41) == pytest.approx(0.20 + 20 * 0.08 / 16)
    assert PassCost((3,), (1.0,)).of(100) == 1.0
    for bad in (((), ()), ((1, 2), (1.0,)), ((2, 1), (1.0, 1.0))):
        with pytest.raises(ValueError, match="tokens"):
            PassCost(*bad)


def test_branchings_are_all_narrowing_trees_within_the_budget():
    found = list(branchings(12, widths=(1, 2, 3), most_depth=3))
    assert len(found) == len(set(found))
    expected = {
        tree
        for depth in (1, 2, 3)
        for tree in np.ndindex(*(3,) * depth)
        for tree in [tuple(n + 1 for n in tree)]
        if all(a >= b for a, b in itertools.pairwise(tree)) and np.cumprod(tree).sum() <= 12
    }
    assert set(found) == expected


def test_the_best_tree_is_the_best_of_all():
    trees = list(branchings(20))

    def tokens(tree):
        return 1 + sum(np.prod([1 - 0.5**n for n in tree[:d]]) for d in range(1, len(tree) + 1))

    best, speed = best_tree(COST, tokens, trees)
    assert speed == pytest.approx(max(COST.tokens_per_second(t, tokens(t)) for t in trees))
    assert COST.tokens_per_second(best, tokens(best)) == speed


def test_check_of_predictions():
    exact = check_prediction([1.0, 2.0, 4.0], [1.0, 2.0, 4.0])
    assert (exact.rank_correlation, exact.median_error, exact.regret) == (1.0, 0.0, 0.0)
    wrong = check_prediction([4.0, 2.0, 1.0], [1.0, 2.0, 4.0])
    assert (wrong.rank_correlation, wrong.regret) == (-1.0, 0.75)
    for bad in (([1.0], [1.0, 2.0]), ([], []), ([1.0], [0.0])):
        with pytest.raises(ValueError, match="predicted and measured"):
            check_prediction(*bad)


class SlowScorer:
    """Takes 2 ms a pass and 1 ms a token."""

    def __init__(self, scorer):
        self.scorer, self.vocab_size = scorer, scorer.vocab_size

    def __getattr__(self, name):
        return getattr(self.scorer, name)

    def feed(self, blocks):
        time.sleep(0.002 + 0.001 * len(blocks[0].tokens))
        return self.scorer.feed(blocks)


def test_measured_passes_see_what_a_pass_costs():
    pair = tiny_random_pair()
    scorer = as_scorer(pair.target)
    slow = cost_model.measure_pass(SlowScorer(scorer), [5, 6, 7], (1, 17, 33), repeats=5)
    assert slow.tokens == (1, 17, 33)
    # sleeping takes at least what was asked for; the machine may add to it
    assert slow.of(33) >= 0.035
    assert slow.of(33) - slow.of(1) > 0.02
    found = cost_model.measure_proposal(PromptLookup(257), [5, 6, 7, 5, 6], 2, repeats=3)
    assert found.tokens == (1, 2)
    assert min(found.seconds) > 0
    with pytest.raises(ValueError, match="at least 4 different tokens"):
        cost_model.measure_proposal(PromptLookup(257), [5, 6, 5, 6], 4)
    assert 0 < cost_model.measure_keep(scorer, [5, 6, 7], repeats=3) < 1
    rng, logits, scheme = np.random.default_rng(0), np.linspace(0, 1, 257), WithReplacement(2)
    assert 0 < cost_model.measure_draw(logits, scheme, SamplingParams(), rng) < 1
    assert 0 < cost_model.measure_verdict(logits, logits, scheme, verifier("rrs"), SamplingParams(), rng) < 1


def test_every_measurement_reads_the_clock_it_is_given():
    ticks = itertools.count().__next__  # one second passes between any two looks
    pair, rng = tiny_random_pair(5), np.random.default_rng(0)
    scorer, logits, scheme = as_scorer(pair.target), np.linspace(0, 1, 5), WithReplacement(2)
    assert cost_model.measure_pass(scorer, [1, 2, 3], (1, 4), repeats=2, clock=ticks).seconds == (1, 1)
    assert cost_model.measure_proposal(PromptLookup(5), [1, 2, 1], 2, repeats=2, clock=ticks).seconds == (1, 1)
    assert cost_model.measure_keep(scorer, [1, 2, 3], repeats=2, clock=ticks) == 1
    assert cost_model.measure_draw(logits, scheme, SamplingParams(), rng, clock=ticks) == 1
    assert cost_model.measure_verdict(logits, logits, scheme, verifier("rrs"), SamplingParams(), rng, clock=ticks) == 1


def test_walks_of_recorded_trees_count_decisions_and_take_a_round_s_time():
    pair, rng = tiny_random_pair(5), np.random.default_rng(0)

    def recorded(draft):
        return record_rounds(
            as_scorer(pair.target), ModelDrafter(as_scorer(draft)), [1, 2], DraftTree.from_branching((2, 2)),
            "with_replacement", "rrs", SamplingParams(), rounds=4,
        )  # fmt: skip

    ticks = itertools.count().__next__
    node, path = (tree_rule(name, verifier("optimal")) for name in ("node", "path"))
    # drafts of the target itself are all accepted: two decisions, none at the leaf; one second for all four rounds
    assert cost_model.measure_walks(node, recorded(pair.target), rng, clock=ticks) == (1 / 4, 2.0)
    rejected = recorded(pair.draft)
    by_node, by_path = (cost_model.measure_walks(rule, rejected, rng, repeats=200)[1] for rule in (node, path))
    assert 1 <= by_node < by_path <= 3  # the path rule looks below drafts that are rejected in the end
    with pytest.raises(ValueError, match="rounds must hold at least one round"):
        cost_model.measure_walks(node, [], rng)
