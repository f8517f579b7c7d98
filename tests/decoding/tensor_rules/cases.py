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
    """All drafts of a scheme for all pairs of this size: (p, q, drafts, weights, number of the pair), in random order.

    A row of the batch is one tuple of drafts; the rows of different pairs are mixed.
    """
    pairs = sized(V)
    tuples, weights = zip(*(scheme.enumerate(q) for _, q in pairs))
    owner = np.repeat(np.arange(len(pairs)), [len(w) for w in weights])
    order = np.random.default_rng(len(owner)).permutation(len(owner))
    owner = owner[order]
    p, q = (np.stack([pair[i] for pair in pairs])[owner] for i in (0, 1))
    drafts, weights = np.concatenate(tuples)[order], np.concatenate(weights)[order]
    return torch.from_numpy(p), torch.from_numpy(q), torch.from_numpy(drafts), weights, owner


def pooled(law, weights, owner, pairs):
    """The law of the emitted token of each pair, summed over its drafts, [pairs, V]."""
    total = np.zeros((pairs, law.shape[1]))
    np.add.at(total, owner, weights[:, None] * law.cpu().numpy())
    return total


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
