"""The law of the loop's output is the target's: exact enumeration of every random choice the loop makes."""

from collections import defaultdict

import numpy as np
import pytest

from mdsd_core.decoding.drafters.base import ModelDrafter
from mdsd_core.decoding.scoring import CachedModel
from mdsd_core.distributions import SamplingParams
from mdsd_core.schemes.names import FAMILIES, scheme_family
from mdsd_core.trees.rules import tree_rule
from mdsd_core.trees.selection import selects
from mdsd_core.trees.shape import DraftTree
from mdsd_core.verifiers import Optimal, verifier, verifiers_for
from tests.decoding.oracle import (
    Remembering,
    Selecting,
    autoregressive_law,
    distance,
    enumerate_runs,
    law_of_rounds,
    make_loop,
)
from tests.decoding.tiny import TableModel, model, path_logits
from tests.instances import fewer

PROMPT = [0]
SIZE = 3

TREES = {
    "1": DraftTree.chain(1),
    "2": DraftTree.from_branching((2,)),
    "1,1": DraftTree.chain(2),
    "2,1": DraftTree.from_branching((2, 1)),
    "1,2": DraftTree.from_branching((1, 2)),
    "2,2": DraftTree.from_branching((2, 2)),
    "uneven": DraftTree.from_children({(): 2, (0,): 2}),
}


def rule_of(name, rule_name):
    """A tree rule; the path rule needs nothing of its verifier but the name."""
    return tree_rule(rule_name, Selecting() if name == "selecting" else Remembering(verifier(name)))


def cells():
    """Every tree x scheme x verifier x tree rule that is claimed lossless."""
    for label, tree in TREES.items():
        numbers = {len(row) for row in tree.children if row}
        for scheme_name in FAMILIES:
            if scheme_name == "spechub" and numbers != {2}:
                continue
            schemes = [scheme_family(scheme_name)(n) for n in numbers]
            names = sorted(set.intersection(*(set(verifiers_for(scheme)) for scheme in schemes)))
            rules = [(name, "node") for name in names]
            if all(selects(scheme) for scheme in schemes):
                rules += [("selecting", "node"), ("selecting", "path")]
            many = scheme_name in ("with_replacement", "without_replacement", "distinct", "spechub")
            for name, rule_name in rules:
                # many drafted trees a round, each with all its verdicts: the rest runs in `make test-slow`
                dear = many and (tree == TREES["2,2"] or (tree.size > 2 and name in ("token_matching", "kseq")))
                marks = [pytest.mark.slow] if dear else []
                yield pytest.param(
                    tree, scheme_name, name, rule_name, marks=marks, id=f"{label}-{scheme_name}-{name}-{rule_name}"
                )


def table_makers(target, draft, tree, scheme_name, rule, eos=()):
    def make(oracle, context):
        return make_loop(
            target,
            ModelDrafter(draft),
            [*PROMPT, *context],
            oracle,
            tree,
            scheme_family(scheme_name),
            rule,
            eos=frozenset(eos),
        )

    return make


@pytest.mark.usefixtures("memoised_selection")
@pytest.mark.parametrize(("tree", "scheme", "name", "rule_name"), fewer(list(cells()), 3))
def test_first_three_tokens_have_the_target_law(tree, scheme, name, rule_name):
    check_law(tree, scheme, name, rule_name, 1, 0.0, 0.0)
    if tree.size <= 2:  # zeros in p and q, small supports
        check_law(tree, scheme, name, rule_name, 2, 0.35, 0.35)


@pytest.mark.usefixtures("memoised_selection")
@pytest.mark.parametrize(("name", "rule_name"), [("rrs", "node"), ("selecting", "path")])
def test_the_largest_trees_with_small_supports(name, rule_name):
    check_law(TREES["2,2"], "with_replacement", name, rule_name, 1, 0.0, 0.6)


def check_law(tree, scheme, name, rule_name, seed, zeros, draft_zeros):
    target, draft = TableModel(SIZE, seed, zeros=zeros), TableModel(SIZE, seed + 100, zeros=draft_zeros)
    rule = rule_of(name, rule_name)
    law = law_of_rounds(table_makers(target, draft, tree, scheme, rule), 3)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    assert distance(law, autoregressive_law(target.p, PROMPT, 3, SIZE)) < 1e-10


@pytest.mark.usefixtures("memoised_selection")
@pytest.mark.parametrize("rule_name", ["node", "path"])
def test_a_coarse_plan_has_the_target_law(rule_name):
    rule = tree_rule(rule_name, Remembering(Optimal(tolerance=0.1)))
    target, draft = TableModel(SIZE, 5), TableModel(SIZE, 105)
    law = law_of_rounds(table_makers(target, draft, TREES["2,1"], "without_replacement", rule), 3)
    assert distance(law, autoregressive_law(target.p, PROMPT, 3, SIZE)) < 1e-10


