"""The rules on tensors: lossless by enumeration, equal to the verifiers row by row, verify as the law says."""

import numpy as np
import pytest
import torch

from mdsd_core.decoding import tensor_rules
from mdsd_core.decoding.tensor_rules import _host
from mdsd_core.distributions import check_distribution
from mdsd_core.schemes import DistinctConditioned, WithoutReplacement, WithReplacement, odds
from mdsd_core.verifiers import Verdict, verifier
from tests.core.verifiers.cases import ALL_PAIRS, label
from tests.core.verifiers.decision_tree import LAST, decision_law
from tests.decoding.tensor_rules.cases import (
    ON_TENSORS,
    as_rows,
    everything,
    pooled,
    random_batch,
    row_by_row,
    sized,
)
from tests.instances import softmax_pair, total_variation

RULES = sorted({name for name, _ in ON_TENSORS})
EACH = pytest.mark.parametrize(("name", "scheme"), ON_TENSORS, ids=label)


def schemes_of(name):
    return [scheme for rule, scheme in ON_TENSORS if rule == name]


@pytest.fixture(params=["kernels", "tensor operations"])
def passes(request, monkeypatch):
    """Run the passes over the vocabulary as on the CPU, and as on a GPU."""
    if request.param == "tensor operations":
        monkeypatch.setattr(_host, "on_host", lambda x: False)


def test_all_rules_but_those_that_sort_run_on_tensors():
    assert set(RULES) == {"rrs", "rrs_without", "greedy", "kseq", "spechub", "deterministic", "token_matching"}


@EACH
def test_output_law_is_lossless(name, scheme):
    for V in range(1, 7):
        p, q, drafts, weights, owner = everything(scheme, V)
        law = pooled(tensor_rules.output_law(name, p, q, drafts, scheme), weights, owner, len(sized(V)))
        for (target, _), emitted in zip(sized(V), law):
            assert total_variation(emitted, target) <= 1e-12
            assert not emitted[target == 0].any()


@EACH
def test_output_law_of_float32_rows_is_within_1e_6(name, scheme):
    pairs = ALL_PAIRS[::7]
    rows = []
    for i, (p, q) in enumerate(pairs):
        low_p, low_q = torch.from_numpy(p).float()[None], torch.from_numpy(q).float()[None]
        tuples, weights = scheme.enumerate(check_distribution(low_q[0]))
        one = [x.expand(len(tuples), -1) for x in (low_p, low_q)]  # one row of memory, stride 0
        law = tensor_rules.output_law(name, *one, torch.from_numpy(tuples), scheme)
        assert law.dtype == torch.float64
        assert total_variation(weights @ law.numpy(), p) <= 1e-6
        assert total_variation(weights @ law.numpy(), check_distribution(low_p[0])) <= 1e-12
        rows.append(i)
    assert len(rows) > 40


@pytest.mark.parametrize("name", RULES)
def test_output_law_of_mixed_rows_is_that_of_the_verifier(name):
    # At p = q, K-SEQ's rho is a double root: two searches agree to the root of the rounding, and both are lossless.
    tolerance = 1e-7 if name == "kseq" else 1e-12
    rng = np.random.default_rng(5)
    for V in (2, 4, 5):
        pairs = sized(V)
        p, q, drafts, schemes, _ = random_batch(rng, pairs, rng.permutation(np.array(schemes_of(name), object)))
        law = tensor_rules.output_law(name, p, q, drafts, schemes).numpy()
        for i, scheme in enumerate(schemes):
            given = drafts[i, : scheme.drafts].numpy()
            want = verifier(name).prepare(*pairs[i], scheme).output_law(given)
            assert total_variation(law[i], want) <= tolerance


@pytest.mark.parametrize("name", RULES)
def test_verify_of_mixed_rows_is_that_of_the_verifier(name, passes):
    rng = np.random.default_rng(6)
    for V in range(1, 7):
        for _ in range(3):
            order = rng.permutation(len(sized(V)))
            batch = random_batch(rng, [sized(V)[i] for i in order], schemes_of(name))
            assert as_rows(tensor_rules.verify(name, *batch)) == row_by_row(name, *batch)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("V", [512, 1000, 1537])
def test_verify_of_larger_vocabularies_is_that_of_the_verifier(name, V, passes):
    rng = np.random.default_rng(V)
    pairs = [softmax_pair(rng, V, temperature=t, noise=1.5) for t in (0.1, 0.7, 1.5) for _ in range(8)]
    for _ in range(3):
        batch = random_batch(rng, pairs, schemes_of(name))
        answers = row_by_row(name, *batch)
        assert as_rows(tensor_rules.verify(name, *batch)) == answers
    assert len({used for _, _, used in answers}) > (name != "token_matching")


