"""The rules on the host: compiled, one row after the other, so that a row stays in the processor's cache.

A chain of tensor operations would bring all of [B, V] in from memory at each step. Here each row is checked and judged
while it is near, by the verifiers' own kernels, and the rows are shared out among as many threads as torch uses.
"""

import functools
import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from mdsd_core._jit import kernel, sum_kernel
from mdsd_core.batched._nodes import LIFT, tolerance, top
from mdsd_core.schemes import Scheme
from mdsd_core.verifiers._residual import draw, residual, residual_mass, rest_mass

#: Fewer entries than these are not worth a second thread.
_SMALL = 200_000


def on_host(x: Tensor) -> bool:
    """True if the rows of `x` lie in the memory of the host."""
    return x.device.type == "cpu"


def judge(
    name: str, p: Tensor, q: Tensor, drafts: Tensor, schemes: Sequence[Scheme], u: Tensor
) -> tuple[Tensor, Tensor, bool]:
    """Tokens and uniforms used, both [B], and whether p, q and drafts of all rows are right beyond doubt."""
    rows = tuple(np.ascontiguousarray(x.numpy()) for x in (p.double(), q.double(), drafts.long(), u))
    B = len(p)
    n, tops = np.array([scheme.drafts for scheme in schemes]), np.array([top(scheme) for scheme in schemes])
    distinct = np.array([scheme.distinct for scheme in schemes])
    tokens, used, good = np.full(B, -1), np.zeros(B, dtype=np.int64), np.zeros(B, dtype=np.bool_)
    allowed = (tolerance(p), tolerance(q))

    def work(first: int, last: int) -> None:
        part = slice(first, last)
        about = (n[part], tops[part], distinct[part])
        out = (tokens[part], used[part], good[part])
        _judge_rows(KINDS[name], *(x[part] for x in rows), *about, *allowed, *out)

    _share_out(work, B, B * p.shape[1])
    return torch.from_numpy(tokens), torch.from_numpy(used), bool(good.all())


#: The rules that are compiled, by the kind of judging.
_MATCHING, _WITH, _WITHOUT = 0, 1, 2
KINDS = {"token_matching": _MATCHING, "rrs": _WITH, "greedy": _WITH, "rrs_without": _WITHOUT}


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="mdsd-rows")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child process has none of its parent's threads


def _share_out(work: Callable[[int, int], None], rows: int, entries: int) -> None:
    threads = min(torch.get_num_threads(), rows)
    if threads == 1 or entries < _SMALL:
        work(0, rows)
        return
    edges = [rows * i // (2 * threads) for i in range(2 * threads + 1)]
    for done in [_pool(threads).submit(work, a, b) for a, b in itertools.pairwise(edges) if a < b]:
        done.result()


@kernel
def _judge_rows(kind, p, q, drafts, u, n, tops, distinct, off_p, off_q, tokens, used, good):
    V = p.shape[1]
    lifted = np.empty(V)
    for i in range(n.size):
        mass, below_p = _sum_of(p[i])
        total, below_q = _sum_of(q[i])
        fixed = top_ids(q[i], min(tops[i], V))
        good[i] = abs(mass - 1.0) <= off_p and abs(total - 1.0) <= off_q and below_p >= 0.0 and below_q >= 0.0
        good[i] &= fixed.size == tops[i] and _possible(q[i], drafts[i], n[i], fixed, distinct[i])
        if not np.isfinite(mass):
            continue
        if kind == _MATCHING:
            tokens[i], used[i] = draw(p[i], u[i, 0]), 1
            continue
        sampled = _sampled(drafts[i], V, fixed)
        if kind == _WITH and fixed.size == 0:
            tokens[i], used[i] = _rejection(p[i], q[i], mass, total, sampled, u[i], True)
            continue
        if fixed.size == 0 and sampled.size > 0:  # most first drafts pass: no need to lift q for them
            x = sampled[0]
            if u[i, 0] * (mass * (q[i, x] / total)) < p[i, x]:
                tokens[i], used[i] = x, 1
                continue
        _lift(q[i], fixed, lifted)
        total, _ = _sum_of(lifted)
        tokens[i], used[i] = _rejection(p[i], lifted, mass, total, sampled, u[i], kind == _WITH)


@kernel
def _rejection(p, w, mass, rest, sampled, u, replacement):
    """As in :meth:`mdsd_core.verifiers.recursive_rejection.RecursiveRejectionPlan.verify`; (token, uniforms used)."""
    level, used = 0.0, 0
    for x in sampled:
        weight = p[x] - level * w[x]
        used += 1
        if u[used - 1] * (mass * (w[x] / rest)) < weight:
            return x, used
        next_level = level + mass / rest
        next_mass = residual_mass(p, w, next_level)
        if next_mass == 0.0:
            if weight > 0.0:
                return x, used
            break
        level, mass = next_level, next_mass
        if not replacement and used < sampled.size:
            rest = rest_mass(w, sampled[:used])
    return draw(residual(p, w, level), u[used]), used + 1


@sum_kernel
def _sum_of(x):
    """The sum of all entries (NaN and infinity show in it), and of the negative ones."""
    total, below = 0.0, 0.0
    for i in range(x.size):  # over indices, with `min`: a form that becomes SIMD
        total += x[i]
        below += min(x[i], 0.0)
    return total, below


@kernel
def _lift(q, fixed, lifted):
    for x in range(q.size):
        lifted[x] = q[x] * LIFT
    for x in fixed:
        lifted[x] = 0.0


@kernel
def top_ids(q, m):
    """The m most probable tokens, lowest id first among ties, none of probability 0."""
    ids, largest = np.full(m, -1), np.zeros(m)
    if m > 0:
        for x in range(q.size):
            if q[x] > largest[m - 1]:
                j = m - 1
                while j > 0 and q[x] > largest[j - 1]:
                    ids[j], largest[j] = ids[j - 1], largest[j - 1]
                    j -= 1
                ids[j], largest[j] = x, q[x]
    return ids[ids >= 0]


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
