"""Groups of small tokens as power series in their weights.

Most tokens of a vocabulary are dust. A run of neighbours in rank order with little weight in all is one *group*;
states are kept at its ends only. Every token contributes ``left_x (1 + eps rate_x)`` whether it is included or not.
Relative to that, its factor at inclusion F is ``1 + z F g_x`` with

    g_x = (exp(q_x t) - 1) (1 + eps slope_x) = sum_{i >= 1} (q_x t)^i / i! (1 + eps slope_x),   slope = bonus - rate,

for the race, and the term i = 1 only for the laws in closed form. So inside a group the product over its tokens is

    E = sum_{k, i} z^k t^(k + i) (plain[k, i] + eps eps[k, i]),

with coefficients that no longer depend on the node, and what is asked of it (a coefficient of a state times E, summed
over the nodes) is one scalar product with a *table* of moments of the state. A token costs a few dozen operations in
place of a pass over 2 (n + 1) J coefficients. Series are cut at total degree :data:`DEGREE` in the weights, and the
groups of the race are so small (:mod:`mdsd_core.transport.nest.laws`) that what is cut off lies below rounding. For
the laws in closed form nothing is cut off.

The chain needs two products side by side, the *upper* and the *lower* one. An array [degree + 1, spread + 1, 4] holds
both: upper plain, upper eps, lower plain, lower eps. In the chain the upper one has all ranks below x full, the lower
one only those below the block. Tables have the same shape. Tokens are taken one after the other: :func:`advance`
prepares ``G = z g_x E``, what x would add if it were fully included, and applies the tables to it (the derivatives of
the integrals by F_x); how much of G is really added is told to the next call, or to :func:`settle`.
"""

from mdsd_core._jit import inline_kernel, inner_kernel

#: Total degree in the weights at which the series of a group of the race is cut.
DEGREE = 5

UPPER, LOWER = 0, 2


@inner_kernel
def set_one(E, G):
    """No token in either of the two series, and none in hand."""
    for k in range(E.shape[0]):
        for i in range(E.shape[1]):
            for lane in range(4):
                E[k, i, lane] = 0.0
                G[k, i, lane] = 0.0
    E[0, 0, UPPER] = 1.0
    E[0, 0, LOWER] = 1.0


@inner_kernel
def copy_half(source, half, out, out_half):
    """Copy one of the two series of a pair."""
    for k in range(source.shape[0]):
        for i in range(source.shape[1]):
            out[k, i, out_half] = source[k, i, half]
            out[k, i, out_half + 1] = source[k, i, half + 1]


@inline_kernel
def _advance_race(E, G, table, size, slope, share, lower_share, taken):
    """:func:`advance` for the race: all loops have constant bounds."""
    c1 = size
    c2 = c1 * size * (1.0 / 2.0)
    c3 = c2 * size * (1.0 / 3.0)
    c4 = c3 * size * (1.0 / 4.0)
    power = (c1, c2, c3, c4, c4 * size * (1.0 / 5.0))
    upper, lower = 0.0, 0.0
    for k in range(1, DEGREE + 1):
        for i in range(DEGREE - k + 1):
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for e in range(i + 1):
                a += power[e] * E[k - 1, i - e, 0]
                b += power[e] * E[k - 1, i - e, 1]
                c += power[e] * E[k - 1, i - e, 2]
                d += power[e] * E[k - 1, i - e, 3]
            b += slope * a
            d += slope * c
            E[k, i, 0] += share * G[k, i, 0] - taken * a
            E[k, i, 1] += share * G[k, i, 1] - taken * b
            E[k, i, 2] += lower_share * G[k, i, 2]
            E[k, i, 3] += lower_share * G[k, i, 3]
            G[k, i, 0], G[k, i, 1], G[k, i, 2], G[k, i, 3] = a, b, c, d
            upper += table[k, i, 0] * a + table[k, i, 1] * b
            lower += table[k, i, 2] * c + table[k, i, 3] * d
    return upper, lower


