"""Expected rounds from a text: shares against enumeration of drafts, rounds against enumeration of the loop."""

import itertools
from collections import defaultdict

import numpy as np
import pytest

from mdsd_core.decoding import NGramDrafter, PromptLookup, WittenBellTrigram, generate
from mdsd_core.decoding.drafters.base import ModelDrafter
from mdsd_core.decoding.generate import as_scorer
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import tiny_random_pair
from mdsd_core.schemes import WithoutReplacement, WithReplacement
from mdsd_core.schemes.names import FAMILIES, scheme_family
from mdsd_core.trees.rules import tree_rule
from mdsd_core.trees.shape import DraftTree
from mdsd_core.verifiers import UnsupportedScheme, verifier, verifiers_for
from mdsd_study.analysis import rounds as subject
from mdsd_study.analysis.acceptance_given_token import accepted_share, selected_share
from mdsd_study.analysis.drawn_rounds import record_rounds
from mdsd_study.analysis.rounds import (
    RoundRule,
    Rounds,
    drafted_positions,
    expected_rounds,
    shares_of_texts,
    tails,
)
from mdsd_study.measure.teacher_forcing import Position
from mdsd_study.measure.texts import Continuation
from tests.decoding.oracle import Remembering, Selecting, enumerate_runs, make_loop
from tests.decoding.tiny import TableModel
from tests.instances import random_pairs

PAIRS = [(p, q) for p, q in random_pairs(5, 24, sizes=range(2, 5)) if p.min() > 1e-6 or p.max() < 1]


def accepted_law(rule, p, q, scheme):
    """P(the verifier emits y, and y is drafted) for every y, by enumeration of all drafts."""
    law = np.zeros(p.size)
    for drafts, weight in zip(*scheme.enumerate(q), strict=True):
        drafted = np.unique(drafts[drafts >= 0])
        law[drafted] += weight * rule.prepare(p, q, scheme).output_law(drafts)[drafted]
    return law


def schemes_of(name):
    return [scheme_family(name)(n) for n in ((2,) if name == "spechub" else (1, 2, 3))]


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_accepted_shares_equal_enumeration(family):
    for p, q in PAIRS:
        for scheme in schemes_of(family):
            for name in verifiers_for(scheme):
                if name == "rrs_without" and scheme.drafts > 2:
                    continue  # sampled histories: below
                law = accepted_law(verifier(name), p, q, scheme)
                for y in np.flatnonzero(p > 1e-9):
                    share = accepted_share(name, p, q, scheme, int(y))
                    assert share * p[y] == pytest.approx(law[y], abs=1e-9), (name, scheme, p, q, y)


def test_sampled_histories_are_unbiased():
    p, q = np.array([0.1, 0.35, 0.35, 0.2]), np.array([0.5, 0.2, 0.2, 0.1])
    scheme = WithoutReplacement(3)
    law = accepted_law(verifier("rrs_without"), p, q, scheme)
    rng = np.random.default_rng(0)
    for y in range(4):
        share = accepted_share("rrs_without", p, q, scheme, y, rng=rng, histories=4000)
        assert share * p[y] == pytest.approx(law[y], abs=2e-3)
    with pytest.raises(ValueError, match="rng must be given"):
        accepted_share("rrs_without", p, q, scheme, 1)


def test_selected_shares_sum_to_one_and_to_the_optimal_acceptance():
    for p, q in PAIRS:
        for scheme in (WithReplacement(3), WithoutReplacement(2)):
            r = np.array([p[y] * selected_share(p, q, scheme, y) if p[y] > 0 else 0.0 for y in range(p.size)])
            accepted = [p[y] * accepted_share("optimal", p, q, scheme, y) for y in range(p.size) if p[y] > 0]
            assert r.sum() <= 1 + 1e-9
            assert np.minimum(p, r).sum() == pytest.approx(sum(accepted), abs=1e-9)


def loop_masses(target, draft, branching, scheme, rule):
    """P(the accepted path goes through s) for every token path s: a round of the loop, enumerated."""
    masses = defaultdict(float)

    def run(oracle):
        loop, request = make_loop(
            target, ModelDrafter(draft), [0], oracle, DraftTree.from_branching(branching), scheme_family(scheme), rule
        )
        loop.step()
        return tuple(request.new_tokens[: loop.records[0].accepted])

    for weight, path in enumerate_runs(run):
        for depth in range(1, len(path) + 1):
            masses[path[:depth]] += weight
    return masses


