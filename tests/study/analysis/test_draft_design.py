"""Designs of drafts: tempering, rules that choose arms, their regret, and what a better joint law could be worth."""

import numpy as np
import pytest

from mdsd_core.schemes import (
    Deterministic,
    DistinctConditioned,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    greedy,
)
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_core.verifiers import verifier
from mdsd_study.analysis.draft_design import (
    Arm,
    arm_rates,
    best_joint_law,
    follow,
    held_out,
    inclusion_ceiling,
    inclusion_probabilities,
    regret,
    tempered,
)
from tests.transport_oracles import lp_rate


def test_tempered_is_a_softmax_at_another_temperature():
    logits = np.random.default_rng(0).normal(size=50) * 40
    q = np.exp(logits - logits.max())
    q /= q.sum()
    for beta in (0.2, 1.0, 1.7, 5.0):
        expected = np.exp(beta * (logits - logits.max()))
        assert np.abs(tempered(q, beta) - expected / expected.sum()).max() < 1e-14
    q.flags.writeable = False
    tempered(q, 2.0)
    for bad in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="beta must be finite and > 0"):
            tempered(q, bad)


def test_any_beta_is_lossless():
    """Drafts from q^beta, verified as such: the output is p by enumeration, whatever beta is."""
    p, q = np.array([0.5, 0.1, 0.15, 0.25]), np.array([0.1, 0.6, 0.2, 0.1])
    for beta in (0.3, 1.0, 2.5):
        drawn_from, scheme = tempered(q, beta), WithoutReplacement(2)
        plan = verifier("rrs_without").prepare(p, drawn_from, scheme)
        law = sum(weight * plan.output_law(row) for row, weight in zip(*scheme.enumerate(drawn_from), strict=True))
        assert 0.5 * np.abs(law - p).sum() < 1e-12


def test_arm_rates_are_the_optima_of_the_tempered_laws():
    rng = np.random.default_rng(1)
    arms = [Arm(scheme, beta) for scheme in (WithReplacement(2), greedy(2), Deterministic(2)) for beta in (0.5, 1, 2)]
    for _ in range(10):
        p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
        expected = [optimal_acceptance(p, tempered(q, arm.beta), arm.scheme).rate for arm in arms]
        assert arm_rates(p, q, arms).tolist() == expected


def test_the_choice_depends_on_the_past_only():
    rewards = np.random.default_rng(2).random((40, 3))
    chosen = follow(rewards, start=2)
    assert chosen[0] == 2
    for step in (5, 20, 39):
        changed = rewards.copy()
        changed[step:] = np.random.default_rng(3).random((40 - step, 3))
        assert (follow(changed, start=2)[: step + 1] == chosen[: step + 1]).all()
    by_hand = [2, *(int(np.argmax(rewards[:t].sum(axis=0))) for t in range(1, 40))]
    assert chosen.tolist() == by_hand


def test_start_wins_ties_then_the_lowest():
    assert follow([[0.5, 0.5, 0.5], [0.5, 0.0, 0.5], [0.0, 0.0, 0.0]], start=1).tolist() == [1, 1, 0]


def test_regret_stays_below_the_bound_on_any_stream():
    rng = np.random.default_rng(4)
    streams = [rng.random((60, 4)) for _ in range(50)]
    streams += [rng.normal(size=(30, 2)) for _ in range(20)]
    streams.append(np.array([[0.5, 0.0]] + [[0.0, 1.0], [1.0, 0.0]] * 20))  # what an adversary does to a leader
    for rewards in streams:
        *before, _ = chosen = follow(np.vstack([rewards, np.zeros_like(rewards[:1])]))
        steps, after = np.arange(len(rewards)), chosen[1:]
        bound = (rewards[steps, after] - rewards[steps, before]).sum()  # the leader after a step against that before it
        assert regret(rewards, before) <= bound + 1e-9
    adversary = streams[-1]
    assert regret(adversary, follow(adversary)) >= 19  # grows with every step: no guarantee without assumptions


