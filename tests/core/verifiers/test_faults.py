"""Faults that users of speculative and multi-draft decoding have met, one test a kind.

`FAULTS` lists every fault of the project's catalogue (groups A to L and R) and says which test shows that its kind is
impossible here; faults of the decoding loop, of models, of solvers and of documents are tested beside those.
"""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from mdsd_core.schemes import (
    Deterministic,
    SpecHubPairs,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    greedy,
)
from mdsd_core.verifiers import UnsupportedScheme, verifier, verifiers_for
from mdsd_core.verifiers.deterministic import ChildrenPlan
from mdsd_core.verifiers.optimal import OptimalPlan
from tests.core.verifiers.cases import PAIRS, combinations, enumerated, label
from tests.core.verifiers.decision_tree import LAST, Injected, decision_law
from tests.instances import one_hot, total_variation

HERE = Path(__file__)
TESTS = HERE.parents[2]

#: Test files that name the faults they deal with by id.
LOOP = "decoding/test_faults.py"
GENERATE = "decoding/test_generate.py"
FAMILIES = "decoding/test_families.py"
METRICS = "decoding/test_metrics.py"

#: Single tests elsewhere.
LOADING = "decoding/models/test_loading.py::"
ORACLE = "core/transport/test_oracle.py::"

#: Fault id -> a test here (its name after ``test_``), a file that names the fault, ``file::test``, or a reason.
FAULTS = {
    "A3": LOOP,
    "A4": "argmax_drafts_are_a_kind_of_their_own",
    "A7": "temperature_zero_keeps_only_the_argmax",
    "A8": "deterministic_children_in_any_order",
    "A9": "acceptance_depends_on_the_kind_of_proposal",
    "A10": "acceptance_depends_on_the_kind_of_proposal",
    "A11": "drafts_from_another_law_than_q_would_show",
    "A12": "tokens_filtered_from_the_target_are_never_emitted",
    "A13": "restricting_q_to_the_support_of_p_is_lossless",
    "A15": "plans_do_not_share_anything",
    "B1": "not_finite_rows_raise",
    "B2": "not_finite_rows_raise",
    "B3": "not_finite_rows_raise",
    "B6": "no_additive_floor",
    "B7": "not_finite_rows_raise",
    "B9": "residual_is_the_positive_part_over_the_whole_vocabulary",
    "B10": "inputs_are_never_written",
    "B11": "acceptance_is_its_closed_form",
    "B13": "core/test_distributions.py::test_lowest_temperature_that_is_not_greedy_is_finite",
    "B15": "extreme_uniforms",
    "B16": GENERATE,
    "B17": "support_smaller_than_the_number_of_drafts",
    "C1": "one_target_draw_for_all_drafts",
    "C2": "law_of_the_second_draft_is_renormalised",
    "C3": "target_mass_used_up",
    "D1": "temperature_zero_keeps_only_the_argmax",
    "D2": "temperature_zero_ignores_the_uniforms",
    "D5": FAMILIES,
    "D6": LOOP,
    "D7": GENERATE,
    "D8": LOOP,
    "D9": "study/test_cli.py::test_bench_names_the_transforms_that_it_applies",
    "E1": LOOP,
    "E2": LOOP,
    "E3": LOOP,
    "E5": FAMILIES,
    "E6": "exactly_one_token",
    "E7": "every_emitted_token_has_been_judged",
    "E8": LOOP,
    "E9": LOOP,
    "E10": FAMILIES,
    "E11": LOOP,
    "F1": LOOP,
    "F2": LOOP,
    "F3": METRICS,
    "F6": METRICS,
    "F11": METRICS,
    "G1": LOOP,
    "G2": "plans_do_not_share_anything",
    "G3": "uniforms_drawn_as_documented",
    "G4": GENERATE + "::test_seeds",
    "G6": "uniforms_drawn_as_documented",
    "G7": "a_fresh_uniform_for_every_draft",
    "G8": GENERATE + "::test_long_prompts_are_fed_in_pieces",
    "G9": "nothing_is_drawn_before_the_drafts_are_checked",
    "H2": "padded_vocabulary",
    "H5": GENERATE + "::test_vocabularies_must_agree",
    "H6": LOADING + "test_difference_of_vocabularies_is_named",
    "H7": LOADING + "test_difference_of_vocabularies_is_named",
    "H12": LOOP,
    "H13": LOOP,
    "H14": "matching_a_greedy_draft",
    "I5": LOOP,
    "I6": LOOP,
    "I7": LOOP,
    "I8": LOOP,
    "I10": FAMILIES,
    "I11": LOOP,
    "I12": GENERATE,
    "I13": LOOP,
    "I14": LOOP,
    "I15": "decoding/tensor_rules/test_faults.py",
    "J2": "support_smaller_than_the_number_of_drafts",
    "J4": "extreme_uniforms",
    "J5": "low_precision_inputs",
    "K2": "out of scope: the oracles have no cost matrix, the LP maximises the flow on the arcs there are",
    "K3": "out of scope: no solver that keeps the type of its marginals is used",
    "K5": ORACLE + "test_anything_but_an_optimum_raises",
    "K6": "out of scope: an arc that is not allowed is no variable, nothing stands for infinity",
    "K9": ORACLE + "test_flow_of_the_lp_is_feasible_and_optimal",
    "K10": ORACLE + "test_a_wrong_solution_called_optimal_raises",
    "K11": ORACLE + "test_trivial_problems_never_reach_a_solver",
    "L1": "deterministic_children_in_any_order",
    "L2": "matching_is_exact_and_accepts_less",
    "L5": "out of scope: an argument in a thread, answered in the book",
    "R1": "one_ulp_apart",
    "R2": "top_n_drafts_are_not_samples",
    "R4": "support_smaller_than_the_number_of_drafts",
    "R8": LOADING + "test_a_swapped_pair_warns",
    "R10": "out of scope: no id is built in, the ids that end a text come from the tokenizer",
    "R11": "decoding/test_distributions.py::test_equals_the_warpers_of_transformers",
    "R12": "low_precision_inputs",
    "R13": "a_fresh_uniform_for_every_draft",
    "R15": "target_mass_used_up",
    "R16": "one_target_draw_for_all_drafts",
    "R17": "out of scope: swapped options of another program",
    "R19": "residual_by_token_not_by_place",
    "R21": "token_zero_is_a_token",
    "R22": "decoding/test_families.py::test_commit_takes_only_paths",
    "R23": "zero_probability_is_rejected_at_u_zero",
}

