"""P(x is among the drafts) for every token x: what token matching accepts.

Sequential drafts without replacement are the first n arrivals of a race in which x arrives at a time Exp(w_x):
``P(x in S) = int w_x e^{-w_x t} P(fewer than n others have arrived by t) dt``, a trapezoid sum in log t. The number of
arrivals is a sum of independent indicators. At every node of the integral

* the *heavy* tokens (about 100 of them) are multiplied out one by one, and each also without itself;
* the *light* ones, with ``w_x t <= 1/2`` up to the last node, enter through their power sums: their generating function
  is ``e^{-w(light) t} prod (1 + c_x z)`` with ``c_x = e^{w_x t} - 1``, its coefficients follow from the sums of
  ``c_x^i`` (Newton's identities), these from the sums of ``w_x^j``, and those are taken once.

As P(x in S)/w_x is the same smooth function of w_x for all light tokens, it is computed at 32 Chebyshev points and
interpolated. O(V) plus the nodes, whatever the vocabulary; the error is that of rounding (1e-14).
"""

from math import log

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from mdsd_core._jit import inline_kernel, kernel
from mdsd_core.schemes._tables import BLOCK, growth_powers, power_sums

_CHEBYSHEV = 32


def sequential_inclusion(w: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Inclusion probabilities of n drafts drawn sequentially without replacement by the weights `w` (any scale)."""
    inclusion = np.zeros(w.size)
    support = np.flatnonzero(w)
    if support.size <= n:
        inclusion[support] = 1.0
        return inclusion
    if n == 0:
        return inclusion
    heavies = min(support.size, 8 * n + 80)
    by_weight = support[np.argpartition(w[support], support.size - heavies)]
    light, heavy = by_weight[: support.size - heavies], by_weight[support.size - heavies :]
    heavy = heavy[np.argsort(-w[heavy], kind="stable")]
    light_w = w[light]
    light_total = float(light_w.sum())
    total = float(w[heavy][::-1].sum()) + light_total
    rest = float(w[heavy[n:]][::-1].sum()) + light_total  # without the n largest
    # t from 1e-17/total (before it, nobody has arrived) to where n arrivals are certain up to 1e-17
    per_octave = 4 + n // 4  # the more drafts, the more sudden the n-th arrival
    first, last = log(1e-17 / total, 2), log((40.0 + 3 * n) / rest, 2)
    t = np.exp2(first + np.arange(int(np.ceil((last - first) * per_octave)) + 1) / per_octave)
    weight = t * (log(2.0) / per_octave)
    weight[0] *= 1.0 / (1.0 - 2.0 ** (-1.0 / per_octave))  # all nodes before it, a geometric series
    scale = float(light_w.max()) if light.size else 0.0
    orders = n + 24
    relative = light_w / scale if light.size else light_w
    powers = power_sums(relative, orders)
    points = 0.5 * (1.0 + chebyshev.chebpts1(_CHEBYSHEV))  # in (0, 1)
    at_heavy, at_points = _race(
        t, weight, w[heavy], light_total, scale, powers, growth_powers(n - 1, orders), points * scale, n
    )  # fmt: skip
    inclusion[heavy] = w[heavy] * at_heavy
    if light.size:
        coefficients = chebyshev.chebinterpolate(lambda _: at_points, _CHEBYSHEV - 1)
        inclusion[light] = light_w * _evaluate(coefficients, relative)
    return np.minimum(inclusion, 1.0)


def conditioned_inclusion(w: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Inclusion probabilities of n independent draws by the weights `w`, given that all differ.

    ``w_x e_{n-1}(w without x) / e_n(w)``, as a ratio of probabilities: x is included independently with probability
    ``w_x/(w_x + k)``, and k is such that the expected number is n. O(V n^2), no overflow.
    """
    inclusion = np.zeros(w.size)
    support = np.flatnonzero(w)
    if support.size <= n:
        inclusion[support] = 1.0
        return inclusion
    v = w[support]
    low, high = log(v.min(), 2) - 64.0, log(v.max(), 2) + 64.0  # of log2 k
    for _ in range(20):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if (v / (v + 2.0**middle)).sum() > n else (low, middle)
    k = 2.0**high
    arrived, missing = v / (v + k), k / (v + k)
    without = np.empty((v.size, n))
    _leave_one_out(arrived, missing, without)
    hit = arrived * without[:, n - 1]
    inclusion[support] = np.minimum(hit * (n / hit.sum()), 1.0)  # they add up to n
    return inclusion


@inline_kernel
def _include(state, a, b):
    """Multiply the polynomial `state` by ``b + a z``, in place."""
    for m in range(state.size - 1, 0, -1):
        state[m] = state[m] * b + state[m - 1] * a
    state[0] *= b


@kernel
def _leave_one_out(a, b, without):
    """``without[x, m] = P(m of the others)``, m < n, for independent indicators of probability a = 1 - b."""
    size, n = without.shape
    state = np.zeros(n)
    state[0] = 1.0
    for x in range(size):
        for m in range(n):  # not without[x] = state, which takes seconds to compile
            without[x, m] = state[m]
        _include(state, a[x], b[x])
    state[:] = 0.0
    state[0] = 1.0
    for x in range(size - 1, -1, -1):
        for m in range(n - 1, -1, -1):
            total = 0.0
            for i in range(m + 1):
                total += without[x, i] * state[m - i]
            without[x, m] = total
        _include(state, a[x], b[x])


@kernel
def _race(t, weight, heavy_w, light_total, scale, powers, series, points, n):
    """``P(x in S) / w_x`` of the heavy tokens, and at the given weights of light ones."""
    at_heavy, at_points = np.zeros(heavy_w.size), np.zeros(points.size)
    a, b = np.empty(heavy_w.size), np.empty(heavy_w.size)
    without = np.empty((heavy_w.size, n))
    light, sums, everyone, others = np.empty(n), np.zeros(n), np.empty(n), np.empty(n)
    for j in range(t.size):
        for x in range(heavy_w.size):
            a[x], b[x] = -np.expm1(-heavy_w[x] * t[j]), np.exp(-heavy_w[x] * t[j])
        # light tokens: sums of c^i, then the elementary symmetric polynomials
        for i in range(1, n):
            sums[i], power = 0.0, 1.0
            for k in range(powers.size):
                sums[i] += series[i, k] * power * powers[k]
                power *= scale * t[j]
        light[0] = 1.0
        for m in range(1, n):
            light[m] = 0.0
            sign = 1.0
            for i in range(1, m + 1):
                light[m] += sign * light[m - i] * sums[i]
                sign = -sign
            light[m] /= m
        none = np.exp(-light_total * t[j])
        for m in range(n):
            light[m] *= none
        _leave_one_out(a, b, without)
        for x in range(heavy_w.size):
            fewer = 0.0
            for m in range(n):
                for i in range(m + 1):
                    fewer += without[x, i] * light[m - i]
            at_heavy[x] += weight[j] * b[x] * fewer
        if points.size > 0:
            for m in range(n):
                everyone[m] = without[0, m]
            _include(everyone, a[0], b[0])
            for m in range(n - 1, -1, -1):
                total = 0.0
                for i in range(m + 1):
                    total += everyone[i] * light[m - i]
                everyone[m] = total
            for k in range(points.size):
                # take a token of this weight out again: divide by b + a z; b cancels against its e^{-w t}
                odds = np.expm1(points[k] * t[j])
                fewer = 0.0
                for m in range(n):
                    others[m] = everyone[m] - (odds * others[m - 1] if m > 0 else 0.0)
                    fewer += others[m]
                at_points[k] += weight[j] * fewer
    return at_heavy, at_points


@kernel
def _evaluate(coefficients, u):
    """The Chebyshev series on [0, 1] at every u, by Clenshaw's recurrence, a block of u at a time."""
    result = np.empty(u.size)
    high, low = np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, u.size, BLOCK):
        block, out = u[first : first + BLOCK], result[first : first + BLOCK]
        high[:] = 0.0
        low[:] = 0.0
        for k in range(coefficients.size - 1, 0, -1):
            for x in range(block.size):
                low[x] = coefficients[k] + (4.0 * block[x] - 2.0) * high[x] - low[x]
            high, low = low, high
        for x in range(block.size):
            out[x] = coefficients[0] + (2.0 * block[x] - 1.0) * high[x] - low[x]
    return result
