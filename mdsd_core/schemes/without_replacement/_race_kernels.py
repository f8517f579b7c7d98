"""Kernels of the race integral: walk the tokens of an order with a generating polynomial at every node.

At a node t the tokens before k are a factor ``b (1 + eps q) + z a`` each (``a = 1 - e^{-qt}`` arrived, ``b = e^{-qt}``
not; eps, with eps^2 = 0, collects the rate of those not arrived), those from k on a factor ``e^{-qt}(1 + eps q)``. The
step of Q at k is the integral over t of ``a_k`` times the part of ``z^{n-1} eps`` of the product of all others.

Nearly all tokens of a vocabulary are *dust*: ``q t <= DUST`` even at the last node. Their factors are written
``e^{-qt}(1 + eps q) (1 + z u (1 - eps q))`` with ``u = e^{qt} - 1``; the first part is the same before and after k, so
it moves into the weight of the node for all dust at once, and what remains is one product and sum a coefficient. The
others, the *heavy* tokens, are at most n and ``46 / DUST`` or so.

The state is ``P[m, j]``, the part of z^m at node j, and ``D[m, j]``, its part of eps *less* what the weights carry:
heavy tokens before k that have not arrived count with their rate, dust that has arrived with minus its rate. That
difference never cancels: what has not arrived weighs at least the rates outside the n largest, dust that has arrived a
small part of that.
"""

import numpy as np

from mdsd_core._jit import fused_kernel, kernel

#: Largest q t at the last node for a token to be dust.
DUST = 1.0 / 16.0

#: Specks are dust with ``q t`` below this at the last node; so many of them may pass before the state is updated that
#: their ``q t`` adds up to SPECKS. The relative error of their joint effect is of that size.
SPECK = 1e-15
SPECKS = 1e-14


@fused_kernel
def _growth(y, t, u):
    """``u = e^{yt'} - 1`` for ``t' = t / t_last`` and y <= DUST the value at the last node, to 1e-15 relative."""
    if y < 7e-5:
        for j in range(t.size):
            x = y * t[j]
            u[j] = x * (1.0 + x * (1.0 / 2 + x * (1.0 / 6)))
    else:
        for j in range(t.size):
            x = y * t[j]
            s = 1.0 / 5040 + x * (1.0 / 40320)
            s = 1.0 / 120 + x * (1.0 / 720 + x * s)
            u[j] = x * (1.0 + x * (1.0 / 2 + x * (1.0 / 6 + x * (1.0 / 24 + x * s))))


@fused_kernel
def _dust_step(q, u, weight, rate, P, D):
    """The step of Q of a dust token with growth u; `rate` and `weight` still hold the token itself."""
    n, J = P.shape
    rate -= q
    step = 0.0
    for j in range(J):
        step += weight[j] * (D[n - 1, j] + rate * P[n - 1, j]) * u[j]
    return step


@fused_kernel
def _add_dust(q, u, P, D):
    n, J = P.shape
    for m in range(n - 1, 0, -1):
        for j in range(J):
            D[m, j] += u[j] * (D[m - 1, j] - q * P[m - 1, j])
            P[m, j] += u[j] * P[m - 1, j]


@fused_kernel
def heavy_step(q, t, dt, rate, P, D, weight):
    """The step of Q of a heavy token, and the weights without it; `rate` is that of all after it and of the dust."""
    n, J = P.shape
    step = 0.0
    for j in range(J):
        weight[j] = dt[j] * np.exp(-rate * t[j])
        step += weight[j] * (D[n - 1, j] + rate * P[n - 1, j]) * -np.expm1(-q * t[j])
    return step


@fused_kernel
def add_heavy(q, t, P, D):
    n, J = P.shape
    for j in range(J):
        a, b = -np.expm1(-q * t[j]), np.exp(-q * t[j])
        for m in range(n - 1, 0, -1):
            D[m, j] = (D[m, j] + q * P[m, j]) * b + D[m - 1, j] * a
            P[m, j] = P[m, j] * b + P[m - 1, j] * a
        D[0, j] = (D[0, j] + q * P[0, j]) * b
        P[0, j] *= b


@kernel
def rates_after(q, limit):
    """Sum of the dust (q <= limit), and for every token the sum of the dust and of the heavy tokens after it."""
    dust = 0.0
    for k in range(q.size):
        if q[k] <= limit:
            dust += q[k]
    after = np.empty(q.size)
    heavy = 0.0
    for k in range(q.size - 1, -1, -1):
        after[k] = dust + heavy
        if q[k] > limit:
            heavy += q[k]
    return after, dust + heavy


@kernel
def walk_dust(q, last, relative, weight, rate, P, D, u, steps):
    """The steps of Q for a stretch of dust, token by token; the state ends behind it. `last` is the last node.

    Tokens too small to change the state at once share one slope, until they add up to something.
    """
    waiting, slope = 0.0, -1.0
    for k in range(q.size):
        speck = q[k] * last < SPECK
        if speck:
            if slope < 0.0:
                slope = _dust_step(0.0, relative, weight, rate, P, D)  # for each unit of q t at the last node
            steps[k] = q[k] * last * slope
            waiting += q[k]
        if waiting * last >= SPECKS or (waiting > 0.0 and (not speck or k == q.size - 1)):
            _growth(waiting * last, relative, u)
            _add_dust(waiting, u, P, D)
            waiting = 0.0
            slope = -1.0
        if not speck:
            slope = -1.0
            _growth(q[k] * last, relative, u)
            steps[k] = _dust_step(q[k], u, weight, rate, P, D)
            _add_dust(q[k], u, P, D)


@kernel
def walk(q, n, t, dt, steps):
    """The steps of Q for all tokens, one after the other: O(n J) for each that changes the state."""
    J = t.size
    P, D, u = np.zeros((n, J)), np.zeros((n, J)), np.empty(J)
    P[0] = 1.0
    limit = DUST / t[-1]
    relative = t / t[-1]
    after, rate = rates_after(q, limit)
    weight = dt * np.exp(-rate * t)
    k = 0
    while k < q.size:
        if q[k] > limit:
            rate = after[k]
            steps[k] = heavy_step(q[k], t, dt, rate, P, D, weight)
            add_heavy(q[k], t, P, D)
            k += 1
        else:
            first = k
            while k < q.size and q[k] <= limit:
                k += 1
            walk_dust(q[first:k], t[-1], relative, weight, rate, P, D, u, steps[first:k])
