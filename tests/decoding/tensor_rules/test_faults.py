"""Faults that batches have had: rows mixed up, padding scored, parameters of another row, shared random streams.

The ids are those of the catalogue in tests/core/verifiers/test_faults.py.
"""

import numpy as np
import pytest
import torch

from mdsd_core.decoding import tensor_rules
from mdsd_core.decoding.tensor_rules._nodes import Nodes
from mdsd_core.distributions import SamplingParams
from mdsd_core.distributions import probabilities as by_row
from mdsd_core.schemes import Deterministic, WithoutReplacement, WithReplacement, greedy
from mdsd_core.verifiers import UnsupportedScheme
from tests.core.verifiers.cases import label
from tests.core.verifiers.decision_tree import LAST
from tests.decoding.tensor_rules.cases import ON_TENSORS, as_rows, padded, random_batch, row_by_row, sized
from tests.instances import softmax_pair

RULES = sorted({name for name, _ in ON_TENSORS})
EACH_RULE = pytest.mark.parametrize("name", RULES)


def schemes_of(name, most=4):
    return [scheme for rule, scheme in ON_TENSORS if rule == name and scheme.drafts <= most]


def batch_of(name, seed=0, V=5):
    rng = np.random.default_rng(seed)
    return random_batch(rng, sized(V)[:12], schemes_of(name))


@pytest.mark.parametrize(("name", "scheme"), ON_TENSORS, ids=label)
def test_rows_of_different_requests_are_not_mixed(name, scheme):  # A15, G2
    q = torch.eye(3, dtype=torch.float64)
    p = torch.tensor([[0.2, 0.5, 0.3], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]], dtype=torch.float64)
    drafts = padded([scheme.sample(q[i], np.random.default_rng(0)) for i in range(3)])
    for u in (0.1, 0.3, 0.65, 0.95):
        uniforms = torch.full((3, tensor_rules.uniforms_for(scheme)), u, dtype=torch.float64)
        verdict = tensor_rules.verify(name, p, q, drafts, scheme, uniforms)
        assert as_rows(verdict) == row_by_row(name, p, q, drafts, [scheme] * 3, uniforms)


@EACH_RULE
def test_a_row_does_not_depend_on_the_batch(name):  # I12, G4
    p, q, drafts, schemes, u = batch_of(name)
    whole = as_rows(tensor_rules.verify(name, p, q, drafts, schemes, u))
    for i in range(len(p)):
        one = tensor_rules.verify(name, *(x[i : i + 1] for x in (p, q, drafts, schemes, u)))
        assert as_rows(one) == [whole[i]]
    order = np.random.default_rng(1).permutation(len(p))
    other = tensor_rules.verify(name, p[order], q[order], drafts[order], [schemes[i] for i in order], u[order])
    assert as_rows(other) == [whole[i] for i in order]


def test_a_generator_gives_what_its_own_row_needs():  # G3
    schemes = [WithReplacement(1), WithReplacement(4), WithReplacement(2)]
    streams = [np.random.default_rng(i) for i in range(3)]
    u = tensor_rules.draw_uniforms(streams, schemes)
    for i, scheme in enumerate(schemes):
        alone = np.random.default_rng(i)
        count = tensor_rules.uniforms_for(scheme)
        assert u[i, :count].tolist() == alone.random(count).tolist()
        assert not u[i, count:].any()
        assert streams[i].bit_generator.state == alone.bit_generator.state


@EACH_RULE
def test_uniforms_beyond_those_used_decide_nothing(name):  # G3
    p, q, drafts, schemes, u = batch_of(name)
    verdict = tensor_rules.verify(name, p, q, drafts, schemes, u)
    beyond = torch.arange(u.shape[1]) >= verdict.used[:, None]
    other = tensor_rules.verify(name, p, q, drafts, schemes, torch.where(beyond, LAST, u))
    assert as_rows(other) == as_rows(verdict)


@EACH_RULE
def test_seeds_give_what_they_give_row_by_row(name):
    p, q, drafts, schemes, _ = batch_of(name)
    seeded = tensor_rules.verify(name, p, q, drafts, schemes, [np.random.default_rng(i) for i in range(len(p))])
    u = tensor_rules.draw_uniforms([np.random.default_rng(i) for i in range(len(p))], schemes)
    assert as_rows(seeded) == row_by_row(name, p, q, drafts, schemes, u)


@EACH_RULE
def test_padding_is_never_scored(name):  # I13, I14
    p, q, drafts, schemes, u = batch_of(name)
    wide = torch.cat((drafts, torch.full((len(p), 3), -1)), dim=1)
    assert as_rows(tensor_rules.verify(name, p, q, wide, schemes, u)) == as_rows(
        tensor_rules.verify(name, p, q, drafts, schemes, u)
    )
    longer = wide.clone()
    longer[1, schemes[1].drafts] = 0
    with pytest.raises(ValueError, match=r"row 1: drafts must hold .* ids and then only -1"):
        tensor_rules.verify(name, p, q, longer, schemes, u)


