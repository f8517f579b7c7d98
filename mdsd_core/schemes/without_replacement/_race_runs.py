"""The race integral for runs of tokens at once: as much of Q as the optimal rate needs, and no more.

In the order of p/w, Q is convex over the prefixes and the target mass L is too: between two prefixes Q lies below its
chord, so ``Q - L`` can only be larger inside a run than at both ends if the slope of the chord lies strictly between
the ratios p/w of the run's first and last token. Only such runs are resolved token by token (mostly one or two); the
step of Q over any other run comes from the elementary symmetric polynomials of its ``u = e^{qt} - 1``, for which a
dozen power sums of q stand for all its tokens at all nodes.
"""

import numpy as np

from mdsd_core._jit import fused_kernel, kernel
from mdsd_core.schemes._tables import growth_powers, power_sums
from mdsd_core.schemes.without_replacement._race_kernels import DUST, add_heavy, heavy_step, rates_after, walk_dust

#: A run ends when its ``q t`` at the last node adds up to RUN_MASS, or when it has RUN_TOKENS tokens that add up to
#: RUN_LIGHT, or RUN_TOKENS_LIGHT of them.
RUN_MASS = 0.5
RUN_LIGHT = 1e-3
RUN_TOKENS = 128
RUN_TOKENS_LIGHT = 4096

#: Powers of ``q t`` that are kept at most: ``DUST ** ORDERS`` is below the rounding of doubles.
ORDERS = 13


_GROWTH_POWERS = growth_powers(ORDERS, ORDERS)


@fused_kernel
def _run_polynomial(sums, orders, powers, E, A, U, W):
    """Coefficients of ``prod (1 + z u (1 - eps q t_last))`` over a run at every node: ``E[m]`` and, of -eps, ``A[m]``.

    `sums[l]` is the sum of ``y^l`` over the run, ``y = q t_last``; ``powers[r, j]`` is ``(t_j / t_last)^r``. Power sums
    of u are polynomials in t; Newton's identities turn them into E and A.
    """
    n, J = E.shape[0] - 1, E.shape[1]
    top = min(n, orders)
    for r in range(1, top + 1):
        for j in range(J):
            U[r, j], W[r, j] = 0.0, 0.0
        for order in range(orders, r - 1, -1):
            c = _GROWTH_POWERS[r, order]
            x, y = c * sums[order], c * sums[order + 1]
            for j in range(J):
                U[r, j] = U[r, j] * powers[1, j] + x
                W[r, j] = W[r, j] * powers[1, j] + y
        for j in range(J):
            U[r, j] *= powers[r, j]
            W[r, j] *= powers[r, j] * r
    for m in range(1, n + 1):
        for j in range(J):
            E[m, j], A[m, j] = 0.0, 0.0
        sign = 1.0 / m
        for r in range(1, min(m, top) + 1):
            for j in range(J):
                E[m, j] += sign * (E[m - r, j] * U[r, j])
                A[m, j] += sign * (A[m - r, j] * U[r, j] + E[m - r, j] * W[r, j])
            sign = -sign


@fused_kernel
def _run_step(weight, rate, P, D, E, A):
    """The step of Q over a run; A in the unit of rate."""
    n, J = P.shape
    step = 0.0
    for m in range(1, n + 1):
        for j in range(J):
            step += weight[j] * ((D[n - m, j] + rate * P[n - m, j]) * E[m, j] - P[n - m, j] * A[m, j])
    return step


@fused_kernel
def _add_run(P, D, E, A):
    n, J = P.shape
    for m in range(n - 1, 0, -1):
        for r in range(1, m + 1):
            for j in range(J):
                D[m, j] += D[m - r, j] * E[r, j] - P[m - r, j] * A[r, j]
                P[m, j] += P[m - r, j] * E[r, j]


@kernel
def walk_runs(q, p, n, t, dt, ends, steps):
    """Steps of Q over runs of tokens: run i ends before token ``ends[i]``; returns the number of runs.

    The maximum over all prefixes of the sum of steps less that of p is attained at the end of a run. `q` must stand in
    ascending order of ``p / q``.
    """
    V, J, last = q.size, t.size, t[-1]
    P, D, u = np.zeros((n, J)), np.zeros((n, J)), np.empty(J)
    P[0] = 1.0
    E, A = np.zeros((n + 1, J)), np.zeros((n + 1, J))
    E[0] = 1.0
    U, W = np.empty((n + 1, J)), np.empty((n + 1, J))
    relative = t / last
    powers = np.ones((n + 1, J))
    for r in range(1, n + 1):
        powers[r] = powers[r - 1] * relative
    limit = DUST / last
    after, rate = rates_after(q, limit)
    weight = dt * np.exp(-rate * t)
    runs, k = 0, 0
    while k < V:
        if q[k] > limit:
            rate = after[k]
            steps[runs] = heavy_step(q[k], t, dt, rate, P, D, weight)
            add_heavy(q[k], t, P, D)
            k += 1
            ends[runs] = k
            runs += 1
            continue
        first, mass, largest = k, 0.0, 0.0
        while k < V and q[k] <= limit and mass <= RUN_MASS and k - first < RUN_TOKENS_LIGHT:
            if k - first >= RUN_TOKENS and mass > RUN_LIGHT:
                break
            mass += q[k] * last
            largest = max(largest, q[k] * last)
            k += 1
        single = k - first < 4
        if not single:
            orders, accuracy = 1, largest
            while orders < ORDERS and accuracy > 1e-16:
                accuracy *= largest
                orders += 1
            sums = power_sums(q[first:k] * last, orders + 1)
            _run_polynomial(sums, orders, powers, E, A, U, W)
            for m in range(1, n + 1):
                for j in range(J):
                    A[m, j] /= last
            step = _run_step(weight, rate, P, D, E, A)
            # slopes against ratios, with some slack for rounding; both are Q or p for each unit of rate
            chord = step / mass
            low, high = p[first] / (q[first] * last), p[k - 1] / (q[k - 1] * last)
            single = chord * (1.0 + 1e-9) > low and chord * (1.0 - 1e-9) < high
        if single:
            walk_dust(q[first:k], last, relative, weight, rate, P, D, u, steps[runs:])
            for i in range(first, k):
                ends[runs] = i + 1
                runs += 1
        else:
            _add_run(P, D, E, A)
            steps[runs] = step
            ends[runs] = k
            runs += 1
    return runs