@inline_kernel
def _advance_closed(E, G, table, size, slope, share, lower_share, taken):
    """:func:`advance` for the laws in closed form: g_x has one term."""
    upper, lower = 0.0, 0.0
    for k in range(1, E.shape[0]):
        a, c = size * E[k - 1, 0, 0], size * E[k - 1, 0, 2]
        b, d = size * E[k - 1, 0, 1] + slope * a, size * E[k - 1, 0, 3] + slope * c
        E[k, 0, 0] += share * G[k, 0, 0] - taken * a
        E[k, 0, 1] += share * G[k, 0, 1] - taken * b
        E[k, 0, 2] += lower_share * G[k, 0, 2]
        E[k, 0, 3] += lower_share * G[k, 0, 3]
        G[k, 0, 0], G[k, 0, 1], G[k, 0, 2], G[k, 0, 3] = a, b, c, d
        upper += table[k, 0, 0] * a + table[k, 0, 1] * b
        lower += table[k, 0, 2] * c + table[k, 0, 3] * d
    return upper, lower


@inner_kernel
def advance(E, G, table, size, slope, share, lower_share, taken):
    """Settle the token in hand, then take a new one: ``G = z g E``; returns the two tables applied to G.

    `size` and `slope` are of the new token. `share` and `lower_share` of the token in hand are added to the two series.
    If `taken` is 1, the upper series holds the new one fully, and it is divided out of it first; 0 if it does not.
    """
    if E.shape[1] == 1:
        return _advance_closed(E, G, table, size, slope, share, lower_share, taken)
    return _advance_race(E, G, table, size, slope, share, lower_share, taken)


@inner_kernel
def settle(E, G, share, lower_share):
    """Settle the token in hand and take none."""
    for k in range(1, E.shape[0]):
        for i in range(min(E.shape[1], E.shape[0] - k)):
            E[k, i, 0] += share * G[k, i, 0]
            E[k, i, 1] += share * G[k, i, 1]
            E[k, i, 2] += lower_share * G[k, i, 2]
            E[k, i, 3] += lower_share * G[k, i, 3]
            for lane in range(4):
                G[k, i, lane] = 0.0


@inner_kernel
def ascend(E, G, table, first, last, tokens, steps):
    """Include the ranks ``first:last`` fully in the upper series; ``steps[x]`` is what x adds to the integral."""
    size, slope = tokens.size, tokens.slope
    set_one(E, G)
    if E.shape[1] == 1:
        for x in range(first, last):
            steps[x] = _advance_closed(E, G, table, size[x], slope[x], 1.0, 0.0, 0.0)[0]
    else:
        for x in range(first, last):
            steps[x] = _advance_race(E, G, table, size[x], slope[x], 1.0, 0.0, 0.0)[0]
    settle(E, G, 1.0, 0.0)


@inline_kernel
def _place(x, up, lo, r, share, marginal):
    """The inclusion with which token x receives r_x, clipped to [0, 1]; returns by how much it falls short."""
    F = 0.0
    if up > lo:
        F = min(max((up - r[x]) / (up - lo), 0.0), 1.0)
    share[x] = F
    marginal[x] = F * lo + (1.0 - F) * up
    return r[x] - marginal[x]


@inner_kernel
def descend(first, last, short, allowed, below, r, tokens, nest, scratch):
    """Solve the chain for the ranks ``first:last`` from the last to the first; the upper series holds them fully.

    Returns the sum of what they fall short by, added to `short`, and the rank under `below` at which it exceeds
    `allowed` (where the chain stops), or -1.
    """
    E, G, table, size, slope = scratch.pair, scratch.step, scratch.table, tokens.size, tokens.slope
    share, marginal = nest.share, nest.marginal
    F = 0.0
    if E.shape[1] == 1:
        for x in range(last - 1, first - 1, -1):
            up, lo = _advance_closed(E, G, table, size[x], slope[x], F, F, 1.0)
            short += _place(x, up, lo, r, share, marginal)
            if short > allowed and x < below:
                return short, x
            F = share[x]
    else:
        for x in range(last - 1, first - 1, -1):
            up, lo = _advance_race(E, G, table, size[x], slope[x], F, F, 1.0)
            short += _place(x, up, lo, r, share, marginal)
            if short > allowed and x < below:
                return short, x
            F = share[x]
    settle(E, G, F, F)
    return short, -1