@pytest.mark.large
@pytest.mark.parametrize("name", RULES)
def test_real_vocabulary_and_float32_rows(name):
    rng = np.random.default_rng(9)
    pairs = [softmax_pair(rng, 49_152) for _ in range(6)]
    p, q, drafts, schemes, uniforms = random_batch(rng, pairs, schemes_of(name))
    for dtype in (torch.float64, torch.float32):
        batch = p.to(dtype), q.to(dtype), drafts, schemes, uniforms
        assert as_rows(tensor_rules.verify(name, *batch)) == row_by_row(name, *batch)


class _OneRow:
    """The batched rule as a plan of one node, so that its decisions can be integrated over the uniforms."""

    def __init__(self, name, p, q, scheme):
        self.name, self.scheme = name, scheme
        self.p, self.q = torch.from_numpy(p)[None], torch.from_numpy(q)[None]

    def verify(self, drafts, source):
        values = source.values[source.used : source.used + tensor_rules.uniforms_for(self.scheme)]
        u = torch.tensor([values], dtype=torch.float64)
        rows = torch.from_numpy(drafts)[None]
        verdict = tensor_rules.verify(self.name, self.p, self.q, rows, self.scheme, u, check=False)
        ((token, index, used),) = as_rows(verdict)
        source.used += used
        return Verdict(token, index)


@pytest.mark.parametrize("name", RULES)
def test_verify_follows_output_law(name):
    rng = np.random.default_rng(3)
    scheme = next(scheme for scheme in schemes_of(name) if scheme.drafts == 2)
    for p, q in [ALL_PAIRS[i] for i in rng.permutation(len(ALL_PAIRS))[: 1 if name == "kseq" else 3]]:
        drafts = scheme.sample(q, rng)
        rows = (torch.from_numpy(x)[None] for x in (p, q, drafts))
        law = tensor_rules.output_law(name, *rows, scheme)[0].numpy()
        assert total_variation(decision_law(_OneRow(name, p, q, scheme), drafts, p.size), law) <= 1e-12


@EACH
def test_extreme_uniforms_give_possible_tokens(name, scheme, passes):
    for V in (1, 2, 3, 5):
        p, q, drafts, *_ = everything(scheme, V)
        if _host.on_host(p) and name not in _host.KINDS:  # by the verifier itself, which has such a test
            p, q, drafts = p[:50], q[:50], drafts[:50]
        for u in (0.0, LAST, 1.0 - 2.0**-24):
            uniforms = torch.full((len(p), tensor_rules.uniforms_for(scheme)), u, dtype=torch.float64)
            tokens = tensor_rules.verify(name, p, q, drafts, scheme, uniforms).tokens
            assert ((tokens >= 0) & (tokens < V)).all()
            assert (p.gather(1, tokens[:, None]) > 0.0).all()


@pytest.mark.parametrize("name", ["token_matching", "optimal"])
def test_rules_that_sort_run_row_by_row(name):
    rng = np.random.default_rng(4)
    schemes = [WithReplacement(2), WithReplacement(3), WithoutReplacement(2), DistinctConditioned(2, odds)]
    assert not tensor_rules.runs_on_tensors(name, schemes)
    for V in (1, 3, 5):
        batch = random_batch(rng, sized(V), schemes)
        assert as_rows(tensor_rules.verify(name, *batch)) == row_by_row(name, *batch)
        p, q, drafts, each, _ = batch
        law = tensor_rules.output_law(name, p, q, drafts, each).numpy()
        for i, scheme in enumerate(each):
            plan = verifier(name).prepare(p[i], q[i], scheme)
            assert law[i].tolist() == plan.output_law(drafts[i, : scheme.drafts].numpy()).tolist()


@pytest.mark.parametrize("name", [*RULES, "optimal"])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("wide", [False, True])
def test_a_softmax_of_a_coarser_type_passes_as_in_its_own(name, kind, wide, passes):
    rng = np.random.default_rng(7)
    pairs = [softmax_pair(rng, V=40) for _ in range(5)]
    p, q = (torch.from_numpy(np.stack(x)).to(kind) for x in zip(*pairs))
    assert ((p.double().sum(dim=1) - 1.0).abs() > 1e-9).any()
    if wide:
        p, q = p.double(), q.double()
    scheme = WithReplacement(2) if name == "optimal" else schemes_of(name)[0]
    drafts = torch.from_numpy(np.stack([scheme.sample(row, rng) for row in q]))
    u = torch.from_numpy(rng.random((5, tensor_rules.uniforms_for(scheme))))
    rows = check_distribution(p, ndim=2), check_distribution(q, ndim=2)
    want = tensor_rules.verify(name, *map(torch.from_numpy, rows), drafts, scheme, u)
    assert as_rows(tensor_rules.verify(name, p, q, drafts, scheme, u)) == as_rows(want)
    law = tensor_rules.output_law(name, *map(torch.from_numpy, rows), drafts, scheme)
    torch.testing.assert_close(tensor_rules.output_law(name, p, q, drafts, scheme), law, atol=1e-14, rtol=0)
    p[3, 0] += 0.25
    with pytest.raises(ValueError, match=r"row 3: p must sum to 1 \(tolerance"):
        tensor_rules.verify(name, p, q, drafts, scheme, u)
