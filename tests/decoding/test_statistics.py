"""Where enumeration cannot reach: a larger vocabulary by chi-square, and SmolLM2 by a martingale."""

import numpy as np
import pytest
from scipy import stats

from mdsd_core.decoding.drafters import ModelDrafter
from mdsd_core.decoding.families import FAMILIES, scheme_family
from mdsd_core.decoding.generate import generate, streams
from mdsd_core.decoding.rules import NodeRule, tree_rule
from mdsd_core.decoding.scoring import CachedModel
from mdsd_core.decoding.tree import DraftTree
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import load_pair
from mdsd_core.prompts import load_prompts
from mdsd_core.study.statistics import bootstrap_mean
from mdsd_core.verifiers import Estimate, verifier, verifiers_for
from tests.decoding.oracle import make_loop
from tests.decoding.tiny import TableModel

SIZE = 40
CELLS = [
    (scheme, name)
    for scheme in FAMILIES
    if scheme != "spechub"
    for name in sorted(set(verifiers_for(scheme_family(scheme)(3))) & set(verifiers_for(scheme_family(scheme)(2))))
]


def check_pairs(scheme, name, runs):
    """The first two tokens at V = 40, by chi-square at level 1e-4 over cells of expected count >= 5."""
    target, draft = TableModel(SIZE, 1), TableModel(SIZE, 2)
    tree, family = DraftTree.from_branching((3, 2)), scheme_family(scheme)
    rule = tree_rule("node", verifier(name))
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


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "name"), CELLS)
def test_a_larger_vocabulary_for_every_verifier(scheme, name):
    check_pairs(scheme, name, 20000)


class Recorded(NodeRule):
    """Node by node, keeping (depth, accepted, given, exact) of each visit.

    ``given`` is the probability of acceptance for the drafts at hand, ``exact`` the acceptance before they were drawn;
    the difference of `accepted` from either, summed over visited nodes, is a martingale.
    """

    def __init__(self, rule):
        super().__init__(rule)
        self.visits = []

    def walk(self, tree, p, q, choices):
        walk = super().walk(tree, p, q, choices)
        for node, child in zip((0, *walk.path), (*walk.path, None), strict=True):
            drafts = tree.drafts[node]
            if drafts.size:
                scheme = tree.schemes[node]
                law = self.verifier.prepare(p[node], q[node], scheme).output_law(drafts)
                exact = self.verifier.acceptance(p[node], q[node], scheme)
                self.visits.append(
                    (
                        tree.depths[node] + 1,
                        child is not None,
                        law[np.unique(drafts)].sum(),
                        np.nan if isinstance(exact, Estimate) else exact,
                    )
                )
        return walk


def z_scores(visits):
    """By depth and over all, against both expectations: sums of differences over their standard deviations."""
    table = np.array(visits, dtype=float)
    scores = []
    for rows in (table, *(table[table[:, 0] == d] for d in np.unique(table[:, 0]))):
        for column in (2, 3):
            known = rows[~np.isnan(rows[:, column])]
            a = np.clip(known[:, column], 0.0, 1.0)
            variance = (a * (1 - a)).sum()
            if variance > 0.5:
                scores.append(float((known[:, 1] - a).sum() / np.sqrt(variance)))
    return scores


def smollm2():
    pair = load_pair("smollm2-135m", "smollm2-135m-skip4")
    return pair, CachedModel(pair.target.model, pair.vocab_size), CachedModel(pair.draft.model, pair.vocab_size)


@pytest.fixture(scope="module")
def twelve_prompts():
    """The pair, scorers of both models, and twelve prompts: enough for an interval over prompts."""
    pair, target, draft = smollm2()
    return target, draft, [pair.target.encode(prompt.text, chat=True)[:300] for prompt in load_prompts("mt_bench", 12)]


def martingale(target, draft, prompts, scheme, name, count, branching):
    """z-scores of all visits, and the tokens a round accepts and draws, with the prompt of each round."""
    rule = Recorded(verifier(name))
    family = scheme_family(scheme)
    tokens, of_prompt = [], []
    for i, prompt in enumerate(prompts):
        loop, _ = make_loop(
            target,
            ModelDrafter(draft),
            prompt,
            streams(i, 1)[0],
            DraftTree.from_branching(branching),
            family,
            rule,
            count=count,
            sampling=SamplingParams(temperature=0.7),
        )
        while loop.active:
            loop.step()
        tokens += [record.accepted + 1 for record in loop.records]
        of_prompt += [str(i)] * len(loop.records)
    return z_scores(rule.visits), tokens, of_prompt


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
@pytest.mark.parametrize(
    ("scheme", "name"),
    [
        (scheme, name)
        for scheme in FAMILIES
        if scheme != "spechub"
        for name in sorted(set(verifiers_for(scheme_family(scheme)(4))) & set(verifiers_for(scheme_family(scheme)(2))))
    ],
)
def test_acceptance_on_smollm2_is_the_exact_one(scheme, name, twelve_prompts, record_property):
    """skip4, T = 0.7, tree (4, 2, 2): |z| < 4 (6e-5 a score, two-sided) over all visits and at every depth."""
    scores, tokens, of_prompt = martingale(*twelve_prompts, scheme, name, 20, (4, 2, 2))
    efficiency = bootstrap_mean(tokens, of_prompt, seed=0)
    record_property("z", [round(z, 2) for z in scores])
    record_property("block_efficiency", [round(x, 3) for x in (efficiency.mean, efficiency.low, efficiency.high)])
    print(f"{scheme}, {name}: z {scores}; {len(tokens)} rounds, block efficiency {efficiency}")  # with `pytest -rP`
    assert len(scores) >= 4  # against the drafts at hand: over all, and at each of three depths
    assert max(abs(z) for z in scores) < 4