@inner_kernel
def include_full(E, G, first, last, tokens, upper, lower):
    """Include the ranks ``first:last``, fully where `upper` or `lower` is 1, not at all where it is 0."""
    if E.shape[1] == 1:
        for x in range(first, last):
            _advance_closed(E, G, E, tokens.size[x], tokens.slope[x], upper, lower, 0.0)
    else:
        for x in range(first, last):
            advance(E, G, E, tokens.size[x], tokens.slope[x], upper, lower, 0.0)
    settle(E, G, upper, lower)


@inner_kernel
def apply(table, E):
    """The two tables applied to the two series: the integrals themselves."""
    upper, lower = 0.0, 0.0
    for k in range(E.shape[0]):
        for i in range(min(E.shape[1], E.shape[0] - k)):
            upper += table[k, i, 0] * E[k, i, 0] + table[k, i, 1] * E[k, i, 1]
            lower += table[k, i, 2] * E[k, i, 2] + table[k, i, 3] * E[k, i, 3]
    return upper, lower


@inner_kernel
def fill_table(table, half, A, B, top, rate, weight, law, rows):
    """Moments of two states: the table stands for ``sum_j weight_j [z^top] eps-part of A B (1 + eps rate) E``."""
    for k in range(law.degree + 1):
        if k <= top:
            for j in range(weight.size):
                rows[0, j] = 0.0
                rows[1, j] = 0.0
            for i in range(top - k + 1):
                for j in range(weight.size):
                    low, high = A[0, i, j], B[0, top - k - i, j]
                    rows[0, j] += low * high
                    rows[1, j] += low * B[1, top - k - i, j] + (A[1, i, j] + rate * low) * high
            for j in range(weight.size):
                rows[0, j] *= weight[j]
                rows[1, j] *= weight[j]
        for i in range(min(law.spread, law.degree - k) + 1):
            plain, eps = 0.0, 0.0
            if k <= top:
                for j in range(weight.size):
                    plain += law.powers[k + i, j] * rows[1, j]  # D meets the plain part of E, P its eps-part
                    eps += law.powers[k + i, j] * rows[0, j]
            table[k, i, half] = plain
            table[k, i, half + 1] = eps


@inner_kernel
def multiply_series(state, E, half, rate, left, law, factor):
    """Multiply a state by one series and by ``left (1 + eps rate)``, the base factor of its tokens."""
    reach = min(law.degree, law.drafts)
    for k in range(reach + 1):
        for j in range(left.size):
            factor[0, k, j] = 0.0
            factor[1, k, j] = 0.0
        for i in range(min(law.spread, law.degree - k) + 1):
            plain, eps = E[k, i, half], E[k, i, half + 1] + rate * E[k, i, half]
            for j in range(left.size):
                moment = law.powers[k + i, j] * left[j]
                factor[0, k, j] += plain * moment
                factor[1, k, j] += eps * moment
    for m in range(law.drafts, -1, -1):
        for j in range(left.size):
            P = state[0, m, j]
            state[1, m, j] = state[1, m, j] * factor[0, 0, j] + P * factor[1, 0, j]
            state[0, m, j] = P * factor[0, 0, j]
        for k in range(1, min(reach, m) + 1):
            for j in range(left.size):
                P = state[0, m - k, j]
                state[1, m, j] += state[1, m - k, j] * factor[0, k, j] + P * factor[1, k, j]
                state[0, m, j] += P * factor[0, k, j]
