"""The optimal coupling for independent drafts: exact laws on 1,000 instances, and by enumeration of all pieces."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from mdsd_core.schemes import TopThenSampled, WithoutReplacement, WithReplacement, greedy
from mdsd_core.transport.curtain.coupling import iid_plan, left_curtain
from mdsd_core.transport.marginal import optimal_marginal
from mdsd_core.transport.subset import optimal_acceptance
from tests.core.transport.checks import checked
from tests.instances import (
    COMPILED,
    adversarial_pairs,
    dirichlet_pair,
    fewer,
    random_pairs,
    softmax_pair,
    total_variation,
)


def law_of_pieces(plan, w, n):
    """The law of the winner of n independent drafts of law w / sum(w), piece by piece, in extended precision.

    Independent of the plan's own marginal: all pieces in the order of their keys, each with the probability that one
    draft draws it.
    """
    tokens = np.argsort(plan.row)[-(plan.start.size - 1) :]
    owner = np.repeat(tokens, np.diff(plan.start))
    fraction = np.diff(plan.cumulative.astype(np.longdouble), prepend=np.longdouble(0))
    fraction[plan.start[:-1]] = plan.cumulative[plan.start[:-1]]
    mass = (w.astype(np.longdouble) / w.astype(np.longdouble).sum())[owner] * fraction
    by_key = np.argsort(plan.key)
    upto = np.cumsum(mass[by_key])
    won = (upto / upto[-1]) ** n
    law = np.zeros(w.size, dtype=np.longdouble)
    np.add.at(law, owner[by_key], np.diff(won, prepend=np.longdouble(0)))
    return law


def emission(p, winner, r):
    """Law of the emitted token, and probability that it is the selected draft, if the winner has the law `winner`.

    The rule knows r: accept with probability min(1, p / r), else draw from (p - r)_+ normalised.
    """
    accepted = winner * np.minimum(1, np.divide(p, r, out=np.ones_like(p), where=r > 0))
    residual = np.maximum(p - r, 0)
    if residual.sum() == 0:
        return accepted / accepted.sum(), float(accepted.sum())
    return accepted + (1 - accepted.sum()) * residual / residual.sum(), float(accepted.sum())


def instances(count=1000 if COMPILED else 40):
    rng = np.random.default_rng(11)
    for i in range(count):
        V, n = int(rng.integers(1, 301)), int(rng.integers(1, 9))
        if i % 2:
            yield "dirichlet", *dirichlet_pair(rng, V), n
        else:
            temperature = float(rng.choice([0.3, 0.7, 1.0, 1.5]))
            yield "softmax", *softmax_pair(rng, V, noise=rng.choice([0.2, 0.7, 2.0]), temperature=temperature), n


def test_a_thousand_instances_are_lossless_and_optimal(record_property):
    lost = {"softmax": 0.0, "dirichlet": 0.0}
    missed = {"softmax": 0.0, "dirichlet": 0.0}
    for kind, p, q, n in instances():
        scheme = WithReplacement(n)
        plan = iid_plan(p, q, scheme)
        law = law_of_pieces(plan, q, n)
        emitted, accepted = emission(p, law.astype(np.float64), plan.marginal)
        assert total_variation(emitted, p) <= 1e-12
        assert total_variation(law, plan.marginal) <= 1e-13
        lost[kind] = max(lost[kind], float(abs(optimal_acceptance(p, q, scheme).rate - accepted)))
        missed[kind] = max(missed[kind], float(total_variation(plan.marginal, optimal_marginal(p, q, scheme).r)))
    record_property("largest loss of acceptance", lost)
    record_property("largest total variation between the marginal realised and asked for", missed)
    assert lost["softmax"] <= 1e-12
    assert lost["dirichlet"] <= 1e-9
    assert missed["softmax"] <= 1e-12


def small_instances():
    yield from adversarial_pairs().values()
    yield from fewer(random_pairs(21, 300, range(1, 7)), 10)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_small_instances_by_enumeration_of_all_drafts(n):
    for p, q in small_instances():
        scheme = WithReplacement(n)
        plan = checked(iid_plan(p, q, scheme))
        winner = plan.law_of_winner(scheme, q)
        assert total_variation(winner, plan.marginal) <= 1e-12
        emitted, accepted = emission(p, winner, plan.marginal)
        assert total_variation(emitted, p) <= 1e-12
        # landing on a draft by the residual would show as acceptance above the optimum of selection
        assert accepted == pytest.approx(optimal_acceptance(p, q, scheme).rate, abs=1e-12)


def test_small_instances_by_enumeration_of_drafts_and_pieces():
    for p, q in random_pairs(22, 60, range(1, 5)):
        for n in (2, 3):
            plan = iid_plan(p, q, WithReplacement(n))
            choices = [(x, key, q[x] * f) for x in np.flatnonzero(q) for key, f in zip(*plan.segments(x))]
            winner = np.zeros(p.size)
            for draws in product(choices, repeat=n):
                winner[max(draws, key=lambda draw: draw[1])[0]] += np.prod([mass for _, _, mass in draws])
            assert total_variation(winner, plan.marginal) <= 1e-12
            assert total_variation(emission(p, winner, plan.marginal)[0], p) <= 1e-12


@pytest.mark.parametrize(
    "scheme", [TopThenSampled(1, 1, True), TopThenSampled(1, 2, True), TopThenSampled(2, 2, True), greedy(3)]
)
def test_fixed_sets_by_enumeration(scheme):
    """T is never selected while there is another draft; the residual carries p on T, and lands on a draft there."""
    for p, q in small_instances():
        plan = checked(iid_plan(p, q, scheme))
        fixed = scheme.fixed_set(q)
        winner = plan.law_of_winner(scheme, q)
        assert total_variation(winner, plan.marginal) <= 1e-12
        emitted, selected = emission(p, winner, plan.marginal)
        assert total_variation(emitted, p) <= 1e-12
        on_fixed = np.minimum(p, winner)[fixed].sum()  # accepted there by selection, if nothing is drawn off T
        accepted = selected - on_fixed + p[fixed].sum()
        assert accepted == pytest.approx(optimal_acceptance(p, q, scheme).rate, abs=1e-12)


def curtain_arrays(curtain):
    """Lengths and Z-masses of the intervals without their holes."""
    left, right, n = (
        x.astype(np.longdouble) if isinstance(x, np.ndarray) else x for x in (curtain.left, curtain.right, curtain.n)
    )
    length, mass = right - left, right**n - left**n
    inner_length, inner_mass = np.zeros_like(length), np.zeros_like(mass)
    inside = curtain.parent >= 0
    np.add.at(inner_length, curtain.parent[inside], length[inside])
    np.add.at(inner_mass, curtain.parent[inside], mass[inside])
    return length - inner_length, mass - inner_mass


def test_intervals_are_nested_tile_the_line_and_have_the_masses_asked_for():
    rng = np.random.default_rng(4)
    for V, n in product((2, 20, 300, 3000), (1, 2, 3, 5, 8, 16)):
        p, q = softmax_pair(rng, V, temperature=rng.choice([0.5, 1.0]))
        curtain = left_curtain(p, q, WithReplacement(n))
        assert (curtain.left <= curtain.right).all()
        assert curtain.left.min() == 0
        assert curtain.right.max() == 1
        inside = np.flatnonzero(curtain.parent >= 0)
        around = curtain.parent[inside]
        assert (around > inside).all()
        assert (curtain.left[around] <= curtain.left[inside]).all()
        assert (curtain.right[inside] <= curtain.right[around]).all()
        # brothers do not overlap, and roots touch
        for ranks in np.split(np.arange(V), np.flatnonzero(np.diff(np.sort(curtain.parent))) + 1):
            brothers = np.argsort(curtain.parent, kind="stable")[ranks]
            gaps = curtain.left[brothers[1:]] - curtain.right[brothers[:-1]]
            assert (gaps >= 0).all()
            if curtain.parent[brothers[0]] == -1:
                assert (gaps == 0).all()
        length, mass = curtain_arrays(curtain)
        assert np.abs(length - curtain.w).sum() < 1e-12
        assert np.abs(mass - curtain.asked).sum() < 1e-11
        asked = optimal_marginal(p, q, WithReplacement(n))
        np.testing.assert_array_equal(curtain.asked, asked.r[curtain.tokens])


def test_the_plan_is_exact_for_any_tiling():
    """Losslessness does not rest on the intervals: bend them at random and the realised marginal follows."""
    rng = np.random.default_rng(9)
    for n in (2, 3, 6):
        p, q = softmax_pair(rng, 60)
        curtain = left_curtain(p, q, WithReplacement(n))
        bend = np.concatenate(([0.0], np.sort(rng.random(9)), [1.0]))
        left, right = (np.interp(x, np.linspace(0, 1, 11), bend) for x in (curtain.left, curtain.right))
        plan = checked(replace(curtain, left=left, right=right).plan())
        law = law_of_pieces(plan, q, n)
        assert total_variation(law, plan.marginal) < 1e-14
        assert total_variation(plan.marginal[curtain.tokens], curtain.asked) > 1e-3
        assert total_variation(emission(p, law.astype(np.float64), plan.marginal)[0], p) < 1e-14


def test_strict_priority_between_contacts():
    """Where every prefix binds the largest ratio wins, with one piece a token."""
    p, q = np.array([0.001, 0.049, 0.2, 0.75]), np.array([0.25, 0.25, 0.25, 0.25])
    plan = iid_plan(p, q, WithReplacement(2))
    np.testing.assert_allclose(plan.marginal[2:], [5 / 16, 7 / 16], atol=1e-16)
    assert plan.selection_law([3, 2]).tolist() == [1, 0]
    one = iid_plan(p, q, WithReplacement(1))
    assert one.key.size == 4
    np.testing.assert_allclose(one.marginal, q, atol=1e-16)


@pytest.mark.large
def test_real_vocabulary():
    rng = np.random.default_rng(6)
    V = 151_936
    p, q = softmax_pair(rng, V)
    for scheme in (WithReplacement(2), WithReplacement(4), WithReplacement(8), TopThenSampled(2, 2, True)):
        n = scheme.sampled_drafts
        plan = iid_plan(p, q, scheme)
        assert plan.key.size <= 2 * V
        fixed = scheme.fixed_set(q)
        w = q.copy()
        w[fixed] = 0.0
        off = np.delete(np.arange(V), fixed)
        law = law_of_pieces(plan, w, n)
        assert total_variation(law, plan.marginal) <= 1e-13
        emitted, accepted = emission(p, law.astype(np.float64), plan.marginal)
        assert total_variation(emitted, p) <= 1e-12
        assert accepted + p[fixed].sum() == pytest.approx(optimal_acceptance(p, q, scheme).rate, abs=1e-12)
        assert (plan.row[off] >= 0).all()


def test_every_kind_of_skew_stays_lossless():
    """Masses over 300 orders of magnitude, ratios that differ in the last bit, tokens far below the unit roundoff."""
    rng = np.random.default_rng(13)
    for i in range(150 if COMPILED else 15):
        V = int(rng.integers(2, 120))
        p, q = 10.0 ** -rng.uniform(0, (5, 20, 300)[i % 3], (2, V))
        if i % 5 == 0:
            q = p * (1 + 1e-15 * rng.integers(-3, 4, V))
        p, q = p / p.sum(), q / q.sum()
        for n in (2, 3, 8):
            plan = checked(iid_plan(p, q, WithReplacement(n)))
            law = law_of_pieces(plan, q, n)
            assert total_variation(law, plan.marginal) <= 1e-13
            emitted, accepted = emission(p, law.astype(np.float64), plan.marginal)
            assert total_variation(emitted, p) <= 1e-12
            assert accepted == pytest.approx(optimal_acceptance(p, q, WithReplacement(n)).rate, abs=1e-9)


@pytest.mark.parametrize("seed", [17, 66, 147, 221, 270, 317])
def test_tokens_below_rounding_do_not_stand_in_the_way(seed):
    """A token of probability 1e-17 moves nothing, but where it stands a larger one has to lie around it."""
    rng = np.random.default_rng(seed)
    V, n = int(rng.integers(20, 60)), int(rng.integers(3, 9))
    p, q = softmax_pair(rng, V, temperature=0.2)
    curtain = left_curtain(p, q, WithReplacement(n))
    assert total_variation(curtain.plan().marginal[curtain.tokens], curtain.asked) <= 1e-12


def test_inputs_are_not_changed_and_schemes_are_checked():
    p, q = softmax_pair(np.random.default_rng(1), 30)
    p.flags.writeable = q.flags.writeable = False
    iid_plan(p, q, TopThenSampled(2, 2, True))
    with pytest.raises(TypeError, match=r"independent drafts.*WithoutReplacement"):
        iid_plan(p, q, WithoutReplacement(2))
    with pytest.raises(TypeError, match="independent drafts"):
        iid_plan(p, q, TopThenSampled(1, 2))
    with pytest.raises(ValueError, match="p must sum to 1"):
        iid_plan(2 * p, q, WithReplacement(2))
