"""Logits to probabilities: greedy decided before any division, errors that help (tensors: in tests/decoding)."""

import dataclasses
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdsd_core.distributions import (
    GREEDY_BELOW,
    SamplingParams,
    check_distribution,
    check_pair,
    draw_token,
    probabilities,
)
from mdsd_core.randomness import draw_index

GRID = [
    SamplingParams(temperature=t, top_k=k, top_p=p, min_p=m)
    for t, k, p, m in product(
        (0.05, 0.7, 1.0, 1.5), (None, 1, 5, 10**6), (1.0, 0.9, 0.3, 1e-9, 1e-17), (0.0, 0.05, 1.0)
    )
]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.sampled_from(GRID))
def test_rows_are_distributions_and_independent(V, seed, params):
    rng = np.random.default_rng(seed)
    logits = np.round(rng.normal(size=(3, V)) * 2)  # ties
    logits[rng.random(logits.shape) < 0.3] = -np.inf
    logits[:, rng.integers(V)] = 0.0
    result = probabilities(logits, params)
    check_distribution(result, ndim=2)
    assert (result[logits == -np.inf] == 0).all()
    for row, alone in zip(logits, result):
        assert (probabilities(row, params) == alone).all()


def test_temperature_zero_is_argmax_lowest_id_before_any_division():
    assert probabilities([1.0, 3.0, 3.0], SamplingParams(temperature=0)).tolist() == [0, 1, 0]
    # fault B13: half-precision logits (100, 99) at T = 1e-8; a division would give inf / inf
    half = np.array([100.0, 99.0], dtype=np.float16)
    assert probabilities(half, SamplingParams(temperature=1e-8)).tolist() == [1, 0]
    assert probabilities([1e308, -1e308, -np.inf], SamplingParams(temperature=5e-324)).tolist() == [1, 0, 0]
    # filters change nothing at temperature 0
    assert probabilities([1.0, 3.0, 3.0], SamplingParams(0, 2, 0.1, 0.9)).tolist() == [0, 1, 0]


def test_lowest_temperature_that_is_not_greedy_is_finite():
    at, below = SamplingParams(temperature=GREEDY_BELOW), SamplingParams(temperature=np.nextafter(GREEDY_BELOW, 0))
    assert not at.greedy
    assert below.greedy
    assert probabilities([1e308, -1e308, 1e308], at).tolist() == [0.5, 0, 0.5]
    assert probabilities([1e308, -1e308, 1e308], below).tolist() == [1, 0, 0]
    tied = probabilities([3e38, 3e38, 0.0], at)
    assert tied.tolist() == [0.5, 0.5, 0]


def test_both_models_are_one_hot_at_temperature_zero():
    greedy = SamplingParams(temperature=0)
    p, q = (probabilities(np.log(x), greedy) for x in ([0.5, 0.3, 0.2], [0.2, 0.45, 0.35]))
    assert p.tolist() == [1, 0, 0]
    assert q.tolist() == [0, 1, 0]


def test_min_p_removes_tokens():
    p = probabilities(np.log([0.9, 0.06, 0.04]), SamplingParams(min_p=0.1))
    assert p.tolist() == [1, 0, 0]


def test_ties():
    equal = np.zeros(4)
    assert (
        probabilities(equal, SamplingParams(top_k=2)).tolist() == [0.25] * 4
    )  # as transformers: all equal to the k-th
    assert probabilities(equal, SamplingParams(top_p=0.5)).tolist() == [0.5, 0.5, 0, 0]  # lowest ids
    assert probabilities(equal, SamplingParams(min_p=1.0)).tolist() == [0.25] * 4


def test_token_of_a_uniform():
    p = np.array([0.0, 0.25, 0.0, 0.75, 0.0])
    assert [draw_token(p, u) for u in (0.0, 0.2499, 0.25, 0.9, 1 - 2**-53)] == [1, 1, 3, 3, 3]
    assert draw_token(np.array([0.0, 5e-324, 0.0]), 1 - 2**-53) == 1  # the point sought rounds to the end of the sum
    # running sums that stay below 1, or reach their end before the last token: a token without mass is never drawn
    for tail in (0.0, 1e-320):
        assert draw_token(np.array([0.1] * 9 + [0.0999999, tail]), 1 - 2**-53) == 9
    uniforms = (np.arange(20_000) + 0.5) / 20_000
    law = np.random.default_rng(0).dirichlet(np.ones(6))
    seen = np.bincount([draw_token(law, u) for u in uniforms], minlength=6) / 20_000
    assert np.abs(seen - law).max() <= 1 / 20_000


def test_padding_of_the_vocabulary_takes_no_part():
    """Fault H2: padded with 0 or anything else, the padding gets no mass and no place."""
    logits = np.array([1.0, 0.5, 0.0])
    for pad in (0.0, 50.0, -np.inf, np.nan, np.inf):
        padded = np.concatenate([logits, [pad]])
        assert (probabilities(padded, vocab_size=3) == probabilities(logits)).all()
    assert probabilities([[0.0, -np.inf]]).tolist() == [[1, 0]]