ALL = pytest.mark.parametrize(("rule", "scheme"), combinations((1, 2, 3)), ids=label)
THREE = pytest.mark.parametrize(("rule", "scheme"), combinations((1, 3)), ids=label)


def constant(u):
    """A source that gives one value for ever, and counts."""
    return Injected([u] * 100)


def test_every_fault_has_a_place():
    groups = {g: sum(1 for i in FAULTS if i.startswith(g)) for g in "ABCDEFGHIJKLR"}
    assert groups == dict(A=10, B=12, C=3, D=7, E=10, F=5, G=8, H=7, I=10, J=3, K=7, L=3, R=15)
    for fault, place in FAULTS.items():
        if place.startswith("out of scope: "):
            continue
        file, _, name = place.partition("::")
        if not file.endswith(".py"):
            assert f"def test_{place}(" in HERE.read_text(encoding="utf-8"), (fault, place)
            continue
        text = (TESTS / file).read_text(encoding="utf-8")
        here = rf"def {name}\(" if name else rf"def test_.*(?<![A-Za-z0-9]){fault}(?![0-9])"  # in a name or beside it
        assert re.search(here, text), (fault, place)


# --- A: the q of the rule is the law the drafts came from -------------------------------------------------------------


@pytest.mark.parametrize("name", ["rrs", "rrs_without", "kseq", "greedy", "spechub"])
def test_argmax_drafts_are_a_kind_of_their_own(name):
    with pytest.raises(UnsupportedScheme, match="deterministic"):
        verifier(name).prepare([0.5, 0.5], [0.6, 0.4], Deterministic(1))
    p, q = np.array([0.5, 0.5]), np.array([0.6, 0.4])
    for able in verifiers_for(Deterministic(1)):
        law, _ = enumerated(verifier(able).prepare(p, q, Deterministic(1)), Deterministic(1), q)
        np.testing.assert_allclose(law, p, atol=1e-15)


