"""Settings compared: tokens a round by hand, costs that add up, and one best."""

import dataclasses

import numpy as np
import pytest

from mdsd_core.distributions import SamplingParams
from mdsd_core.models import tiny_random_pair
from mdsd_core.models.prompts import Prompt
from mdsd_core.schemes import WithoutReplacement, WithReplacement
from mdsd_core.schemes.names import FAMILIES
from mdsd_core.verifiers import Estimate, verifier
from mdsd_study.analysis.compare_models import contexts_of_pair, measure_passes
from mdsd_study.analysis.compare_plot import draw_settings
from mdsd_study.analysis.compare_settings import Contexts, best_setting, compare_settings
from mdsd_study.analysis.cost_model import PassCost, RoundCost


def contexts(windows, prompts=("a", "a", "b"), V=5):
    rng = np.random.default_rng(3)
    pairs = [(rng.dirichlet(np.ones(V)), rng.dirichlet(np.ones(V))) for _ in prompts]
    return Contexts(pairs, prompts, np.array(windows))


def chosen(settings, scheme, rule):
    [setting] = [s for s in settings if (s.scheme, s.verifier) == (scheme, rule)]
    return setting


def test_tokens_of_a_round_by_hand():
    given = contexts([[0, 1], [1, 2]])
    a = [verifier("rrs").acceptance(p, q, WithReplacement(2)) for p, q in given.pairs]
    setting = chosen(compare_settings(given, [2]), "with_replacement", "rrs")
    assert setting.acceptance.mean == pytest.approx(np.mean(a), abs=1e-15)
    by_hand = 1 + (a[0] + a[0] * a[1] + a[1] + a[1] * a[2]) / 2
    assert setting.tokens_per_round == pytest.approx(by_hand, abs=1e-14)


def test_a_scheme_of_several_names_is_there_once():
    two, three = ({s.scheme for s in compare_settings(contexts([[0]], ("a",)), [n])} for n in (2, 3))
    assert two == set(FAMILIES) - {"top1_sampled"}  # with 2 drafts: greedy
    assert three == set(FAMILIES) - {"spechub"}


def test_costs_of_a_round_add_up():
    passes = RoundCost(PassCost((1, 7), (0.050, 0.080)), PassCost((1, 2), (0.015, 0.025)), 0.0, 0.0, 0.0)
    given = contexts([[0, 1], [1, 2]])
    for s in compare_settings(given, [2], passes):
        found = [verifier(s.verifier).acceptance(p, q, FAMILIES[s.scheme](2)) for p, q in given.pairs]
        a = [value.value if isinstance(value, Estimate) else value for value in found]
        whole = 120.0 + 3 * s.draw_ms + (1 + (a[0] + a[1]) / 2) * s.verify_ms
        assert s.nodes == 6
        assert s.round_ms == pytest.approx(whole, rel=1e-12)
        assert s.tokens_per_second == pytest.approx(1e3 * s.tokens_per_round / whole, rel=1e-12)
        assert s.speedup == pytest.approx(s.tokens_per_second / (1e3 / 50.0), rel=1e-12)


@pytest.mark.large
def test_an_interval_of_the_library_is_taken_in():
    given = contexts([[0], [1], [2]], V=400)
    values = [verifier("rrs_without").acceptance(p, q, WithoutReplacement(4)) for p, q in given.pairs]
    assert all(isinstance(value, Estimate) for value in values)
    alone = Contexts(given.pairs, ["a"] * 3, given.windows)
    for c in (given, alone):
        s = chosen(compare_settings(c, [4]), "without_replacement", "rrs_without")
        assert not s.exact
        assert s.acceptance.low <= np.mean([value.low for value in values]) + 1e-15
        assert s.acceptance.high >= np.mean([value.high for value in values]) - 1e-15


def test_the_best_is_the_fastest_and_else_that_of_most_tokens():
    one = compare_settings(contexts([[0]]), [1])[0]
    slow = dataclasses.replace(one, tokens_per_round=1.9, tokens_per_second=5.0)
    fast = dataclasses.replace(one, tokens_per_round=1.5, tokens_per_second=9.0)
    assert best_setting([slow, fast]) is fast
    many = dataclasses.replace(one, tokens_per_round=1.9, verify_ms=3.0)
    cheap = dataclasses.replace(one, tokens_per_round=1.9, verify_ms=0.1)
    assert best_setting([many, one, cheap]) is cheap


def test_contexts_of_a_pair_follow_each_other():
    pair = tiny_random_pair()
    prompts = [Prompt("own", str(i), text, False, "the user's own", True) for i, text in enumerate(("ab", "cde"))]
    every = contexts_of_pair(pair, prompts, SamplingParams(), tokens=7, stride=1)
    rounds = contexts_of_pair(pair, prompts, SamplingParams(), tokens=7, stride=3, depth=2)
    assert rounds.windows.tolist()[:2] == [[0, 1], [2, 3]]
    assert [rounds.prompts[i] for i in rounds.windows[:, 0]] == ["own/0", "own/0", "own/1", "own/1"]
    for place, position in zip(range(4), (0, 1, 3, 4)):
        np.testing.assert_array_equal(rounds.pairs[place][0], every.pairs[position][0])
        np.testing.assert_array_equal(rounds.pairs[place][1], every.pairs[position][1])
    with pytest.raises(ValueError, match="no text has 9 tokens"):
        contexts_of_pair(pair, prompts, SamplingParams(), tokens=7, depth=9)
    with pytest.raises(ValueError, match="stride must be an integer >= 1"):
        contexts_of_pair(pair, prompts, SamplingParams(), stride=0)


def test_the_passes_of_all_sizes_are_timed():
    passes = measure_passes(tiny_random_pair(), [1, 2, 3], [2, 1], depth=3)
    assert passes.target.tokens == (1, 4, 15)
    assert passes.draft.tokens == (1, 2, 4)
    assert min(*passes.target.seconds, *passes.draft.seconds) > 0


def test_every_scheme_is_gone_through_and_the_settings_can_be_drawn():
    seen = []
    settings = compare_settings(contexts([[0], [1], [2]]), [2, 3], progress=lambda rows: seen.extend(rows) or rows)
    assert [(n, name) for n, _, name in seen] == list(dict.fromkeys((s.n, s.scheme) for s in settings))
    assert len(draw_settings(settings).axes) == 2
