"""P(all k drafts without replacement are rejected) under recursive rejection sampling: exact cases.

A history of rejections has two numbers that matter: the level l of the residual ``(p - l w)_+ / Z(l)`` and the weight
`rest` of the tokens not rejected yet. The next level is ``l + Z(l)/rest``; token x is rejected next with probability
``w_x/rest - (p_x - l w_x)_+/Z(l)`` (if positive), all tokens together with probability ``Z(next l)/Z(l)``.
"""

import numpy as np

from mdsd_core._jit import kernel
from mdsd_core.verifiers.residual_table import ResidualTable, mass_at, rank_above

#: Enumerate all histories where that takes no more steps than this (some milliseconds).
_ENUMERABLE = 300_000


def rejection_exact(order: ResidualTable, draws: int) -> float | None:
    """The probability that all are rejected, where it can be had exactly: up to two draws, or few histories."""
    if draws == 0:
        return 1.0
    if draws <= 2 and order.w.size > 64:
        return float(_two(order.p, order.w, order.ratio, order.above_p, order.above_w, draws))
    if float(order.w.size) ** draws <= _ENUMERABLE or draws == 1:
        return float(_enumerate(order.p, order.w, order.ratio, order.above_p, order.above_w, draws))
    return None


@kernel
def rest_without(w, x):
    """The weight of all tokens but x, summed without it: no cancellation where x holds nearly everything."""
    rest = 0.0
    for y in range(w.size):
        if y != x:
            rest += w[y]
    return rest


@kernel
def _two(p, w, ratio, above_p, above_w, draws):
    """One draw, or two by a sum over the first rejected token: O(V) after the sort."""
    total = above_w[0]
    level = 1.0 / total
    rank = rank_above(ratio, level, 0)
    mass = mass_at(rank, level, above_p, above_w)
    if draws == 1 or mass == 0.0:
        return mass
    rejected = 0.0
    near = rank
    for x in range(rank):
        rest = total - w[x] if w[x] < 0.5 * total else rest_without(w, x)
        lower = level + mass / rest
        near = rank_above(ratio, lower, near)
        rejected += (w[x] / total - p[x]) * mass_at(near, lower, above_p, above_w)
    return rejected / mass


@kernel
def _enumerate(p, w, ratio, above_p, above_w, draws):
    """All histories, depth first."""
    rejected = np.zeros(w.size, dtype=np.bool_)
    token = np.full(draws, -1)
    level, mass, chance = np.zeros(draws + 1), np.ones(draws + 1), np.ones(draws + 1)
    rest = np.empty(draws)
    total, depth, entered = 0.0, 0, True
    while depth >= 0:
        if entered:
            rest[depth] = 0.0
            for y in range(w.size):
                if not rejected[y]:
                    rest[depth] += w[y]
            level[depth + 1] = level[depth] + mass[depth] / rest[depth]
            rank = rank_above(ratio, level[depth + 1], 0)
            mass[depth + 1] = mass_at(rank, level[depth + 1], above_p, above_w)
            token[depth] = -1
            if depth == draws - 1:
                total += chance[depth] * mass[depth + 1] / mass[depth]
        else:
            rejected[token[depth]] = False
        entered = False
        if depth < draws - 1 and mass[depth + 1] > 0.0:
            x = token[depth] + 1
            while x < w.size:
                if not rejected[x]:
                    kept = max(p[x] - level[depth] * w[x], 0.0) / mass[depth]
                    share = w[x] / rest[depth] - kept
                    if share > 0.0:
                        break
                x += 1
            if x < w.size:
                token[depth], rejected[x], entered = x, True, True
                chance[depth + 1] = chance[depth] * share
        if entered:
            depth += 1
        else:
            depth -= 1
    return total