@ALL
def test_temperature_zero_keeps_only_the_argmax(rule, scheme):
    p, q = one_hot(3, 1), one_hot(3, 0)  # of (.3, .5, .2) and a draft model that prefers token 0
    plan = rule.prepare(p, q, scheme)
    drafts = scheme.sample(q, np.random.default_rng(0))
    for u in (0.0, 0.3, LAST):
        verdict = plan.verify(drafts, constant(u))
        assert (verdict.token, verdict.accepted_index) == (1, -1)
    assert rule.acceptance(p, q, scheme) == 0.0
    assert rule.acceptance(p, p, scheme) == 1.0


def test_deterministic_children_in_any_order():
    p = np.array([0.5, 0.3, 0.2])
    for name in verifiers_for(Deterministic(2)):
        plan = verifier(name).prepare(p, [0.4, 0.35, 0.25], Deterministic(2))
        for children in ([0, 1], [1, 0]):
            np.testing.assert_allclose(plan.output_law(children), p, atol=1e-15)
            np.testing.assert_allclose(decision_law(plan, children, 3), p, atol=1e-12)


def test_acceptance_depends_on_the_kind_of_proposal():
    half = [0.5, 0.5]
    assert verifier("rrs").acceptance(half, half, WithReplacement(1)) == 1.0
    assert verifier("deterministic").acceptance(half, half, Deterministic(1)) == 0.5
    for name in verifiers_for(WithReplacement(1)):  # a rule can say which one it is
        assert verifier(name).name == name


@THREE
def test_drafts_from_another_law_than_q_would_show(rule, scheme):
    p = np.array([0.665, 0.245, 0.09])
    q = p**2 / (p**2).sum()  # the draft at half the temperature
    law, _ = enumerated(rule.prepare(p, q, scheme), scheme, q)
    assert total_variation(law, p) <= 1e-12
    if rule.name in {"rrs", "rrs_without", "kseq", "greedy"} and not scheme.fixed_set(q).size:
        tuples, weights = scheme.enumerate(q)
        plan = rule.prepare(p, p, scheme)  # the rule is told p in place of q
        wrong = weights @ np.array([plan.output_law(drafts) for drafts in tuples])
        assert total_variation(wrong, p) > 0.01


@ALL
def test_tokens_filtered_from_the_target_are_never_emitted(rule, scheme):
    p, q = np.array([1.0, 0.0, 0.0]), np.array([0.2, 0.5, 0.3])  # min-p left one token of (.9, .06, .04)
    plan = rule.prepare(p, q, scheme)
    for drafts in scheme.enumerate(q)[0]:
        assert plan.output_law(drafts)[1:].tolist() == [0.0, 0.0]
        for u in (0.0, 0.5, LAST):
            assert plan.verify(drafts, constant(u)).token == 0


def test_restricting_q_to_the_support_of_p_is_lossless():
    p = [0.5, 0.5, 0.0, 0.0]
    assert verifier("rrs").acceptance(p, [0.25] * 4, WithReplacement(1)) == 0.5
    assert verifier("rrs").acceptance(p, p, WithReplacement(1)) == 1.0


@THREE
def test_plans_do_not_share_anything(rule, scheme):
    q = np.eye(3)
    p = np.array([[0.2, 0.5, 0.3], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]])
    plans = [rule.prepare(p[i], q[i], scheme) for i in range(3)]
    drafts = [scheme.sample(q[i], np.random.default_rng(0)) for i in range(3)]
    for i in (2, 0, 1, 0, 2):
        np.testing.assert_allclose(plans[i].output_law(drafts[i]), p[i], atol=1e-15)
        np.testing.assert_allclose(decision_law(plans[i], drafts[i], 3), p[i], atol=1e-12)