def test_regret_is_bounded_where_steps_are_exchangeable():
    """Two arms 0.1 apart: the loss after 4,000 steps is that after 1,000, while a fixed wrong arm loses 0.1 a step."""
    losses = {1000: [], 4000: []}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rewards = np.clip(np.array([0.5, 0.6]) + 0.2 * rng.normal(size=(4000, 2)), 0, 1)
        chosen = follow(rewards)
        for steps, found in losses.items():
            found.append(regret(rewards[:steps], chosen[:steps]))
    assert np.mean(losses[4000]) < 2.0
    assert np.mean(losses[4000]) < np.mean(losses[1000]) + 0.5
    assert np.mean(losses[4000]) < 0.01 * 0.1 * 4000


def test_groups_have_leaders_of_their_own():
    rewards = np.array([[1.0, 0.0], [0.0, 1.0]] * 10)
    groups = np.array([0, 1] * 10)
    assert follow(rewards, groups=groups)[2:].tolist() == [0, 1] * 9
    assert regret(rewards, follow(rewards, groups=groups)) == -9  # better than any single arm
    assert regret(rewards, follow(rewards)) >= 0
    with pytest.raises(ValueError, match="groups must have one entry a step"):
        follow(rewards, groups=groups[:3])


def test_held_out_never_sees_its_own_prompt():
    rng = np.random.default_rng(5)
    rewards, prompts = rng.random((60, 4)), [f"p{i % 6}" for i in range(60)]
    chosen = held_out(rewards, prompts)
    for name in set(prompts):
        own = np.array(prompts) == name
        assert set(chosen[own]) == {int(np.argmax(rewards[~own].sum(axis=0)))}
        changed = np.where(own[:, None], rng.random((60, 4)), rewards)
        assert (held_out(changed, prompts)[own] == chosen[own]).all()
    # a outweighs the others, and is alone in what it likes
    assert held_out([[10.0, 0.0], [0.0, 5.0], [0.0, 4.0]], ["a", "b", "c"]).tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match="two or more prompts"):
        held_out(rewards, ["a"] * 60)


SCHEMES = [WithReplacement(2), WithoutReplacement(2), DistinctConditioned(2), greedy(2), TopThenSampled(1, 2)]


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_inclusion_against_enumeration_and_the_ceiling(scheme):
    rng = np.random.default_rng(6)
    for _ in range(20):
        p, q = rng.dirichlet(np.full(5, 0.6)), rng.dirichlet(np.full(5, 0.6))
        expected = np.zeros(5)
        for row, weight in zip(*scheme.enumerate(q), strict=True):
            expected[np.unique(row)] += weight
        assert np.abs(inclusion_probabilities(q, scheme) - expected).max() < 1e-12
        assert optimal_acceptance(p, q, scheme).rate <= inclusion_ceiling(p, q, scheme) + 1e-12


def test_the_best_joint_law_lies_between_the_rate_and_the_ceiling():
    rng = np.random.default_rng(7)
    strict = 0
    for n in (2, 3):
        for _ in range(25):
            p, q = rng.dirichlet(np.full(5, 0.6)), rng.dirichlet(np.full(5, 0.6))
            scheme = WithoutReplacement(n)
            best = best_joint_law(p, inclusion_probabilities(q, scheme), n)
            rate = optimal_acceptance(p, q, scheme).rate
            assert rate - 1e-9 <= best <= inclusion_ceiling(p, q, scheme) + 1e-9
            strict += best > rate + 1e-6
    assert strict > 5
    # one draft: the inclusion probabilities are the law
    assert best_joint_law([0.6, 0.4], [0.3, 0.7], 1) == pytest.approx(0.7, abs=1e-9)


def test_the_best_joint_law_is_attained_by_a_law():
    """Two drafts on three tokens: the inclusion probabilities determine the law, and its LP is the answer."""
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    scheme = WithoutReplacement(2)
    best = best_joint_law(p, inclusion_probabilities(q, scheme), 2)
    assert best == pytest.approx(lp_rate(p, q, scheme), abs=1e-9)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="start must be an arm"):
        follow([[0.1, 0.2]], start=2)
    with pytest.raises(ValueError, match="rewards must be a finite table"):
        follow([[0.1, np.nan]])
    with pytest.raises(ValueError, match="rewards must be a finite table"):
        follow([0.1, 0.2])
    with pytest.raises(ValueError, match="chances must be 3 probabilities"):
        best_joint_law([0.5, 0.3, 0.2], [0.5, 0.5, 0.5], 2)
    with pytest.raises(ValueError, match="at most 12 tokens"):
        best_joint_law(np.full(13, 1 / 13), np.full(13, 2 / 13), 2)
