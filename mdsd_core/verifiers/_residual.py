"""Residuals ``(p - l q)_+`` of recursive rejection sampling: their mass, and a draw from them, in O(V) without a sort.

Their one parameter, the level l, is passed divided by :data:`LIFT`, and q is multiplied by it here: a level can be as
large as 1/q(x), which for a subnormal q(x) is beyond the largest float64. A power of two changes no digit.
"""

import numpy as np

from mdsd_core._jit import sum_kernel

LIFT = 2.0**64

#: Tokens summed at a time in a draw: long enough for SIMD, short enough that the last scan costs nothing.
_BLOCK = 512


@sum_kernel
def residual_mass(p, q, level):
    """``Z(l) = sum_x (p_x - l q_x)_+`` with ``l = level * LIFT``."""
    total = 0.0
    for x in range(p.size):
        weight = p[x] - level * (q[x] * LIFT)
        total += weight if weight > 0.0 else 0.0
    return total


@sum_kernel
def draw_residual(p, q, level, u):
    """The token at ``u * Z(l)`` of the cumulative residual; -1 if the residual is empty.

    A token of weight 0 is never returned: the cumulative sum must *exceed* the point sought, and if rounding leaves
    the point beyond the end, the last token of positive weight is taken.
    """
    blocks = (p.size + _BLOCK - 1) // _BLOCK
    mass = np.empty(blocks)
    total = 0.0
    for b in range(blocks):
        part = 0.0
        for x in range(b * _BLOCK, min((b + 1) * _BLOCK, p.size)):
            weight = p[x] - level * (q[x] * LIFT)
            part += weight if weight > 0.0 else 0.0
        mass[b] = part
        total += part
    sought = u * total
    chosen = -1
    below, reached = 0.0, 0.0  # the mass before the chosen block, and up to its end
    for b in range(blocks):
        if mass[b] > 0.0:
            chosen, below, reached = b, reached, reached + mass[b]
            if reached > sought:
                break
    if chosen < 0:
        return -1
    token = -1
    for x in range(chosen * _BLOCK, min((chosen + 1) * _BLOCK, p.size)):
        weight = p[x] - level * (q[x] * LIFT)
        if weight > 0.0:
            token = x
            below += weight
            if below > sought:
                break
    return token