# --- B: residual, NaN, range ------------------------------------------------------------------------------------------


@THREE
def test_not_finite_rows_raise(rule, scheme):
    good = [0.0, 0.97, 0.03]
    bad = ([np.nan] * 3, [np.nan, 0.5, 0.5], [np.inf, 0.0, 0.0], [-0.5, 1.0, 0.5], [0.6, 0.4, 1e-3], [0.0] * 3)
    for row in bad:
        for work in (rule.prepare, rule.acceptance):
            with pytest.raises(ValueError, match="p"):
                work(row, good, scheme)
            with pytest.raises(ValueError, match="q"):
                work(good, row, scheme)
    with pytest.raises(ValueError, match="one vocabulary"):
        rule.prepare(good, [*good, 0.0], scheme)


def test_no_additive_floor():
    V = 152_000
    q = np.full(V, (1 - 1e-4) / (V - 1))
    q[77] = 1e-4
    p = q.copy()
    p[77], p[78:88] = p[77] + 5e-5, p[78:88] - 5e-6  # the residual is on token 77 alone
    for name, scheme in (("rrs", WithReplacement(2)), ("kseq", WithReplacement(2)), ("greedy", greedy(1))):
        law = verifier(name).prepare(p, q, scheme).output_law([80] * scheme.drafts)
        assert law[77] + law[80] == pytest.approx(1.0, abs=1e-7)
        assert law[77] > 0.4


def test_residual_is_the_positive_part_over_the_whole_vocabulary():
    p, q = np.array([0.4, 0.3, 0.3]), np.array([0.1, 0.5, 0.4])
    for name in ("rrs", "kseq"):
        plan = verifier(name).prepare(p, q, WithReplacement(1))
        law, _ = enumerated(plan, WithReplacement(1), q)
        np.testing.assert_allclose(law, p, atol=1e-15)
        np.testing.assert_allclose(plan.output_law([1]), [0.4, 0.6, 0.0], atol=1e-15)


@ALL
def test_inputs_are_never_written(rule, scheme):
    for p, q in PAIRS[:23]:
        p, q = p.copy(), q.copy()
        drafts = scheme.sample(q, np.random.default_rng(1))
        before = p.copy(), q.copy(), drafts.copy()
        for array in (p, q, drafts):
            array.flags.writeable = False
        plan = rule.prepare(p, q, scheme)
        plan.verify(drafts, np.random.default_rng(2))
        plan.output_law(drafts)[:] = 0.5  # what is given out is not the plan's own
        rule.acceptance(p, q, scheme)
        plan.verify(drafts, np.random.default_rng(3))
        for array, copy in zip((p, q, drafts), before):
            assert array.tobytes() == copy.tobytes()


@THREE
def test_views_of_larger_arrays_give_the_same(rule, scheme):
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.45, 0.35])
    wide = np.full((3, 4), 7.0)
    wide[:, 1], wide[:, 3] = p, q
    drafts = scheme.sample(q, np.random.default_rng(0))
    strided = np.stack((drafts, drafts), axis=1)[:, 0]
    plain, viewed = rule.prepare(p, q, scheme), rule.prepare(wide[:, 1], wide[:, 3], scheme)
    assert viewed.output_law(strided).tolist() == plain.output_law(drafts).tolist()
    for seed in range(5):
        first = plain.verify(drafts, np.random.default_rng(seed))
        assert viewed.verify(strided, np.random.default_rng(seed)) == first


def test_acceptance_is_its_closed_form():
    p, q = [0.1, 0.9], [0.9, 0.1]
    for name in ("rrs", "kseq"):
        assert verifier(name).acceptance(p, q, WithReplacement(1)) == pytest.approx(0.2, abs=1e-15)
    assert verifier("rrs_without").acceptance(p, q, WithoutReplacement(1)) == pytest.approx(0.2, abs=1e-15)