@EACH_RULE
def test_bad_rows_raise_and_are_named(name):  # B1, B3
    p, q, drafts, schemes, u = batch_of(name)
    for i, bad in ((0, np.nan), (5, np.inf), (7, -0.5), (11, 1.5)):
        for which in "pq":
            wrong = {"p": p.clone(), "q": q.clone()}
            wrong[which][i, 2] = bad
            with pytest.raises(ValueError, match=rf"row {i}: {which} must"):
                tensor_rules.verify(name, wrong["p"], wrong["q"], drafts, schemes, u)


@EACH_RULE
def test_NaN_never_becomes_a_token_even_unchecked(name):  # B7
    p, q, drafts, schemes, u = batch_of(name)
    for entries in (slice(None), 0):
        nan = p.clone()
        nan[3, entries] = np.nan
        assert tensor_rules.verify(name, nan, q, drafts, schemes, u, check=False).tokens[3] == -1


@EACH_RULE
def test_bad_drafts_and_uniforms_raise_and_are_named(name):  # G9
    p, q, drafts, schemes, u = batch_of(name)
    for bad in (5, -2, -1):
        wrong = drafts.clone()
        wrong[4, 0] = bad
        with pytest.raises(ValueError, match="row 4: drafts must"):
            tensor_rules.verify(name, p, q, wrong, schemes, u)
    for bad in (-0.1, 1.0, np.nan):
        wrong = u.clone()
        wrong[2, 0] = bad
        with pytest.raises(ValueError, match="row 2: uniforms must lie in"):
            tensor_rules.verify(name, p, q, drafts, schemes, wrong)


def test_repeated_and_impossible_drafts_raise():
    p = torch.full((2, 4), 0.25, dtype=torch.float64)
    q = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.4, 0.3, 0.2, 0.1]], dtype=torch.float64)
    u = torch.full((2, 7), 0.5, dtype=torch.float64)
    good = torch.tensor([[0, 1, -1], [2, 0, 1]])
    tensor_rules.verify("rrs_without", p, q, good, WithoutReplacement(3), u)
    for row, drafts in ((1, [[0, 1, -1], [2, 2, 1]]), (0, [[0, 2, -1], [2, 0, 1]]), (1, [[0, 1, -1], [2, 0, -1]])):
        with pytest.raises(ValueError, match=f"row {row}: drafts must"):
            tensor_rules.verify("rrs_without", p, q, torch.tensor(drafts), WithoutReplacement(3), u)
    for drafts in ([[0, 1], [2, 3]], [[1, 0], [0, 0]]):  # token 0 is always drafted, once
        with pytest.raises(ValueError, match="row 1: drafts must"):
            tensor_rules.verify("greedy", p, q, torch.tensor(drafts), greedy(2), u)


@EACH_RULE
def test_inputs_are_never_written_and_views_give_the_same(name):  # B10
    batch = p, q, drafts, schemes, u = batch_of(name)
    want = as_rows(tensor_rules.verify(name, *batch))
    before = [x.clone() for x in (p, q, drafts, u)]
    again = tensor_rules.verify(name, *batch)
    for given in (again.tokens, again.accepted_index, again.used):
        given.fill_(3)  # what is given out is not the input's memory
    for x, copy in zip((p, q, drafts, u), before):
        assert torch.equal(x, copy)
    strided = [torch.stack((x, x.clone()), dim=2)[..., 1].t().contiguous().t() for x in (p, q, drafts, u)]
    assert not strided[0].is_contiguous()
    assert as_rows(tensor_rules.verify(name, *strided[:3], schemes, strided[3])) == want
    needs_grad = p.clone().requires_grad_()
    assert as_rows(tensor_rules.verify(name, needs_grad, q, drafts, schemes, u)) == want


@EACH_RULE
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_memory_that_cannot_be_written_will_do(name):  # B10
    p, q, drafts, schemes, u = batch_of(name)
    locked = []
    for x in (p, q, drafts, u):
        array = x.numpy().copy()
        array.flags.writeable = False
        locked.append(torch.from_numpy(array))
    assert as_rows(tensor_rules.verify(name, *locked[:3], schemes, locked[3])) == as_rows(
        tensor_rules.verify(name, p, q, drafts, schemes, u)
    )


