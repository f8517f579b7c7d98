"""Residuals ``(p - l w)_+`` of recursive rejection sampling: their mass, and a draw from them, in O(V) without a sort.

Their one parameter is the level l; w are the weights of a :class:`~mdsd_core.verifiers._node.Node`.
"""

import numpy as np

from mdsd_core._jit import sum_kernel

#: Tokens summed at a time in a draw: long enough for SIMD, short enough that the last scan costs nothing.
_BLOCK = 512


@sum_kernel
def residual_mass(p, w, level):
    """``Z(l) = sum_x (p_x - l w_x)_+``."""
    total = 0.0
    for x in range(p.size):
        weight = p[x] - level * w[x]
        total += weight if weight > 0.0 else 0.0
    return total


@sum_kernel
def draw_residual(p, w, level, u):
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
            weight = p[x] - level * w[x]
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
        weight = p[x] - level * w[x]
        if weight > 0.0:
            token = x
            below += weight
            if below > sought:
                break
    return token


@sum_kernel
def rest_mass(w, gone):
    """The sum of w without the tokens `gone`: summed without them, as what is left may be a tiny part of the whole."""
    edges = np.sort(gone)
    total, first = 0.0, 0
    for i in range(edges.size + 1):
        last = edges[i] if i < edges.size else w.size
        for x in range(first, last):
            total += w[x]
        first = last + 1
    return total