@ALL
def test_extreme_uniforms(rule, scheme):
    for p, q in PAIRS[:60]:
        plan = rule.prepare(p, q, scheme)
        for drafts in scheme.sample(q, np.random.default_rng(3), size=2):
            for u in (0.0, LAST, 1.0 - 2.0**-24):
                verdict = plan.verify(drafts, constant(u))
                assert 0 <= verdict.token < p.size
                assert p[verdict.token] > 0.0
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.3, 0.2])
    plan = rule.prepare(p, q, scheme)
    for drafts in scheme.enumerate(q)[0]:
        assert plan.verify(drafts, constant(LAST)).token != 2


# --- C, D, E: several drafts, temperature zero, one token -------------------------------------------------------------


def test_one_target_draw_for_all_drafts():
    p = np.array([0.5, 0.5])
    plan = verifier("token_matching").prepare(p, [1.0, 0.0], WithReplacement(3))
    np.testing.assert_allclose(decision_law(plan, [0, 0, 0], 2), p, atol=1e-12)
    source = Injected([0.7] * 9)
    plan.verify([0, 0, 0], source)
    assert source.used == 1


def test_law_of_the_second_draft_is_renormalised():
    p, q = np.array([0.1, 0.3, 0.6]), np.array([0.5, 0.3, 0.2])
    plan = verifier("rrs_without").prepare(p, q, WithoutReplacement(2))
    # 0 is accepted with .2; the residual is then (0, 0, 1), and 1, drawn with probability .6, has nothing of it
    np.testing.assert_allclose(plan.output_law([0, 1]), [0.2, 0.0, 0.8], atol=1e-15)
    p = np.array([0.2, 0.5, 0.3])
    plan = verifier("rrs_without").prepare(p, q, WithoutReplacement(2))
    # residual after 0: (0, 2/3, 1/3); 1 has .6 of what is left of q, not .3: accepted for certain; 2 has .4: 5/6
    np.testing.assert_allclose(plan.output_law([0, 1]), [0.4, 0.6, 0.0], atol=1e-15)
    np.testing.assert_allclose(plan.output_law([0, 2]), [0.4, 0.6 / 6, 0.6 * 5 / 6], atol=1e-15)
    np.testing.assert_allclose(decision_law(plan, [0, 2], 3), [0.4, 0.6 / 6, 0.6 * 5 / 6], atol=1e-12)


def test_target_mass_used_up():
    single = np.array([1 - 2.0**-24, 0.0], dtype=np.float32)
    for name in ("rrs", "kseq"):
        plan = verifier(name).prepare(single, [1.0, 0.0], WithReplacement(1))
        assert plan.verify([0], constant(1 - 1e-12)).token == 0
    for rule, scheme in (("rrs_without", WithoutReplacement(2)), ("deterministic", Deterministic(2))):
        plan = verifier(rule).prepare([1.0, 0.0], [0.4, 0.6], scheme)
        for u in (0.0, LAST):
            verdict = plan.verify([1, 0], constant(u))
            assert (verdict.token, verdict.accepted_index) == (0, 1)
        assert plan.output_law([1, 0]).tolist() == [1.0, 0.0]


@ALL
def test_drafts_that_only_rounding_can_tell_from_impossible(rule, scheme):
    p, q = one_hot(3, 0), np.array([1.0, 1e-17, 1e-300])
    plan = rule.prepare(p, q, scheme)
    for drafts in scheme.enumerate(q)[0]:
        for u in (0.0, 0.5, LAST):
            assert plan.verify(drafts, constant(u)).token == 0
        assert plan.output_law(drafts).tolist() == [1.0, 0.0, 0.0]


@ALL
def test_temperature_zero_ignores_the_uniforms(rule, scheme):
    p, q = one_hot(4, 2), np.array([0.1, 0.4, 0.3, 0.2])
    plan = rule.prepare(p, q, scheme)
    for drafts in scheme.enumerate(q)[0]:
        tokens = {plan.verify(drafts, np.random.default_rng(seed)).token for seed in range(10)}
        assert tokens == {2}