def test_wrong_devices_types_and_shapes_raise():
    p, q, drafts, schemes, u = batch_of("rrs")
    for wrong, name in (((p, q.to("meta"), drafts), "q"), ((p, q, drafts.to("meta")), "drafts")):
        with pytest.raises(ValueError, match=f"{name} must be on the device of p, cpu, got meta"):
            tensor_rules.verify("rrs", *wrong, schemes, u)
    with pytest.raises(ValueError, match="uniforms must be on the device of p, cpu, got meta"):
        tensor_rules.verify("rrs", p, q, drafts, schemes, u.to("meta"))
    with pytest.raises(TypeError, match="p must be a torch tensor, got ndarray"):
        tensor_rules.verify("rrs", p.numpy(), q, drafts, schemes, u)
    with pytest.raises(TypeError, match="q must hold real floating-point numbers"):
        tensor_rules.verify("rrs", p, q.long(), drafts, schemes, u)
    with pytest.raises(TypeError, match="drafts must hold integers"):
        tensor_rules.verify("rrs", p, q, drafts.double(), schemes, u)
    with pytest.raises(TypeError, match="uniforms must be float64"):
        tensor_rules.verify("rrs", p, q, drafts, schemes, u.float())
    with pytest.raises(TypeError, match="for row 1"):
        tensor_rules.verify("rrs", p, q, drafts, schemes, [np.random.default_rng(0), None, *[None] * 10])
    with pytest.raises(TypeError, match="for row 0"):
        tensor_rules.verify("rrs", p, q, drafts, ["rrs"] * 12, u)
    for wrong in ((p[0], q, drafts), (p, q[:, :4], drafts), (p, q, drafts[:3]), (p, q, drafts[:, :2])):
        with pytest.raises(ValueError, match="must have"):
            tensor_rules.verify("rrs", *wrong, schemes, u)
    with pytest.raises(ValueError, match="uniforms must have shape"):
        tensor_rules.verify("rrs", p, q, drafts, schemes, u[:, :3])
    with pytest.raises(ValueError, match="schemes must have"):
        tensor_rules.verify("rrs", p, q, drafts, schemes[:2], u)
    with pytest.raises(UnsupportedScheme, match=r"row 1: .*deterministic"):
        tensor_rules.verify("rrs", p[:2], q[:2], drafts[:2], [WithReplacement(1), Deterministic(1)], u[:2])
    with pytest.raises(KeyError, match="no verifier is named"):
        tensor_rules.verify("nothing", p, q, drafts, schemes, u)


@EACH_RULE
def test_an_empty_batch(name):
    none = torch.empty((0, 3), dtype=torch.float64)
    verdict = tensor_rules.verify(name, none, none, none.long(), [], none)
    assert verdict.tokens.shape == verdict.accepted_index.shape == (0,)


@EACH_RULE
def test_no_rule_asks_the_device_for_a_value(name):
    """On the meta device tensors have no values: whatever would wait for one raises."""
    rng = np.random.default_rng(2)
    p, q, drafts, schemes, u = random_batch(rng, [softmax_pair(rng, 1000) for _ in range(6)], schemes_of(name))
    on_meta = [x.to("meta") for x in (p, q, drafts, u)]
    verdict = tensor_rules.verify(name, *on_meta[:3], schemes, on_meta[3], check=False)
    assert verdict.tokens.device.type == "meta"
    assert verdict.tokens.shape == (6,)
    nodes = Nodes.of(*on_meta[:3], schemes)
    with pytest.raises(RuntimeError, match="meta"):
        bool(nodes.p.sum() > 0)  # the check bites: this is how asking looks there


def test_every_row_has_its_own_temperature():  # I15
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 700)) * 3)
    logits[2, 5] = -np.inf
    logits[0, 3] = logits[0, 9] = 20.0  # a tie: the lower id
    temperatures = [0.0, 1.0, 0.3, 1e-7, 2.0]
    for dtype in (torch.float64, torch.float32):
        got = tensor_rules.probabilities(logits.to(dtype), temperatures)
        for i, t in enumerate(temperatures):
            want = by_row(logits[i].to(dtype), SamplingParams(temperature=t))
            np.testing.assert_allclose(got[i].numpy(), want, atol=1e-15)
    assert got[0].argmax() == 3
    one = tensor_rules.probabilities(logits, 0.7)
    assert torch.equal(one, tensor_rules.probabilities(logits, [0.7] * 5))
    assert torch.equal(one, tensor_rules.probabilities(logits, torch.full((5,), 0.7, dtype=torch.float64)))


def test_bad_logits_and_temperatures_raise():
    logits = torch.zeros((3, 4))
    for bad in (np.nan, np.inf):
        wrong = logits.clone()
        wrong[1, 2] = bad
        with pytest.raises(ValueError, match="row 1: logits must be finite"):
            tensor_rules.probabilities(wrong, 1.0)
    nothing = logits.clone()
    nothing[2] = -np.inf
    with pytest.raises(ValueError, match="row 2: logits"):
        tensor_rules.probabilities(nothing, 1.0)
    with pytest.raises(ValueError, match="temperature must be finite"):
        tensor_rules.probabilities(logits, [1.0, -1.0, 1.0])
    with pytest.raises(ValueError, match="one for each row, got 2"):
        tensor_rules.probabilities(logits, [1.0, 1.0])
    with pytest.raises(ValueError, match="shape"):
        tensor_rules.probabilities(logits[0], 1.0)
    with pytest.raises(TypeError, match="floating-point"):
        tensor_rules.probabilities(logits.long(), 1.0)
