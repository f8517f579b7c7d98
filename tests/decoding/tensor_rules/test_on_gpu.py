"""The same equalities on a CUDA device; run by `make gpu-check`."""

import numpy as np
import pytest
import torch

from mdsd_core.decoding import tensor_rules
from mdsd_core.decoding.tensor_rules._nodes import Nodes
from tests.core.verifiers.cases import label
from tests.decoding.tensor_rules.cases import ON_TENSORS, as_rows, everything, pooled, random_batch, row_by_row, sized
from tests.instances import softmax_pair, total_variation

pytestmark = pytest.mark.gpu

RULES = sorted({name for name, _ in ON_TENSORS})


def on_gpu(tensors, dtype=torch.float64):
    return [x.to("cuda", dtype if x.dtype.is_floating_point else x.dtype) for x in tensors]


@pytest.mark.parametrize(("name", "scheme"), ON_TENSORS, ids=label)
def test_output_law_is_lossless(name, scheme):
    for V in (1, 3, 5):
        *rows, weights, owner = everything(scheme, V)
        for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-6)):
            usable = slice(None) if dtype == torch.float64 else (rows[1].float() > 0).eq(rows[1] > 0).all(dim=1)
            some = [x[usable] for x in rows]
            kept = np.arange(len(owner)) if dtype == torch.float64 else usable.nonzero()[:, 0].numpy()
            law = tensor_rules.output_law(name, *on_gpu(some, dtype), scheme)
            assert law.device.type == "cuda"
            emitted = pooled(law, weights[kept], owner[kept], len(sized(V)))
            for i in np.unique(owner[kept]):
                assert total_variation(emitted[i], sized(V)[i][0]) <= tolerance


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
