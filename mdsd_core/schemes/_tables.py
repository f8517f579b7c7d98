"""Tables and kernels that turn uniforms into drafts. Tokens stand most probable first: no tail is lost to rounding.

In that order the mass of everything from position i on is a sum over a tail, accurate relative to itself; what is left
after the largest tokens have been drawn can be 1e-300 of the whole and is still divided in the right proportions.
"""

from functools import lru_cache
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from mdsd_core._jit import inline_kernel, kernel, sum_kernel

#: Tokens handled at a time by SIMD.
BLOCK = 1024


def descending(w: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The tokens of positive weight, largest first, and their weights relative to the largest."""
    order = np.argsort(-w)[: np.count_nonzero(w)]
    return order, w[order] / w[order[0]]


def tail_sums(w: NDArray[np.float64]) -> NDArray[np.float64]:
    """``sum of w[i:]`` for every i, shape [size + 1], ending in 0, each added up from its small end."""
    return np.concatenate((np.cumsum(w[::-1])[::-1], [0.0]))


@lru_cache(maxsize=64)
def growth_powers(most: int, orders: int) -> NDArray[np.float64]:
    """``c[r, l]``: the coefficient of x^l in ``(e^x - 1)^r``, r! / l! times a Stirling number of the second kind."""
    c = np.zeros((most + 1, orders + 1))
    for r in range(most + 1):
        for order in range(r, orders + 1):
            count = sum((-1) ** (r - i) * comb(r, i) * i**order for i in range(r + 1))
            c[r, order] = count / factorial(order)
    return c


@sum_kernel
def power_sums(v, orders):
    """Sums of v^0 .. v^orders, a block of v at a time."""
    sums = np.zeros(orders + 1)
    power = np.empty(BLOCK)
    for first in range(0, v.size, BLOCK):
        block = v[first : first + BLOCK]
        power[:] = 1.0
        for j in range(orders + 1):
            total = 0.0
            for x in range(block.size):
                total += power[x]
                higher = power[x] * block[x]
                power[x] = higher if higher > 1e-100 else 0.0  # subnormal numbers are slow
            sums[j] += total
    return sums


@inline_kernel
def _position(tail, first, last, x):
    """The smallest i in [first, last] with ``tail[first] - tail[i + 1] > x`` (last if there is none)."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if tail[first] - tail[middle + 1] > x:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def draw_sequential(tail, u, out):
    """Positions drawn one after the other without replacement: ``out[r, j]`` from ``u[r, j]``, as far as they go."""
    size = tail.size - 1
    n = min(u.shape[1], size)
    taken = np.empty(n + 1, np.int64)  # ascending
    for r in range(u.shape[0]):
        for j in range(n):
            # what is left are the ranges between the positions taken; the last range ends the table
            taken[j] = size
            total, first = 0.0, 0
            for i in range(j + 1):
                total += tail[first] - tail[taken[i]]
                first = taken[i] + 1
            x, first, place, last_open = u[r, j] * total, 0, -1, -1
            for i in range(j + 1):
                if taken[i] > first:
                    last_open = taken[i] - 1
                    mass = tail[first] - tail[taken[i]]
                    if x < mass:
                        place = _position(tail, first, taken[i] - 1, x)
                        break
                    x -= mass
                first = taken[i] + 1
            if place < 0:  # rounding carried x past the end
                place = last_open
            out[r, j] = place
            i = j
            while i > 0 and taken[i - 1] > place:
                taken[i] = taken[i - 1]
                i -= 1
            taken[i] = place


@kernel
def symmetric_tails(w, n):
    """Elementary symmetric polynomials of the tails of a *descending* w, each relative to its largest term.

    ``table[k, m] = e_m(w[k:]) / (w[k] w[k+1] ... w[k+m-1])``, 0 where the tail has fewer than m tokens. By
    ``e_m(w[k:]) = e_m(w[k+1:]) + w[k] e_{m-1}(w[k+1:])`` it is made of ratios <= 1 and never leaves [1, binomial].
    """
    size = w.size
    table = np.zeros((size + 1, n + 1))
    table[size, 0] = 1.0
    for k in range(size - 1, -1, -1):
        table[k, 0] = 1.0
        for m in range(1, min(n, size - k) + 1):
            table[k, m] = table[k + 1, m - 1]
            if k + m < size:
                table[k, m] += table[k + 1, m] * (w[k + m] / w[k])
    return table


@inline_kernel
def _tail_ratio(w, table, j, k, m):
    """``e_m(w[j:]) / e_m(w[k:])`` for j >= k: the probability that none of k..j-1 is among the m to come."""
    ratio = table[j, m] / table[k, m]
    if ratio > 0.0:
        for i in range(m):
            ratio *= w[j + i] / w[k + i]
    return ratio


@kernel
def draw_conditioned(w, table, u, out):
    """Positions of n independent draws given that all differ, in random order, from ``u[r, :2n-1]``.

    The first n uniforms choose the set, from the front of the table: the next member after m are still to come. The
    others shuffle it, as all orders of a set are equally likely under this law.
    """
    asked = (u.shape[1] + 1) // 2
    n = min(asked, w.size)
    for r in range(u.shape[0]):
        k = 0
        for m in range(n, 0, -1):
            none_above = 1.0 - u[r, n - m]  # in (0, 1]
            low, high = k, w.size - m  # the smallest j with P(none of k..j is a member) < none_above
            while low < high:
                middle = (low + high) // 2
                if _tail_ratio(w, table, middle + 1, k, m) < none_above:
                    high = middle
                else:
                    low = middle + 1
            out[r, n - m] = low
            k = low + 1
        for i in range(n - 1, 0, -1):
            j = int(u[r, asked + i - 1] * (i + 1))
            out[r, i], out[r, j] = out[r, j], out[r, i]
