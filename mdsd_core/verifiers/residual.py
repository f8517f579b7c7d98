"""Weights that a token is drawn from, and the draw, in O(V) without a sort."""

import numpy as np

from mdsd_core._jit import kernel, sum_kernel

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
def residual(p, w, level):
    """``(p - l w)_+``, shape [V]."""
    weights = np.empty(p.size)
    for x in range(p.size):
        weight = p[x] - level * w[x]
        weights[x] = weight if weight > 0.0 else 0.0
    return weights


@sum_kernel
def sum_of(x):
    """The sum of x, by SIMD."""
    total = 0.0
    for i in range(x.size):  # over indices from 0, none of which can be meant from the end
        total += x[i]
    return total


@kernel
def draw(weights, u):
    """The token at ``u`` times their sum of the cumulative weights (all >= 0); -1 if all are 0.

    A token of weight 0 is never returned: the cumulative sum must *exceed* the point sought, and if rounding leaves
    the point beyond the end, the last token of positive weight is taken.
    """
    blocks = (weights.size + _BLOCK - 1) // _BLOCK
    mass = np.empty(blocks)
    for b in range(blocks):
        mass[b] = sum_of(weights[b * _BLOCK : (b + 1) * _BLOCK])
    sought = u * mass.sum()
    chosen = -1
    below, reached = 0.0, 0.0  # the mass before the chosen block, and up to its end
    for b in range(blocks):
        if mass[b] > 0.0:
            chosen, below, reached = b, reached, reached + mass[b]
            if reached > sought:
                break
    token = -1
    if chosen >= 0:
        for x in range(chosen * _BLOCK, min((chosen + 1) * _BLOCK, weights.size)):
            if weights[x] > 0.0:
                token = x
                below += weights[x]
                if below > sought:
                    break
    return token


@kernel
def rest_mass(w, gone):
    """The sum of w without the tokens `gone`: summed without them, as what is left may be a tiny part of the whole."""
    total, first = 0.0, 0
    while first <= w.size:
        last = w.size
        for x in gone:  # the next of them: few, and a sort takes seconds to compile
            if first <= x < last:
                last = x
        total += sum_of(w[first:last])
        first = last + 1
    return total
