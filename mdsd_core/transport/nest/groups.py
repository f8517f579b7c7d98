"""Groups of tokens in rank order, and the first pass over them: the steps of Q, and the states at all prefixes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdsd_core._jit import inner_kernel, kernel
from mdsd_core.transport.nest.series import UPPER, ascend, copy_half, fill_table, include_full, multiply_series, set_one
from mdsd_core.transport.nest.states import (
    Floats,
    Law,
    Tokens,
    alone,
    coefficient,
    copy_state,
    fill_arrivals,
    fill_derivative_weight,
    fill_weight,
    multiply_token,
    set_empty,
)

#: Most tokens in a group: what has to be walked to reach a token inside.
_LONGEST = 96


class Groups(NamedTuple):
    """A partition of the ranks into groups, with what the first pass leaves.

    Attributes
    ----------
    edge : ndarray of int64, shape [G + 1]
        Group u holds the ranks ``edge[u]:edge[u + 1]``; a token that stands alone is a group of its own.
    of : ndarray of int64, shape [m]
        The group of each rank.
    survival : ndarray, shape [G]
        The sum of `survival` over a group.
    after : ndarray, shape [G + 1]
        The sum of `survival` over all ranks from ``edge[u]`` on.
    decay : ndarray, shape [G, J]
        ``exp(-survival t)`` of a whole group.
    state : ndarray, shape [G, 2, n + 1, J]
        The state of all tokens before the group, fully included.
    table : ndarray, shape [G, degree + 1, spread + 1, 4]
        The upper table of that state, with no other token included (unused where a token stands alone).
    full : ndarray, shape [G, degree + 1, spread + 1, 4]
        The upper series of the whole group, fully included (likewise).
    """

    edge: NDArray[np.int64]
    of: NDArray[np.int64]
    survival: Floats
    after: Floats
    decay: Floats
    state: Floats
    table: Floats
    full: Floats


class Problem(NamedTuple):
    """What the kernels that build a nest are given; after the first pass none of them changes it."""

    law: Law
    tokens: Tokens
    groups: Groups


@kernel
def make_groups(tokens, law):
    """Divide the ranks into groups of size at most 1 in all; the states and tables are left to :func:`first_pass`."""
    m = tokens.size.size
    edge, of = np.empty(m + 1, np.int64), np.empty(m, np.int64)
    count, size = 0, 2.0
    for x in range(m):
        if alone(x, tokens) or size + tokens.size[x] > 1.0 or x - edge[count - 1] >= _LONGEST:
            edge[count] = x
            count += 1
            size = 0.0
        size = 2.0 if alone(x, tokens) else size + tokens.size[x]
        of[x] = count - 1
    edge[count] = m
    survival, after = np.empty(count), np.empty(count + 1)
    after[count] = 0.0
    for u in range(count - 1, -1, -1):
        survival[u] = mass_between(edge[u], edge[u + 1], tokens)
        after[u] = after[u + 1] + survival[u]
    state = np.empty((count, 2, law.drafts + 1, law.time.size))
    table = np.zeros((count, law.degree + 1, law.spread + 1, 4))
    decay = np.empty((count, law.time.size))
    return Groups(edge[: count + 1].copy(), of, survival, after, decay, state, table, np.zeros_like(table))


@inner_kernel
def mass_between(first, last, tokens):
    """The sum of `survival` over the ranks ``first:last``."""
    total = 0.0
    for x in range(first, last):
        total += tokens.survival[x]
    return total


@inner_kernel
def mass_across(first, last, tokens, groups):
    """The same for a long range, by whole groups."""
    if first >= last:
        return 0.0
    low, high = groups.of[first], groups.of[last - 1]
    if low == high:
        return mass_between(first, last, tokens)
    total = mass_between(first, groups.edge[low + 1], tokens)
    for u in range(low + 1, high):
        total += groups.survival[u]
    return total + mass_between(groups.edge[high], last, tokens)


@inner_kernel
def derivative(x, A, B, rest, tokens, law, scratch):
    """The derivative of Qhat by the inclusion of x; A B is the state of all others but for a `survival` of `rest`."""
    fill_derivative_weight(x, rest, tokens, law, scratch.gone, scratch.left, scratch.weight)
    return coefficient(A, B, law.drafts - 1, law.race * rest + tokens.bonus[x], scratch.weight)


@inner_kernel
def value(A, B, rest, law, scratch):
    """Qhat; A B is the state of all tokens but for a `survival` of `rest`."""
    fill_weight(rest, law, scratch.gone, scratch.left, scratch.weight)
    return coefficient(A, B, law.drafts, law.race * rest, scratch.weight)


@inner_kernel
def fill_value_table(table, half, A, B, rest, law, scratch):
    """The table of Qhat: A B is the state of all tokens but the group's; `rest` includes all of the group."""
    fill_weight(rest, law, scratch.gone, scratch.left, scratch.weight)
    fill_table(table, half, A, B, law.drafts, law.race * rest, scratch.weight, law, scratch.rows)


@inner_kernel
def multiply_group(state, survival, law, scratch):
    """Multiply a state by the upper series of ``scratch.pair``, whose tokens have this `survival` in all."""
    fill_arrivals(survival, law, scratch.gone, scratch.left)
    multiply_series(state, scratch.pair, UPPER, law.race * survival, scratch.left, law, scratch.factor)


@kernel
def first_pass(state, nothing, problem, scratch):
    """Fill states and tables; return ``dQ[k]``, the probability that k is drafted and all drafts lie in ``0..k``.

    `state` and `nothing` are arrays for one state each. The groups are those of :func:`make_groups`.
    """
    law, tokens, groups = problem
    steps = np.empty(tokens.size.size)
    set_empty(state, law.start)
    set_empty(nothing, 0.0)
    for u in range(groups.edge.size - 1):
        copy_state(state, groups.state[u])
        first, last = groups.edge[u], groups.edge[u + 1]
        if alone(first, tokens):
            steps[first] = derivative(first, state, nothing, groups.after[u + 1], tokens, law, scratch)
            rate, bonus = law.race * tokens.survival[first], tokens.bonus[first]
            multiply_token(state, 1.0, rate, bonus, scratch.gone, scratch.left)
        else:
            fill_value_table(groups.table[u], UPPER, state, nothing, groups.after[u], law, scratch)
            ascend(scratch.pair, scratch.step, groups.table[u], first, last, tokens, steps)
            copy_half(scratch.pair, UPPER, groups.full[u], UPPER)
            multiply_group(state, groups.survival[u], law, scratch)
        for j in range(law.time.size):  # of the group: by `derivative` if it is one token, else by `multiply_group`
            groups.decay[u, j] = scratch.left[j]
    return steps


@inner_kernel
def prefix_state(k, out, problem, scratch):
    """Write the state of all tokens before rank k, fully included, into `out`."""
    law, tokens, groups = problem
    u = groups.of[k]
    copy_state(groups.state[u], out)
    first = groups.edge[u]
    if k > first:
        set_one(scratch.pair, scratch.step)
        include_full(scratch.pair, scratch.step, first, k, tokens, 1.0, 0.0)
        multiply_group(out, mass_between(first, k, tokens), law, scratch)
