"""The same equalities on a CUDA device; run by `make gpu-check`."""

import numpy as np
import pytest
import torch

from mdsd_core.decoding import tensor_rules
from mdsd_core.decoding.tensor_rules._nodes import Nodes
from tests.decoding.tensor_rules.cases import ON_TENSORS, as_rows, random_batch, row_by_row, sized
from tests.instances import softmax_pair

pytestmark = pytest.mark.gpu

RULES = sorted({name for name, _ in ON_TENSORS})


def on_gpu(tensors, dtype=torch.float64):
    return [x.to("cuda", dtype if x.dtype.is_floating_point else x.dtype) for x in tensors]


@pytest.mark.parametrize("name", [*RULES, "optimal"])
@pytest.mark.parametrize("V", [5, 1537, 49_152])
def test_verify_is_that_of_the_verifier(name, V):
    rng = np.random.default_rng(V)
    pairs = sized(V) if V < 10 else [softmax_pair(rng, V, noise=1.5) for _ in range(12)]
    schemes = [scheme for rule, scheme in ON_TENSORS if rule == ("rrs" if name == "optimal" else name)]
    p, q, drafts, schemes, u = random_batch(rng, pairs, schemes)
    want = row_by_row(name, p, q, drafts, schemes, u)
    device_p, device_q, device_drafts, device_u = on_gpu((p, q, drafts, u))
    verdict = tensor_rules.verify(name, device_p, device_q, device_drafts, schemes, device_u)
    assert verdict.tokens.device.type == "cuda"
    assert as_rows(verdict) == want


@pytest.mark.parametrize("name", RULES)
def test_no_rule_waits_for_the_device(name):
    from mdsd_core.decoding.tensor_rules._rules import RULES as rules

    rng = np.random.default_rng(1)
    schemes = [scheme for rule, scheme in ON_TENSORS if rule == name]
    p, q, drafts, schemes, u = random_batch(rng, [softmax_pair(rng, 1537) for _ in range(8)], schemes)
    device_p, device_q, device_drafts, device_u = on_gpu((p, q, drafts, u))
    nodes = Nodes.of(device_p, device_q, device_drafts, schemes)
    torch.cuda.set_sync_debug_mode("error")
    try:
        tokens, _ = rules[name](nodes, device_u)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert tokens.tolist() == [token for token, _, _ in row_by_row(name, p, q, drafts, schemes, u)]


def test_a_device_of_its_own_for_the_uniforms_is_refused():
    rng = np.random.default_rng(0)
    schemes = [scheme for rule, scheme in ON_TENSORS if rule == "rrs"]
    p, q, drafts, schemes, u = random_batch(rng, sized(4), schemes)
    with pytest.raises(ValueError, match="uniforms must be on the device of p"):
        tensor_rules.verify("rrs", *on_gpu((p, q, drafts)), schemes, u)
