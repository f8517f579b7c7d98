"""Where enumeration cannot reach: a larger vocabulary by chi-square, and SmolLM2 by a martingale."""

import numpy as np
import pytest
from scipy import stats

from mdsd_core.decoding.drafters.base import ModelDrafter
from mdsd_core.decoding.generate import generate, streams
from mdsd_core.decoding.scoring import CachedModel
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import load_pair
from mdsd_core.models.prompts import load_prompts
from mdsd_core.schemes.names import FAMILIES, scheme_family, scheme_of
from mdsd_core.trees.rules import tree_rule
from mdsd_core.trees.selection import selects
from mdsd_core.trees.shape import DraftTree
from mdsd_core.verifiers import Verdict, verifier
from mdsd_study.analysis.target_law_in_the_loop import lossless_cells, scores, watched_run
from tests.decoding.oracle import Remembering, make_loop
from tests.decoding.tiny import TableModel

SIZE = 40


def check_pairs(scheme, name, runs, rule_name="node"):
    """The first two tokens at V = 40, by chi-square at level 1e-4 over cells of expected count >= 5."""
    target, draft = TableModel(SIZE, 1), TableModel(SIZE, 2)
    tree, family = DraftTree.from_branching((3, 2)), scheme_family(scheme)
    rule = tree_rule(rule_name, Remembering(verifier(name)))  # plans are made once a context
    counts = np.zeros((SIZE, SIZE))
    for choices in streams(3, runs):
        loop, request = make_loop(target, ModelDrafter(draft), [0], choices, tree, family, rule, count=2)
        while loop.active:
            loop.step()
        counts[tuple(request.new_tokens)] += 1
    first = target.p([0])
    want = runs * np.array([first[x] * target.p([0, x]) for x in range(SIZE)])
    big = want >= 5
    observed = [*counts[big], counts[~big].sum()]
    expected = [*want[big], want[~big].sum()]
    assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_a_larger_vocabulary():
    check_pairs("without_replacement", "rrs_without", 1500)


def able(name, n):
    """Whether the path rule serves so many drafts of a scheme at a node."""
    scheme = scheme_of(name, n)
    return scheme is not None and selects(scheme)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "name"), lossless_cells((3, 2)))
def test_a_larger_vocabulary_for_every_verifier(scheme, name):
    check_pairs(scheme, name, 20000)


@pytest.mark.slow
@pytest.mark.usefixtures("memoised_selection")
@pytest.mark.parametrize("scheme", [name for name in FAMILIES if all(able(name, n) for n in (3, 2))])
def test_a_larger_vocabulary_for_the_path_rule(scheme):
    check_pairs(scheme, "optimal", 20000, "path")


def smollm2():
    pair = load_pair("smollm2-135m", "smollm2-135m-skip4")
    return pair, CachedModel(pair.target.model, pair.vocab_size), CachedModel(pair.draft.model, pair.vocab_size)


@pytest.fixture(scope="module")
def twelve_prompts():
    """The pair, scorers of both models, and twelve prompts: enough for an interval over prompts."""
    pair, target, draft = smollm2()
    encoded = (pair.target.encode(prompt.text, chat=True) for prompt in load_prompts("mt_bench"))
    return target, draft, [ids for ids in encoded if len(ids) <= 60][:12]  # short ones: reading costs the most


@pytest.mark.model
def test_greedy_decoding_of_smollm2_is_plain_greedy():
    pair, target, draft = smollm2()
    prompt = pair.target.encode("Explain how tides work.", chat=True)
    greedy = SamplingParams(temperature=0)
    plain = generate(target, None, [prompt], sampling=greedy, max_new_tokens=10)
    for tree, scheme, name in (((2, 2), "without_replacement", "rrs_without"), ((1, 1), "with_replacement", "rrs")):
        result = generate(
            target, ModelDrafter(draft), [prompt], tree, scheme, name, sampling=greedy,
            draft_sampling=SamplingParams(), max_new_tokens=10, seeds=0,
        )  # fmt: skip
        assert result.tokens == plain.tokens
        assert result.metrics.accepted > 0


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.parametrize(("scheme", "name"), lossless_cells((4, 2, 2)))
def test_acceptance_on_smollm2_is_the_exact_one(scheme, name, twelve_prompts):
    """skip4, T = 0.7, tree (4, 2, 2): |z| < 4 (6e-5 a score, two-sided) over all visits and at every depth."""
    target, draft, prompts = twelve_prompts
    run = watched_run(
        target, ModelDrafter(draft), prompts, scheme, name, (4, 2, 2), SamplingParams(temperature=0.7),
        max_new_tokens=20, batch_size=12,
    )  # fmt: skip
    found = scores(run.visits)
    print(f"{scheme}, {name}: {found}; block efficiency {run.block_efficiency}")  # with `pytest -rP`
    assert {one.depth for one in found if one.given == "drafts"} == {0, 1, 2, 3} or scheme == "deterministic"
    assert run.largest < 4


class Biased(type(verifier("rrs"))):
    """Recursive rejection that accepts every other time whatever it should do: the exact law stays that of RRS."""

    def prepare(self, p, q, scheme):
        plan = super().prepare(p, q, scheme)
        honest = plan.verify

        def verify(drafts, rng):
            return Verdict(int(drafts[0]), 0) if rng.random() < 0.5 else honest(drafts, rng)

        object.__setattr__(plan, "verify", verify)
        return plan


def test_the_scores_see_a_bias_and_nothing_else():
    target, draft = TableModel(SIZE, 1), ModelDrafter(TableModel(SIZE, 2))
    largest = {}
    for rule in (verifier("rrs"), Biased()):
        run = watched_run(
            target, draft, [[i] for i in range(20)], "with_replacement", rule, (3, 2), SamplingParams(),
            max_new_tokens=25, batch_size=20,
        )  # fmt: skip
        largest[type(rule)] = {(one.given, one.depth): abs(one.z) for one in scores(run.visits)}
    honest, biased = largest.values()
    assert set(honest) == set(biased) == {(given, depth) for given in ("drafts", "nodes") for depth in (0, 1, 2)}
    assert max(honest.values()) < 4
    assert min(biased.values()) > 4