@pytest.mark.parametrize("tree", ["2", "1,1", "2,1"])
def test_an_end_of_sequence_token_ends_the_text_wherever_it_falls(tree):  # F1
    target, draft = TableModel(SIZE, 3), TableModel(SIZE, 103)
    rule = tree_rule("node", Remembering(verifier("rrs")))
    law = law_of_rounds(table_makers(target, draft, TREES[tree], "with_replacement", rule, eos=(1,)), 3)
    assert distance(law, autoregressive_law(target.p, PROMPT, 3, SIZE, eos=(1,))) < 1e-10


@pytest.mark.parametrize("tree", ["1,1", "2,1"])
def test_trees_that_end_with_the_text(tree):
    """With ``trim`` the last rounds draw shallower trees: the law stays, and nothing is drawn in vain."""
    target, draft = TableModel(SIZE, 5), TableModel(SIZE, 105)
    rule = tree_rule("node", Remembering(verifier("rrs")))

    def make(oracle, context):
        return make_loop(
            target, ModelDrafter(draft), [*PROMPT, *context], oracle, TREES[tree], scheme_family("with_replacement"),
            rule, count=3 - len(context), trim=True,
        )  # fmt: skip

    law = law_of_rounds(make, 3)
    assert distance(law, autoregressive_law(target.p, PROMPT, 3, SIZE)) < 1e-10

    def drawn(oracle):
        loop, _ = make(oracle, (0, 0))
        loop.step()
        return loop.records[0].drawn, loop.draft_calls

    assert {result for _, result in enumerate_runs(drawn)} == {(0, 0)}


@pytest.mark.parametrize(("tree", "scheme"), [("1,1", "with_replacement"), ("2", "greedy")])
def test_whole_runs_over_several_rounds(tree, scheme):
    """The same law without the step from round to round taken by the test: every run of three tokens in full."""
    target, draft = TableModel(SIZE, 4), TableModel(SIZE, 104)
    name = "rrs" if scheme == "with_replacement" else "rrs_without"
    rule = tree_rule("node", Remembering(verifier(name)))
    law = defaultdict(float)

    def run(oracle):
        loop, request = make_loop(
            target, ModelDrafter(draft), PROMPT, oracle, TREES[tree], scheme_family(scheme), rule, count=3
        )
        while loop.active:
            loop.step()
        return tuple(request.new_tokens)

    for weight, tokens in enumerate_runs(run):
        law[tokens] += weight
    assert distance(law, autoregressive_law(target.p, PROMPT, 3, SIZE)) < 1e-10


@pytest.mark.parametrize(("tree", "temperature"), [("2", 1.0), pytest.param("2,1", 0.5, marks=pytest.mark.slow)])
def test_real_models_with_their_caches(tree, temperature):
    """The same with tiny transformers: two rounds or three in a row, caches and all."""
    causal_lm = model(vocab_size=SIZE, seed=1)
    target, draft = CachedModel(causal_lm), CachedModel(model(vocab_size=SIZE, seed=2))
    sampling = SamplingParams(temperature=temperature)
    rule = tree_rule("node", Remembering(verifier("rrs_without")))

    def make(oracle, context):
        return make_loop(
            target,
            ModelDrafter(draft),
            [*PROMPT, *context],
            oracle,
            TREES[tree],
            scheme_family("without_replacement"),
            rule,
            sampling=sampling,
        )

    def p(context):
        z = path_logits(causal_lm, context).numpy() / temperature
        z = np.exp(z - z.max())
        return z / z.sum()

    assert distance(law_of_rounds(make, 3), autoregressive_law(p, PROMPT, 3, SIZE)) < 1e-10


def acceptance_of_nodes(target, draft, tree, scheme, rule):
    """P(the accepted path goes through s) for every token path s, by enumeration of a round."""
    through = defaultdict(float)

    def run(oracle):
        loop, request = make_loop(target, ModelDrafter(draft), PROMPT, oracle, tree, scheme_family(scheme), rule)
        loop.step()
        return tuple(request.new_tokens[: loop.records[0].accepted])

    for weight, path in enumerate_runs(run):
        for depth in range(1, len(path) + 1):
            through[path[:depth]] += weight
    return through


@pytest.mark.usefixtures("memoised_selection")
@pytest.mark.parametrize(
    ("tree", "scheme"),
    [
        pytest.param(*cell.values[:2], marks=cell.marks, id=cell.id)
        for cell in cells()
        if cell.values[3] == "path" and cell.values[0].depth == 2
    ],
)
def test_the_path_rule_accepts_every_node_at_least_as_often(tree, scheme):
    gain = 0.0
    for seed in range(3):
        target, draft = TableModel(SIZE, seed), TableModel(SIZE, seed + 50)
        node, path = (
            acceptance_of_nodes(target, draft, tree, scheme, rule_of("selecting", name)) for name in ("node", "path")
        )
        assert all(path[s] >= node[s] - 1e-12 for s in node)
        gain += sum(path.values()) - sum(node.values())
    assert gain >= -1e-12
