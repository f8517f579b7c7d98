"""The rules on tensors of a CPU: compiled, one row after the other, so that a row stays in the processor's cache.

A chain of tensor operations would bring all of [B, V] in from memory at each step. Here each row is checked and judged
while it is near, by the verifiers' own kernels, and the rows are shared out among as many threads as torch uses.
"""

import functools
import itertools
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mdsd_core._jit import kernel, sum_kernel
from mdsd_core._leading import leading
from mdsd_core.decoding.tensor_rules._nodes import LIFT, tolerance
from mdsd_core.schemes import Scheme
from mdsd_core.verifiers.residual import residual_mass, rest_mass, sum_of

#: Fewer entries than these are not worth a second thread.
_SMALL = 200_000

#: Tokens summed at a time: a token is drawn by scanning one such block.
_BLOCK = 512


def on_host(x: Tensor) -> bool:
    """True if the rows of `x` lie in the memory of the host."""
    return x.device.type == "cpu"


def judge(
    name: str, p: Tensor, q: Tensor, drafts: Tensor, schemes: Sequence[Scheme], u: Tensor
) -> tuple[Tensor, Tensor, bool]:
    """Tokens and uniforms used, both [B], and whether p, q and drafts of all rows are right beyond doubt."""
    rows = tuple(np.ascontiguousarray(x.numpy()) for x in (p.double(), q.double(), drafts.long(), u))
    B = len(p)
    n, tops = np.array([scheme.drafts for scheme in schemes]), np.array([scheme.fixed_drafts for scheme in schemes])
    distinct = np.array([scheme.distinct for scheme in schemes])
    tokens, used, good = np.full(B, -1), np.zeros(B, dtype=np.int64), np.zeros(B, dtype=np.bool_)
    allowed = (tolerance(p), tolerance(q))

    def work(first: int, last: int, scratch: NDArray[np.float64]) -> None:
        part = slice(first, last)
        about = (n[part], tops[part], distinct[part])
        out = (tokens[part], used[part], good[part])
        _judge_rows(KINDS[name], *(x[part] for x in rows), *about, *allowed, *out, scratch)

    _share_out(work, *p.shape)
    return torch.from_numpy(tokens), torch.from_numpy(used), bool(good.all())


#: The rules that are compiled, by the kind of judging.
_MATCHING, _WITH, _WITHOUT = 0, 1, 2
KINDS = {"token_matching": _MATCHING, "rrs": _WITH, "rrs_without": _WITHOUT}


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="mdsd-rows")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child process has none of its parent's threads


