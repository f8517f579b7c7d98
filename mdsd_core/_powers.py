"""Differences of n-th powers without cancellation: the law ``n w^(n-1)`` of the largest of n uniforms, in pieces."""

import numpy as np

from mdsd_core._jit import inline_kernel, kernel
from mdsd_core._sums import add

#: Up to this ratio of n times the width to the middle, the series of :func:`power_series` reaches full precision.
NARROW = 0.02
#: Its relative error at the ends of such an interval.
END_ERROR = 1e-9


@inline_kernel
def power_series(middle, x, n):
    """``n w^(n-1)`` at the middle of an interval; and, relative to it, its mean and its values at the two ends.

    A power series in x, the width over the middle. O(log n).
    """
    density, base, bits = float(n), middle, n - 1
    while bits > 0:
        if bits & 1:
            density *= base
        base *= base
        bits >>= 1
    x *= 0.5
    square = x * x
    mean = 1.0 + (n - 1) * (n - 2) / 6.0 * square * (1.0 + (n - 3) * (n - 4) / 20.0 * square)
    even = 1.0 + 0.5 * (n - 1) * (n - 2) * square
    odd = (n - 1) * x * (1.0 + (n - 2) * (n - 3) / 6.0 * square)
    return density, mean, even - odd, even + odd


@inline_kernel
def power_mass(s, length, n):
    """``t^n - s^n`` for ``t = s + length``, and its density ``n w^(n-1)`` at s and at t.

    Relative accuracy for all s, length >= 0: by the series, or as length times the sum of ``t^i s^(n-1-i)``.
    """
    middle = s + 0.5 * length
    if n * length < NARROW * middle:
        density, mean, low, high = power_series(middle, length / middle, n)
        return length * density * mean, density * low, density * high
    t = s + length
    total = lower = upper = 1.0
    for _ in range(n - 1):
        lower *= s
        upper *= t
        total = total * t + lower
    return length * total, n * lower, n * upper


@kernel
def power_steps(w, n):
    """``t_k^n - t_{k-1}^n``, t the partial sums of `w` divided by its total: to full relative accuracy, O(m log n).

    >>> power_steps(np.array([1e-30, 1.0]), 2)
    array([1.e-60, 1.e+00])
    """
    total, lost = 0.0, 0.0
    for k in range(w.size):
        total, lost = add(total, lost, w[k])
    total += lost
    steps = np.empty(w.size)
    mass, lost = 0.0, 0.0
    for k in range(w.size):
        steps[k] = power_mass((mass + lost) / total, w[k] / total, n)[0]
        mass, lost = add(mass, lost, w[k])
    return steps