@ALL
def test_exactly_one_token(rule, scheme):
    rng = np.random.default_rng(6)
    for p, q in PAIRS[:40]:
        plan = rule.prepare(p, q, scheme)
        for drafts in scheme.sample(q, rng, size=3):
            verdict = plan.verify(drafts, rng)
            assert isinstance(verdict.token, int)
            where = np.flatnonzero(drafts == verdict.token)
            assert verdict.accepted_index == (where[0] if where.size else -1)
            assert verdict.accepted == bool(where.size)


@ALL
def test_every_emitted_token_has_been_judged(rule, scheme):
    p, q = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    plan = rule.prepare(p, q, scheme)
    drafts = scheme.sample(q, np.random.default_rng(0))
    assert plan.output_law(drafts).tolist() == [0.0, 1.0]
    assert [plan.verify(drafts, constant(u)).token for u in (0.0, 0.5, LAST)] == [1, 1, 1]


# --- G: random streams ------------------------------------------------------------------------------------------------


@ALL
def test_uniforms_drawn_as_documented(rule, scheme):
    """One uniform for each draft judged and one more for the residual; a draw for each rule that selects first."""
    rng = np.random.default_rng(11)
    for p, q in PAIRS[23:43]:
        plan = rule.prepare(p, q, scheme)
        drafts = scheme.sample(q, rng)
        source = Injected(rng.random(20).tolist())
        token = plan.verify(drafts, source).token
        row = [x for x in drafts.tolist() if x >= 0]
        sampled = row if isinstance(plan, ChildrenPlan) else [x for x in row if x not in scheme.fixed_set(q)]
        if rule.name == "token_matching":
            allowed = {1}
        elif isinstance(plan, OptimalPlan) and sampled:  # a label each, the acceptance, the residual if need be
            allowed = {len(sampled) + 1, len(sampled) + 2} if token in sampled else {len(sampled) + 2}
        elif token in sampled:
            allowed = {i + 1 for i, x in enumerate(sampled) if x == token}
        else:
            allowed = {len(sampled) + 1}
        assert source.used in allowed


def test_the_residual_does_not_see_the_uniform_of_the_acceptance():
    p, q = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.7, 0.1, 0.1, 0.1])
    for name, scheme in (("rrs", WithReplacement(1)), ("kseq", WithReplacement(1)), ("greedy", greedy(1))):
        plan = verifier(name).prepare(p, q, scheme)
        for u, token in ((0.1, 1), (0.4, 2), (0.9, 3)):  # residual (0, .1, .2, .3) / .6
            assert {plan.verify([0], Injected([v, u])).token for v in (0.2, 0.5, LAST)} == {token}


def test_a_fresh_uniform_for_every_draft():
    p, q = np.array([0.2, 0.4, 0.4]), np.array([0.5, 0.39, 0.11])
    # 0 passes with .4; the residual is (0, 1, 29)/30, and 1 passes with 1/30 of its own probability
    for name, scheme, second in (("rrs", WithReplacement(2), 0.39), ("rrs_without", WithoutReplacement(2), 0.39 / 0.5)):
        law = decision_law(verifier(name).prepare(p, q, scheme), [0, 1], 3)
        np.testing.assert_allclose(law, [0.4, 0.6 / 30 / second, 0.6 - 0.6 / 30 / second], atol=1e-12)
    # four tries of a token that passes with the same probability each
    p, q = np.array([0.25, 0.75]), np.array([0.5, 0.5])
    plan = verifier("kseq").prepare(p, q, WithReplacement(4))
    passes = p[0] / (plan.rho * q[0])
    assert decision_law(plan, [0] * 4, 2)[1] == pytest.approx((1 - passes) ** 4, abs=1e-12)
    children = verifier("deterministic").prepare(np.full(4, 0.25), [0.4, 0.3, 0.2, 0.1], Deterministic(3))
    np.testing.assert_allclose(decision_law(children, [0, 1, 2], 4), np.full(4, 0.25), atol=1e-12)