@pytest.mark.parametrize(
    ("verifier_name", "scheme", "rule_name", "branching"),
    [
        ("rrs", "with_replacement", "node", (2, 1)),
        ("kseq", "with_replacement", "node", (2, 1)),
        ("token_matching", "without_replacement", "node", (2, 1)),
        ("rrs_without", "without_replacement", "node", (2, 1)),
        ("greedy", "greedy", "node", (2, 2)),
        ("optimal", "with_replacement", "path", (1, 1)),
        ("optimal", "with_replacement", "path", (2, 1)),
        ("optimal", "greedy", "path", (2, 2)),
    ],
)
def test_tails_are_the_loop_s_masses_over_those_of_the_target(verifier_name, scheme, rule_name, branching):
    target, draft = TableModel(3, 7), TableModel(3, 107)
    made = Selecting() if rule_name == "path" else Remembering(verifier(verifier_name))
    masses = loop_masses(target, draft, branching, scheme, tree_rule(rule_name, made))
    for text in itertools.product(range(3), repeat=2):
        shares = []
        for n in branching:
            row, scheme_n = [], scheme_family(scheme)(n)
            for t, y in enumerate(text):
                p, q = target.p((0, *text[:t])), draft.p((0, *text[:t]))
                share = selected_share if rule_name == "path" else None
                row.append(share(p, q, scheme_n, y) if share else accepted_share(verifier_name, p, q, scheme_n, y))
            shares.append(row)
        rho, mass = tails(shares, rule_name)[0], 1.0
        for d in (1, 2):
            mass *= target.p((0, *text[: d - 1]))[text[d - 1]]
            assert rho[d] * mass == pytest.approx(masses[text[:d]], abs=1e-9), (text, d)


def simulate(rho, size, depth, ended, rng, runs):
    """Rounds over a text of which each starts where the last one ended, by the given tails."""
    started, accepted = 0, 0
    last = size if ended else size - depth + 1
    for _ in range(runs):
        t = 0
        while t < last:
            length = int(np.count_nonzero(rng.random() < rho[t, 1:]))
            started, accepted = started + 1, accepted + length
            t += length + 1
    return started / runs, accepted / runs


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("rule_name", ["node", "path"])
def test_expected_rounds_against_simulated_ones(ended, rule_name):
    rng = np.random.default_rng(3)
    shares = [rng.uniform(0.2, 1.6 if rule_name == "path" else 1.0, size=9) for _ in range(3)]
    found = expected_rounds(shares, rule_name, ended=ended)
    started, accepted = simulate(tails(shares, rule_name), 9, 3, ended, rng, 20_000)
    assert found.started == pytest.approx(started, rel=0.02)
    assert found.accepted == pytest.approx(accepted, rel=0.02)
    assert list(found.reached) == sorted(found.reached, reverse=True)
    assert len(found.reached) == 3


@pytest.mark.parametrize("rule", [RoundRule("rrs", "with_replacement"), RoundRule("greedy", "greedy")])
@pytest.mark.parametrize("branching", [(2,), (2, 2), (2, 1, 2)])
def test_decisions_of_a_round_against_recorded_ones(rule, branching):
    """At a leaf the bonus token is drawn without a decision: a round has one decision less than tokens there."""
    pair = tiny_random_pair(3, noise=0.3)
    chance = {depth: 0.0 for depth in range(len(branching) + 1)}
    rounds = record_rounds(
        as_scorer(pair.target), ModelDrafter(as_scorer(pair.draft)), [1, 2], DraftTree.from_branching(branching),
        rule.scheme, rule.verifier, SamplingParams(), rounds=60, seed=4,
    )  # fmt: skip
    for one in rounds:
        chance[one.accepted] += 1.0
    decided = sum(len([n for n in (0, *one.walk.path) if one.tree.drafts[n].size]) for one in rounds)
    reached = tuple(sum(chance[d] for d in range(depth, len(chance))) for depth in range(1, len(chance)))
    assert chance[len(branching)] > 0
    assert Rounds(float(len(rounds)), reached).decisions == decided
    assert decided < sum(one.accepted + 1 for one in rounds)


def test_only_a_rule_that_goes_node_by_node_has_expected_decisions():
    pair, params = tiny_random_pair(4), SamplingParams()
    text = Continuation("toy/0", prompt=(1, 2), tokens=(3, 1, 0, 2))
    node, path = (RoundRule("optimal", "with_replacement", name) for name in ("node", "path"))
    table = shares_of_texts(pair.target, pair.draft, [text], [(node, (2, 2)), (path, (2, 2))], params)
    rounds = table.rounds("toy/0", node, (2, 2))
    assert table.decisions(node, (2, 2)) == pytest.approx(1 + rounds.reached[0] / rounds.started)
    with pytest.raises(ValueError, match="rule must go node by node"):
        table.decisions(path, (2, 2))


def test_a_text_shorter_than_the_tree_has_no_countable_round():
    assert expected_rounds([[0.5], [0.5], [0.5]]).started == 0.0
    assert expected_rounds([[0.5], [0.5], [0.5]], ended=True) == subject.Rounds(1.0, (0.5, 0.0, 0.0))


