"""Differences of n-th powers without cancellation: the law ``n w^(n-1)`` of the largest of n uniforms, in pieces."""

import numpy as np

from mdsd_core._jit import inline_kernel, kernel
from mdsd_core._sums import add


@inline_kernel
def power_slope(t, s, n):
    """``(t^n - s^n) / (t - s)`` as the sum of ``t^i s^(n-1-i)``: only positive terms, and ``n t^(n-1)`` at s = t."""
    total, power = 1.0, 1.0
    for _ in range(n - 1):
        power *= s
        total = total * t + power
    return total


@kernel
def power_steps(w, n):
    """``t_k^n - t_{k-1}^n``, t the partial sums of `w` divided by its total: to full relative accuracy, O(m n).

    >>> power_steps(np.array([1e-30, 1.0]), 2)
    array([1.e-60, 1.e+00])
    """
    total, lost = 0.0, 0.0
    for k in range(w.size):
        total, lost = add(total, lost, w[k])
    total += lost
    steps = np.empty(w.size)
    mass, lost, t = 0.0, 0.0, 0.0
    for k in range(w.size):
        s = t
        mass, lost = add(mass, lost, w[k])
        t = (mass + lost) / total
        steps[k] = (w[k] / total) * power_slope(t, s, n)
    return steps