def test_inputs_are_untouched_and_may_be_read_only_and_strided():
    base = np.random.default_rng(1).normal(size=(6, 8)).astype(np.float64)
    before = base.copy()
    for view in (base, base.T, base[::2, ::-1]):
        view.flags.writeable = False
        for params in (SamplingParams(), SamplingParams(0.5, 3, 0.8, 0.1), SamplingParams(0)):
            assert (probabilities(view, params) == probabilities(view.copy(), params)).all()
    assert (base == before).all()


@pytest.mark.parametrize(
    ("logits", "kind", "message"),
    [
        ([0.0, np.nan], ValueError, r"target logits must be finite or -inf, got target logits\[1\] = nan"),
        ([[0.0, 1.0], [np.inf, 1.0]], ValueError, r"target logits\[1, 0\] = inf"),
        ([[[0.0]], [[-np.inf]]], ValueError, r"only -inf in row \[1, 0\]"),
        ([-np.inf, -np.inf], ValueError, "must have a finite entry in every row, got only -inf$"),
        ([], ValueError, r"not be empty, got shape \(0,\)"),
        (np.zeros((0, 3)), ValueError, r"not be empty, got shape \(0, 3\)"),
        (1.0, ValueError, r"got shape \(\)"),
        (["a"], TypeError, "must hold real numbers"),
        ([1j], TypeError, "must hold real numbers, got dtype complex128"),
        ([True], TypeError, "must hold real numbers, got dtype bool"),
    ],
)
def test_bad_logits_raise_and_name_the_place(logits, kind, message):
    with pytest.raises(kind, match=message):
        probabilities(logits, name="target logits")


@pytest.mark.parametrize("vocab_size", [0, 4, -1])
def test_bad_vocab_size(vocab_size):
    with pytest.raises(ValueError, match=r"vocab_size must lie in \[1, 3\]"):
        probabilities([1.0, 2.0, 3.0], vocab_size=vocab_size)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"temperature": -0.1}, ValueError),
        ({"temperature": np.nan}, ValueError),
        ({"temperature": np.inf}, ValueError),
        ({"temperature": "1"}, TypeError),
        ({"temperature": None}, TypeError),
        ({"top_k": 0}, ValueError),
        ({"top_k": 1.5}, TypeError),
        ({"top_k": True}, TypeError),
        ({"top_p": 0}, ValueError),
        ({"top_p": 1.01}, ValueError),
        ({"top_p": np.nan}, ValueError),
        ({"min_p": -0.1}, ValueError),
        ({"min_p": 1.5}, ValueError),
        ({"min_p": True}, TypeError),
    ],
)
def test_bad_parameters_raise_and_name_the_parameter(change, kind):
    (name,) = change
    with pytest.raises(kind, match=name):
        SamplingParams(**change)
    with pytest.raises(dataclasses.FrozenInstanceError):
        SamplingParams().temperature = 2.0


@pytest.mark.parametrize(
    ("x", "kind", "message"),
    [
        ([0.5, 0.6], ValueError, "p must sum to 1"),
        ([[0.5, 0.5], [0.999, 0.0]], ValueError, r"p must sum to 1 .* in row \[1\], got 0.999"),
        ([1.5, -0.5], ValueError, r"p\[1\] = -0.5"),
        ([np.nan, 1.0], ValueError, r"p\[0\] = nan"),
        ([np.inf, 1.0], ValueError, r"p\[0\] = inf"),
        ([], ValueError, "p must not be empty"),
        ([[[1.0]]], ValueError, "p must have"),
        ([None], TypeError, "p must hold real numbers"),
    ],
)
def test_check_distribution_names_what_is_wrong(x, kind, message):
    with pytest.raises(kind, match=message):
        check_distribution(x, "p", ndim=max(1, min(2, np.ndim(x))))


def test_check_distribution_normalises_a_copy():
    single = np.array([0.1, 0.2, 0.7], dtype=np.float32)
    result = check_distribution(single)
    assert abs(result.sum() - 1) < 1e-15
    assert single.dtype == np.float32
    exact = np.array([0.25, 0.75])
    assert check_distribution(exact) is exact
    with pytest.raises(ValueError, match="one vocabulary, got sizes 2 and 1"):
        check_pair(exact, [1.0])


@pytest.mark.parametrize("weights", [[], [0.0, 0.0], [-1.0, 2.0], [np.nan, 1.0], [np.inf]])
def test_an_index_is_drawn_from_weights_only(weights):
    with pytest.raises(ValueError, match="weights must be finite and >= 0 with a positive sum"):
        draw_index(np.array(weights), np.random.default_rng(0))
