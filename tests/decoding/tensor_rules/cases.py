"""Batches for the tests: pairs, schemes and drafts stacked to tensors, and the verifiers' answers row by row."""

import functools

import numpy as np
import torch

from mdsd_core.decoding.tensor_rules import runs_on_tensors, uniforms_for
from mdsd_core.verifiers import verifier
from tests.core.verifiers.cases import ALL_PAIRS, combinations
from tests.core.verifiers.decision_tree import Injected

#: Every (rule, scheme) that runs on tensors.
ON_TENSORS = [(rule.name, scheme) for rule, scheme in combinations() if runs_on_tensors(rule.name, scheme)]


def sized(V):
    return [(p, q) for p, q in ALL_PAIRS if p.size == V]


def padded(rows, width=None):
    """Rows of drafts, of different lengths, as one tensor with -1 behind them."""
    width = width or max(len(row) for row in rows)
    result = np.full((len(rows), width), -1)
    for i, row in enumerate(rows):
        result[i, : len(row)] = row
    return torch.from_numpy(result)


def stacked(rows):
    return torch.from_numpy(np.stack(rows))


@functools.cache
def everything(scheme, V):
    """All drafts of a scheme for all pairs of this size, a row of the batch for each: p, q and drafts."""
    rows = [(p, q, drafts) for p, q in sized(V) for drafts in scheme.enumerate(q)[0]]
    return tuple(stacked(column) for column in zip(*rows))


def random_batch(rng, pairs, schemes):
    """One row a pair, with the schemes in turn, drafts from the pair's q and uniforms."""
    schemes = [schemes[i % len(schemes)] for i in range(len(pairs))]
    drafts = padded([scheme.sample(q, rng) for scheme, (_, q) in zip(schemes, pairs)])
    uniforms = torch.from_numpy(rng.random((len(pairs), max(uniforms_for(scheme) for scheme in schemes))))
    return stacked([p for p, _ in pairs]), stacked([q for _, q in pairs]), drafts, schemes, uniforms


def row_by_row(name, p, q, drafts, schemes, uniforms):
    """(token, accepted index, uniforms used) of the verifier at each row."""
    answers = []
    for i, scheme in enumerate(schemes):
        source = Injected(uniforms[i].tolist())
        plan = verifier(name).prepare(p[i], q[i], scheme)
        verdict = plan.verify(drafts[i, : scheme.drafts].numpy(), source)
        answers.append((verdict.token, verdict.accepted_index, source.used))
    return answers


def as_rows(verdict):
    return list(zip(verdict.tokens.tolist(), verdict.accepted_index.tolist(), verdict.used.tolist()))
