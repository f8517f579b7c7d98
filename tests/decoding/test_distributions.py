"""Logits to probabilities: equal to transformers' own warpers, and tensors of every precision by every door."""

import numpy as np
import pytest
import torch
from transformers import (
    GenerationConfig,
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from mdsd_core.distributions import (
    SUM_TOLERANCE,
    SamplingParams,
    _computed_in,
    check_distribution,
    probabilities,
    sum_correction,
)
from tests.core.test_distributions import GRID


def by_transformers(logits, params):
    warpers = LogitsProcessorList([TemperatureLogitsWarper(float(params.temperature))])
    if params.top_k is not None:
        warpers.append(TopKLogitsWarper(params.top_k))
    if params.top_p < 1:
        warpers.append(TopPLogitsWarper(params.top_p))
    if params.min_p > 0:
        warpers.append(MinPLogitsWarper(params.min_p))
    scores = torch.tensor(logits, dtype=torch.float64)
    return torch.softmax(warpers(None, scores), dim=-1).numpy()


@pytest.mark.parametrize("V", [1, 2, 50, 2000])
def test_equals_the_warpers_of_transformers(V):
    rng = np.random.default_rng(V)
    logits = rng.normal(size=(4, V)) * 4
    for params in GRID:
        ours, theirs = probabilities(logits, params), by_transformers(logits, params)
        assert np.abs(ours - theirs).max() <= 1e-12, params
        assert ((ours > 0) == (theirs > 0)).all(), params


def test_order_is_the_one_that_generate_uses(tiny_causal_lm):
    """The order of the warpers is asked of transformers, not remembered."""
    config = GenerationConfig(do_sample=True, temperature=0.7, top_k=5, top_p=0.9, min_p=0.05)
    processors = tiny_causal_lm._get_logits_processor(config, input_ids_seq_length=1)
    kinds = [type(p) for p in processors]
    assert kinds == [TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper, MinPLogitsWarper]
    logits = np.random.default_rng(0).normal(size=(3, 60)) * 3
    theirs = torch.softmax(processors(None, torch.tensor(logits)), dim=-1).numpy()
    ours = probabilities(logits, SamplingParams(temperature=0.7, top_k=5, top_p=0.9, min_p=0.05))
    assert np.abs(ours - theirs).max() <= 1e-12


def test_ties_are_decided_as_in_transformers():
    equal = np.zeros((1, 4))
    assert (by_transformers(equal, SamplingParams(top_k=2)) == 0.25).all()  # all equal to the k-th
    assert np.count_nonzero(by_transformers(equal, SamplingParams(top_p=0.5))) == 2


def test_a_tensor_is_untouched_and_may_be_of_half_precision():
    before = np.random.default_rng(1).normal(size=(6, 8))
    tensor = torch.tensor(before, requires_grad=True)
    probabilities(tensor, SamplingParams(0.5, 3, 0.8, 0.1))
    assert (tensor.detach().numpy() == before).all()
    half = torch.tensor([100.0, 99.0], dtype=torch.float16)  # fault B13
    assert probabilities(half, SamplingParams(temperature=1e-8)).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_half_precision_is_widened_before_the_softmax(dtype):
    """Fault J5: a half-precision softmax over a large vocabulary does not sum to 1."""
    logits = torch.randn(151_936, generator=torch.Generator().manual_seed(0)).to(dtype)
    result = probabilities(logits)
    assert result.dtype == np.float64
    assert abs(result.sum() - 1) < 1e-12
    assert np.abs(result - torch.softmax(logits.double(), 0).numpy()).max() < 1e-15
    uniform = probabilities(torch.zeros(151_936, dtype=dtype))
    assert np.abs(uniform - 1 / 151_936).max() < 1e-18
    numpy_logits = logits.float().numpy().astype(np.float16)
    assert abs(probabilities(numpy_logits).sum() - 1) < 1e-12


TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def softmax_rows(kind, V, count=50):
    """Rows of softmax computed in a type of torch, as a tensor of it."""
    logits = torch.from_numpy(np.random.default_rng(V).normal(size=(count, V)) * 3)
    return torch.softmax(logits.to(TYPES[kind]), dim=-1)


DOORS = {
    "tensor": lambda row: row,
    "float32": lambda row: row.float().numpy(),
    "float64": lambda row: row.double().numpy(),
    "float64 tensor": lambda row: row.double(),
    "list": lambda row: row.tolist(),
}


@pytest.mark.parametrize("V", [3, 1000])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("door", DOORS)
def test_a_softmax_passes_by_every_door_as_in_its_own_type(kind, V, door):
    rows = softmax_rows(kind, V)
    exact = rows.double().numpy()
    assert (np.abs(exact.sum(axis=1) - 1.0) > SUM_TOLERANCE["float64"]).any()  # as float64 they are off
    for row, values in zip(rows, exact):
        got = check_distribution(DOORS[door](row))
        assert got.dtype == np.float64
        assert got.tolist() == (values / values.sum()).tolist()
        assert abs(got.sum() - 1.0) <= 1e-14
    stack = check_distribution(DOORS[door](rows), ndim=2)
    np.testing.assert_array_equal(stack, exact / exact.sum(axis=1, keepdims=True))
    assert sum_correction(DOORS[door](rows)) == np.abs(exact.sum(axis=1) - 1.0).max()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("wrong", [-1, 1])
def test_rows_off_by_more_than_their_type_explains_are_refused(kind, door, wrong):
    off = 2.0 ** {"float32": -16, "float16": -10, "bfloat16": -7}[kind]  # above the tolerance, exact in the type
    row = torch.tensor([0.5, 0.5 + wrong * off], dtype=torch.float64)
    if kind == "float32":
        row += torch.tensor([1.0, -1.0]) * 2.0**-20  # exact in no coarser type
    if kind == "float16":
        row += torch.tensor([1.0, -1.0]) * 2.0**-11
    assert row.to(TYPES[kind]).double().tolist() == row.tolist()
    with pytest.raises(
        ValueError, match=rf"q must sum to 1 \(tolerance {SUM_TOLERANCE[kind]}, as its values fit {kind}\)"
    ):
        check_distribution(DOORS[door](row.to(TYPES[kind])), "q")


def test_each_row_has_its_own_tolerance():
    coarse, wrong = softmax_rows("bfloat16", 3, 1)[0].tolist(), [0.3, 0.3, 0.4 + 1e-8]
    assert abs(sum(coarse) - 1.0) > 1e-4
    with pytest.raises(
        ValueError, match=r"p must sum to 1 \(tolerance 1e-09, as its values fit float64\) in row \[1\], got 1.00000001"
    ):
        check_distribution([coarse, wrong], ndim=2)


def test_the_coarsest_type_is_read_off_the_values():
    rng = np.random.default_rng(1)
    small = np.concatenate([rng.random(200) * 10.0**-k for k in range(12)])
    edges = [0.0, 1.0, 2.0**-24, 2.0**-25, 1025 * 2.0**-40, 2.0**-140]
    for value in (*small, *small.astype(np.float32), *small.astype(np.float16), *edges):
        one = torch.tensor([float(value)], dtype=torch.float64)
        held = [kind for kind, of_torch in TYPES.items() if one.to(of_torch).double().equal(one)]
        want = max(held, key=SUM_TOLERANCE.get, default="float64")
        assert _computed_in(one.numpy()) == want, value
