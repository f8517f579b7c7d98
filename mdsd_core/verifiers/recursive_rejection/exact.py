"""P(all k drafts without replacement are rejected) under recursive rejection sampling: exact cases.

A history of rejections has two numbers that matter: the level l of the residual ``(p - l w)_+ / Z(l)`` and the weight
`rest` of the tokens not rejected yet. The next level is ``l + Z(l)/rest``; token x is rejected next with probability
``w_x/rest - (p_x - l w_x)_+/Z(l)`` (if positive), all tokens together with probability ``Z(next l)/Z(l)``.
"""

import numpy as np

from mdsd_core._jit import kernel
from mdsd_core.verifiers.residual import rest_mass
from mdsd_core.verifiers.residual_table import ResidualTable, mass_at

#: How many steps over histories are taken at most (some milliseconds).
_ENUMERABLE = 300_000


def rejection_exact(table: ResidualTable, draws: int, most: float = _ENUMERABLE) -> float | None:
    """The probability that all are rejected, where it can be had exactly: up to two draws, or `most` steps."""
    if draws == 0:
        return 1.0
    if draws > 2 and float(table.w.size) ** draws > most:
        return None
    _, w, ratio, above_p, above_w = table
    total = above_w[0]
    level = 1.0 / total
    rank, mass = mass_at(level, 0, ratio, above_p, above_w)
    if draws == 1 or mass == 0.0:
        return float(mass)
    rejected = np.zeros(w.size, dtype=np.bool_)
    return float(_all_rejected(table, draws, rejected, 0.0, 1.0, total, level, mass, rank))


@kernel
def _all_rejected(table, draws, rejected, level, mass, rest, next_level, next_mass, next_rank):
    """P(the next `draws` >= 2 drafts are rejected), summed over all histories, depth first; O(V log V) for two.

    The first of them is judged at `level` and has its law on the tokens not in `rejected`, of weight `rest`. Of the
    tokens in ratio order only the first `next_rank` can be rejected there.
    """
    p, w, ratio, above_p, above_w = table
    drawn, kept = 1.0 / rest, 1.0 / mass
    total, near = 0.0, next_rank
    for x in range(next_rank):
        chance = drawn * w[x] - kept * max(p[x] - level * w[x], 0.0)
        if rejected[x] or not chance > 0.0:
            continue
        rejected[x] = True
        left = rest - w[x]
        if w[x] >= 0.5 * rest:  # summed without x: no cancellation where it holds nearly everything
            left = rest_mass(w, np.flatnonzero(rejected))
        last_level = next_level + next_mass / left
        near, last_mass = mass_at(last_level, near, ratio, above_p, above_w)
        if draws > 2 and last_mass > 0.0:
            last_mass = next_mass * _all_rejected(
                table, draws - 1, rejected, next_level, next_mass, left, last_level, last_mass, near
            )
        total += chance * last_mass
        rejected[x] = False
    return total / next_mass