def test_bad_input_is_named():
    p, q = np.array([1.0, 0.0]), np.array([0.5, 0.5])
    with pytest.raises(ValueError, match="got token 1"):
        accepted_share("rrs", p, q, WithReplacement(2), 1)
    with pytest.raises(UnsupportedScheme, match="not lossless"):
        accepted_share("rrs", p, q, WithoutReplacement(2), 0)
    with pytest.raises(ValueError, match="path"):
        RoundRule("rrs", "with_replacement", "path")
    with pytest.raises(ValueError, match="tree_rule"):
        RoundRule("rrs", "with_replacement", "layer")


def test_expectations_over_texts_are_those_of_decoding_runs():
    """Texts of a tiny model, many of them: expected block efficiency against that of as many decoding runs."""
    pair = tiny_random_pair(7)
    prompts = [(i % 7, 3) for i in range(60)]
    made = generate(pair.target, None, prompts, max_new_tokens=24, seeds=1, eos_token_ids=())
    texts = [Continuation(f"t/{i}", p, tuple(t)) for i, (p, t) in enumerate(zip(prompts, made.tokens, strict=True))]
    rules = [RoundRule("rrs", "with_replacement"), RoundRule("optimal", "with_replacement", "path")]
    table = shares_of_texts(pair.target, pair.draft, texts, [(rule, (2, 2)) for rule in rules], SamplingParams())
    for rule in rules:
        run = generate(
            pair.target, pair.draft, prompts, (2, 2), rule.scheme, rule.verifier, rule.tree_rule,
            max_new_tokens=24, seeds=2, eos_token_ids=(),
        )  # fmt: skip
        found = table.block_efficiency(rule, (2, 2))
        # 60 texts of 24 tokens: both figures have a standard error of about 0.02
        assert found.mean == pytest.approx(run.metrics.block_efficiency, abs=0.1)
        assert found.low < found.mean < found.high
        by_depth = table.acceptance_by_depth(rule, (2, 2))
        assert found.mean == pytest.approx(1 + by_depth[0] * (1 + by_depth[1]), abs=1e-12)
        assert by_depth == pytest.approx(run.metrics.acceptance_by_depth, abs=0.1)
    gain = table.gain(rules[1], rules[0], (2, 2))
    assert gain.mean == pytest.approx(
        table.block_efficiency(rules[1], (2, 2)).mean - table.block_efficiency(rules[0], (2, 2)).mean, abs=1e-12
    )


def test_drafts_beyond_the_end_of_a_text_do_not_exist():
    rule = RoundRule("rrs", "with_replacement")
    table = subject.ShareTable([(rule, (1, 1))], "d")
    p = np.array([0.5, 0.5])
    for index in range(3):
        table.add(Position("t/0", index, 0, p, {"d": p}), ends=index == 2)
    assert table.rounds("t/0", rule, (1, 1)) == subject.Rounds(1.0, (1.0, 1.0))
    table.add(Position("t/1", 0, 0, p, {"d": p}), ends=True)
    assert table.rounds("t/1", rule, (1, 1)) == subject.Rounds(1.0, (1.0, 0.0))


def test_drafters_without_a_model():
    """Look-up: the expected block efficiency against decoding; n-gram: q is the trigram's own distribution."""
    pair = tiny_random_pair(7)
    prompts = [(i % 7, 3, (i + 2) % 7, 3, i % 7) for i in range(40)]
    made = generate(pair.target, None, prompts, max_new_tokens=30, seeds=1, eos_token_ids=())
    texts = [Continuation(f"t/{i}", p, tuple(t)) for i, (p, t) in enumerate(zip(prompts, made.tokens, strict=True))]
    rule, lookup = RoundRule("deterministic", "deterministic"), PromptLookup(7)
    table = shares_of_texts(pair.target, lookup, texts, [(rule, (2, 1))], SamplingParams())
    run = generate(
        pair.target, lookup, prompts, (2, 1), rule.scheme, rule.verifier, max_new_tokens=30, seeds=2, eos_token_ids=()
    )
    assert table.block_efficiency(rule, (2, 1)).mean == pytest.approx(run.metrics.block_efficiency, abs=0.1)

    model = WittenBellTrigram.fit([t.tokens for t in texts], 7)
    found = list(
        drafted_positions(pair.target, NGramDrafter(model), texts[:1], SamplingParams(), SamplingParams(), most=1)
    )
    whole = [*texts[0].prompt, *texts[0].tokens]
    for position in found:
        past = whole[: len(texts[0].prompt) + position.index]
        assert position.q["draft"] == pytest.approx(model.distribution(past), abs=1e-12)