@ALL
def test_nothing_is_drawn_before_the_drafts_are_checked(rule, scheme):
    q = np.array([0.4, 0.3, 0.2, 0.1, 0.0])
    plan = rule.prepare([0.1, 0.2, 0.3, 0.2, 0.2], q, scheme)
    good = scheme.sample(q, np.random.default_rng(0))
    wrong = [
        np.append(good, 0),  # one too many
        np.full(scheme.drafts, 5),  # beyond the vocabulary
        np.full(scheme.drafts, -2),
        np.full(scheme.drafts, 4),  # a token the draft model never draws
        np.full(scheme.drafts, -1),  # no draft at all
        good[None],
    ]
    if scheme.drafts > 1 and scheme.distinct:
        wrong.append(np.full(scheme.drafts, good[0]))
    for drafts in wrong:
        source = Injected([])
        with pytest.raises(ValueError, match="drafts"):
            plan.verify(drafts, source)
        with pytest.raises(ValueError, match="drafts"):
            plan.output_law(drafts)
        assert source.used == 0
    with pytest.raises(TypeError, match="integers"):
        plan.verify(good.astype(float), Injected([]))


# --- H, J: vocabulary, primitives -------------------------------------------------------------------------------------


@ALL
def test_padded_vocabulary(rule, scheme):
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])
    wide_p, wide_q = np.append(p, [0.0, 0.0]), np.append(q, [0.0, 0.0])
    plan, wide = rule.prepare(p, q, scheme), rule.prepare(wide_p, wide_q, scheme)
    for drafts in scheme.enumerate(q)[0]:
        law = wide.output_law(drafts)
        assert law[3:].tolist() == [0.0, 0.0]
        np.testing.assert_allclose(law[:3], plan.output_law(drafts), atol=1e-15)
        assert wide.verify(drafts, constant(LAST)).token < 3


def test_matching_a_greedy_draft():
    p = [0.5, 0.3, 0.2]
    assert verifier("token_matching").acceptance(p, p, Deterministic(1)) == 0.5


@ALL
def test_support_smaller_than_the_number_of_drafts(rule, scheme):
    p = np.array([0.1, 0.2, 0.3, 0.4])
    for q in (one_hot(4, 1), np.array([0.0, 0.25, 0.75, 0.0])):
        plan = rule.prepare(p, q, scheme)
        for drafts in scheme.enumerate(q)[0]:
            assert set(drafts.tolist()) <= {-1, *np.flatnonzero(q).tolist()}
            assert plan.output_law(drafts).sum() == pytest.approx(1.0, abs=1e-14)
            assert 0 <= plan.verify(drafts, np.random.default_rng(0)).token < 4
        law, accepted = enumerated(plan, scheme, q)
        assert total_variation(law, p) <= 1e-14
        assert rule.acceptance(p, q, scheme) == pytest.approx(accepted, abs=1e-13)


def test_low_precision_inputs():
    torch = pytest.importorskip("torch")
    V = 151_936
    small = np.array([0.2505, *[0.7495 / (V - 1)] * (V - 1)], dtype=np.float16)
    with pytest.raises(ValueError, match=r"as its values fit float16\), got 1.002"):  # refused, not mended
        verifier("rrs").prepare(small, np.full(V, 1 / V), WithReplacement(2))
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(12))
    for convert in (
        np.float32,
        lambda x: torch.tensor(x, dtype=torch.float32),
        lambda x: torch.tensor(x, dtype=torch.float32, requires_grad=True),
    ):
        low_p, low_q = convert(p), convert(q)
        plan = verifier("rrs").prepare(low_p, low_q, WithReplacement(2))
        law = sum(
            weight * plan.output_law(drafts) for drafts, weight in zip(*WithReplacement(2).enumerate(plan.node.q))
        )
        assert law.dtype == np.float64
        assert total_variation(law, plan.node.p) <= 1e-12
        assert total_variation(law, p) <= 1e-6