def _share_out(work: Callable[[int, int, NDArray[np.float64]], None], rows: int, V: int) -> None:
    """Call ``work(first, last, scratch)`` for all rows, this thread and others taking parts until none is left."""
    threads = min(torch.get_num_threads(), rows) if rows * V >= _SMALL else 1
    edges = [rows * i // (4 * threads) for i in range(4 * threads + 1)]
    parts = deque((a, b) for a, b in itertools.pairwise(edges if threads > 1 else (0, rows)) if a < b)

    def take() -> None:
        scratch = np.empty(V)
        while True:
            try:
                first, last = parts.popleft()
            except IndexError:  # none left
                return
            work(first, last, scratch)

    helpers = [_pool(threads - 1).submit(take) for _ in range(threads - 1)]
    take()
    for helper in helpers:
        if not helper.cancel():  # one that has not begun has nothing left to do
            helper.result()


@kernel
def _judge_rows(kind, p, q, drafts, u, n, tops, distinct, off_p, off_q, tokens, used, good, lifted):
    V = p.shape[1]
    blocks = np.empty((V + _BLOCK - 1) // _BLOCK)
    for i in range(n.size):
        total, below_q = _sums(q[i], blocks)
        mass, below_p = _sums(p[i], blocks)
        fixed = leading(q[i], min(tops[i], V))
        good[i] = abs(mass - 1.0) <= off_p and abs(total - 1.0) <= off_q and below_p >= 0.0 and below_q >= 0.0
        good[i] &= fixed.size == tops[i] and _possible(q[i], drafts[i], n[i], fixed, distinct[i])
        if not np.isfinite(mass):
            continue
        if kind == _MATCHING:
            tokens[i], used[i] = _draw(p[i], p[i], 0.0, blocks, u[i, 0]), 1
            continue
        sampled = _sampled(drafts[i], V, fixed)
        if kind == _WITH and fixed.size == 0:
            tokens[i], used[i] = _rejection(p[i], q[i], mass, total, sampled, u[i], True, blocks)
            continue
        if sampled.size > 0:  # most first drafts pass: no need to lift q for them
            x = sampled[0]
            rest = total if fixed.size == 0 else rest_mass(q[i], fixed)
            if u[i, 0] * (mass * (q[i, x] / rest)) < p[i, x]:
                tokens[i], used[i] = x, 1
                continue
        _lift(q[i], fixed, lifted)
        rest = sum_of(lifted) if sampled.size > 0 else 0.0
        tokens[i], used[i] = _rejection(p[i], lifted, mass, rest, sampled, u[i], kind == _WITH, blocks)


@kernel
def _rejection(p, w, mass, rest, sampled, u, replacement, blocks):
    """As in :meth:`mdsd_core.verifiers.recursive_rejection.with_replacement.RecursiveRejectionPlan.verify`; (token,
    uniforms used).

    `blocks` holds the masses of the blocks of p, and is used for those of the residuals.
    """
    level, used = 0.0, 0
    for x in sampled:
        weight = p[x] - level * w[x]
        used += 1
        if u[used - 1] * (mass * (w[x] / rest)) < weight:
            return x, used
        next_level = level + mass / rest
        next_mass = _residual_masses(p, w, next_level, blocks)
        if next_mass == 0.0:
            if weight > 0.0:
                return x, used
            _residual_masses(p, w, level, blocks)
            break
        level, mass = next_level, next_mass
        if not replacement and used < sampled.size:
            rest = rest_mass(w, sampled[:used])
    return _draw(p, w, level, blocks, u[used]), used + 1


@kernel
def _sums(x, blocks):
    """The sum of all entries (NaN and infinity show in it), and of the negative ones; `blocks` takes that of each."""
    below = 0.0
    for b in range(blocks.size):
        blocks[b], some = _sum_of(x[b * _BLOCK : (b + 1) * _BLOCK])
        below += some
    return blocks.sum(), below


@sum_kernel
def _sum_of(x):
    total, below = 0.0, 0.0
    for i in range(x.size):  # over indices from 0, with `min`: a form that becomes SIMD
        total += x[i]
        below += min(x[i], 0.0)
    return total, below


@kernel
def _residual_masses(p, w, level, blocks):
    """``Z(l) = sum_x (p_x - l w_x)_+``, and into `blocks` what each block holds of it."""
    for b in range(blocks.size):
        part = slice(b * _BLOCK, (b + 1) * _BLOCK)
        blocks[b] = residual_mass(p[part], w[part], level)
    return blocks.sum()


@kernel
def _draw(p, w, level, blocks, u):
    """:func:`mdsd_core.verifiers.residual.draw` of the weights ``(p - l w)_+``, whose masses `blocks` holds."""
    sought = u * blocks.sum()
    chosen = -1
    below, reached = 0.0, 0.0
    for b in range(blocks.size):
        if blocks[b] > 0.0:
            chosen, below, reached = b, reached, reached + blocks[b]
            if reached > sought:
                break
    token = -1
    if chosen >= 0:
        for x in range(chosen * _BLOCK, min((chosen + 1) * _BLOCK, p.size)):
            weight = p[x] - level * w[x]
            if weight > 0.0:
                token = x
                below += weight
                if below > sought:
                    break
    return token


@kernel
def _lift(q, fixed, lifted):
    for x in range(q.size):
        lifted[x] = q[x] * LIFT
    for x in fixed:
        lifted[x] = 0.0


@kernel
def _sampled(drafts, V, fixed):
    free = np.empty(drafts.size, dtype=np.int64)
    count = 0
    for x in drafts:
        if 0 <= x < V and not (fixed == x).any():
            free[count] = x
            count += 1
    return free[:count]


@kernel
def _possible(q, drafts, n, fixed, distinct):
    """True for n drafts, and then padding, that are a possible draw; False for others, possible or not."""
    for j in range(drafts.size):
        x = drafts[j]
        if j >= n:
            if x != -1:
                return False
            continue
        if not (0 <= x < q.size and q[x] > 0.0):
            return False
        if distinct and (drafts[:j] == x).any():
            return False
    held = 0
    for x in fixed:
        held += (drafts == x).sum() == 1
    return held == fixed.size