# --- L, R: false alarms, and what was read in public code -------------------------------------------------------------


def test_matching_is_exact_and_accepts_less():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
    scheme = WithReplacement(1)
    law, accepted = enumerated(verifier("token_matching").prepare(p, q, scheme), scheme, q)
    assert law.tolist() == pytest.approx(p.tolist(), abs=1e-15)
    assert accepted == pytest.approx(0.36, abs=1e-15)
    assert verifier("rrs").acceptance(p, q, scheme) == pytest.approx(0.9, abs=1e-15)


@ALL
def test_one_ulp_apart(rule, scheme):
    above, below = np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0)
    for first, second in itertools.permutations((above, 1.0, below), 2):
        p, q = np.array([first, 0.0]), np.array([second, 0.0])
        plan = rule.prepare(p, q, scheme)
        drafts = scheme.sample(q, np.random.default_rng(0))
        for u in (0.0, 0.5, LAST):
            verdict = plan.verify(drafts, constant(u))
            assert (verdict.token, verdict.accepted_index) == (0, 0)
        assert plan.output_law(drafts) == pytest.approx([1.0, 0.0], abs=1e-15)


def test_top_n_drafts_are_not_samples():
    p, q = np.array([0.4, 0.4, 0.2]), np.array([0.7, 0.3, 0.0])
    # judged as samples of q, in order, the drafts (0, 1) would give another law: that is what the type prevents
    wrong = verifier("rrs_without").prepare(p, q, WithoutReplacement(2)).output_law([0, 1])
    np.testing.assert_allclose(wrong, [4 / 7, 1 / 7, 2 / 7], atol=1e-3)
    with pytest.raises(UnsupportedScheme):
        verifier("rrs_without").prepare(p, q, Deterministic(2))
    for name in verifiers_for(Deterministic(2)):
        right = verifier(name).prepare(p, q, Deterministic(2)).output_law([0, 1])
        np.testing.assert_allclose(right, p, atol=1e-15)


def test_residual_by_token_not_by_place():
    p, q = np.array([0.6, 0.4, 0.0]), np.array([0.5, 0.0, 0.5])
    for name in ("rrs", "kseq"):
        law = verifier(name).prepare(p, q, WithReplacement(1)).output_law([2])
        np.testing.assert_allclose(law, [0.2, 0.8, 0.0], atol=1e-15)


@ALL
def test_token_zero_is_a_token(rule, scheme):
    p, q = np.array([0.5, 0.5]), np.array([1.0, 0.0])
    plan = rule.prepare(p, q, scheme)
    verdict = plan.verify(scheme.sample(q, np.random.default_rng(0)), constant(0.0))
    assert (verdict.token, verdict.accepted_index) == (0, 0)
    assert verdict.accepted


@pytest.mark.parametrize(
    ("name", "scheme", "drafts"),
    [
        ("rrs", WithReplacement(2), [0, 0]),
        ("rrs_without", WithoutReplacement(2), [0, 2]),
        ("kseq", WithReplacement(2), [0, 0]),
        ("optimal", WithReplacement(2), [0, 0]),
        ("greedy", greedy(2), [1, 0]),
        ("spechub", SpecHubPairs(), [0, 1]),
        ("spechub", SpecHubPairs(), [1, 0]),
        ("deterministic", Deterministic(2), [0, 1]),
        ("token_matching", WithReplacement(2), [0, 0]),
        ("rrs", TopThenSampled(1, 2, True), [1, 0, 0]),
    ],
    ids=str,
)
def test_zero_probability_is_rejected_at_u_zero(name, scheme, drafts):
    p = np.array([0.0, 0.5, 0.5])
    q = np.array([0.3, 0.4, 0.3]) if name != "deterministic" else np.array([0.4, 0.4, 0.2])
    verdict = verifier(name).prepare(p, q, scheme).verify(drafts, constant(0.0))
    assert verdict.token != 0
