"""The chain: one nest of labels inside the other, from the outside in, one linear equation a token.

A *block* is an interval [s, h) of ranks inside the labels of its *ancestors*: tokens of higher rank whose inclusion is
settled. As long as every token x of the block nests around all of [s, x), from h - 1 down to s, it receives

    r_x = F lo + (1 - F) up,   up, lo = d Qhat / d F_x with [0, x) full, and with [0, s) full, of the ranks below x,

which is linear in F = F_x. The segments of x are (s, F) and (x, 1 - F). If all F lie in [0, 1], the nest realises r.
F < 0 says that some ancestor inside the block has to hold several blocks side by side: then
:mod:`mdsd_core.transport.nest.search` finds it, and its blocks are filled one by one. What is still outside [0, 1]
is clipped; the marginal of the clipped rule is the same expression, and it is the one that is recorded.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdsd_core._jit import inline_kernel, inner_kernel, outer_kernel
from mdsd_core.transport.nest.groups import mass_between, prefix_state, value
from mdsd_core.transport.nest.series import (
    LOWER,
    UPPER,
    copy_half,
    descend,
    fill_table,
    include_full,
    multiply_series,
    set_one,
)
from mdsd_core.transport.nest.states import (
    Floats,
    alone,
    coefficient,
    copy_state,
    fill_arrivals,
    multiply_row,
    multiply_token,
    set_empty,
)

#: Groups between two looks at the prefixes further in, and how many of them are looked at.
_STRIDE, _SAMPLES = 8, 12

# places in Agenda.counts
TOP, SLOTS, PARTS, COMPONENT, INNER, WALK_GROUP, WALK_RANK, CHAIN, SCAN, REPAIRS = range(10)
# places in the array of series
PAIR, STEP, TABLE, WALKER = range(4)


class Nest(NamedTuple):
    """The segments of all tokens in rank order, and the law of the winner that they realise.

    Token x has the segments ``(part_base[i], part_share[i])`` for ``parts_from[x] <= i < parts_from[x] + parts[x]``
    if it holds several blocks, ``(base[x], share[x])`` if it holds one, and ``(x, 1 - share[x])`` in any case. A
    segment is the rank that it is sorted by (ascending, then by descending rank of its token) and its probability.

    Attributes
    ----------
    base : ndarray of int64, shape [m]
        The first rank of the block that x holds.
    share : ndarray, shape [m]
        F_x: the sum of the probabilities of all segments but the token's own, in [0, 1].
    marginal : ndarray, shape [m]
        The law of the winner.
    parts_from, parts : ndarray of int64, shape [m]
        Where the segments of x stand among the parts, and how many there are: 0 if x holds at most one block.
    part_base, part_share : ndarray, shape [2 m]
        The segments of tokens that hold several blocks.
    """

    base: NDArray[np.int64]
    share: Floats
    marginal: Floats
    parts_from: NDArray[np.int64]
    parts: NDArray[np.int64]
    part_base: NDArray[np.int64]
    part_share: Floats


class Agenda(NamedTuple):
    """What is to be realised, and the stack of blocks still to be filled.

    Attributes
    ----------
    r, goal : ndarray, shape [m] and [m + 1]
        The law asked for, and its partial sums.
    block : ndarray of int64, shape [m, 4]
        Blocks: first rank, last rank + 1, slot of the state held for it (-1: it has no ancestors), and the token that
        holds it, which is not in that state.
    measure : ndarray, shape [m, 4]
        Likewise: `survival` of the later ranks that are not included at all, inclusion of the token that holds the
        block, how many times the tolerance is let pass, and what was short when the chain broke off.
    counts : ndarray of int64, shape [10]
        Blocks on the stack, slots in use, parts, components done; the token after which a prefix is known to fall
        short; where the walker stands (see :func:`walk`); steps of the chain, steps of scans, repairs.
    """

    r: Floats
    goal: Floats
    block: NDArray[np.int64]
    measure: Floats
    counts: NDArray[np.int64]


class Block(NamedTuple):
    """The ranks ``first:last``; the `survival` of later ranks not included at all; True if it has no ancestors."""

    first: int
    last: int
    outside: float
    root: bool


class States(NamedTuple):
    """States that the chain and the repairs share.

    Attributes
    ----------
    context : ndarray, shape [2, n + 1, J]
        The ancestors of the token in hand.
    base : ndarray, shape [2, n + 1, J]
        The prefix [0, first) of the block in hand.
    prefix : ndarray, shape [2, n + 1, J]
        Another prefix.
    above : ndarray, shape [A, 2, n + 1, J]
        The ancestors as they were when the chain came to group u, at ``u % A``: A is the most groups a block spans.
    reach, fade : ndarray, shape [G] and [G, J]
        `survival` of the block's ranks up to the end of group u, and its exponentials.
    """

    context: Floats
    base: Floats
    prefix: Floats
    above: Floats
    reach: Floats
    fade: Floats


@outer_kernel
def fill_blocks(steps, contacts, tolerance, nest, agenda, states, held, tokens, law, groups, scratch, series):
    """Fill blocks until none is left (-1), or until a prefix k falls short by more than the tolerance (k).

    In the second case the block in hand stays on the stack, and ``states.above`` and ``nest.share`` tell how far it
    got.
    """
    count = agenda.counts
    while True:
        if count[TOP] == 0:
            if count[COMPONENT] == contacts.size - 1:
                return -1
            first, last = contacts[count[COMPONENT]], contacts[count[COMPONENT] + 1]
            count[COMPONENT] += 1
            if last == first + 1:  # strict priority
                nest.base[first], nest.share[first], nest.marginal[first] = first, 0.0, steps[first]
                continue
            u = groups.of[last - 1]
            agenda.block[0, 0], agenda.block[0, 1], agenda.block[0, 2], agenda.block[0, 3] = first, last, -1, -1
            agenda.measure[0, 0] = groups.after[u + 1] + mass_between(last, groups.edge[u + 1], tokens)
            agenda.measure[0, 1], agenda.measure[0, 2] = 0.0, 1.0
            count[TOP] = 1
        top = count[TOP] - 1
        slot, holder = agenda.block[top, 2], agenda.block[top, 3]
        if slot < 0:
            set_empty(states.context, 0.0)
        else:
            copy_state(held[slot], states.context)
            survival, bonus = tokens.survival[holder], tokens.bonus[holder]
            fill_arrivals(survival, law, scratch.gone, scratch.left)
            multiply_token(
                states.context, agenda.measure[top, 1], law.race * survival, bonus, scratch.gone, scratch.left
            )
        k = _fill_block(tolerance, nest, agenda, states, tokens, law, groups, scratch, series)
        if k >= 0:
            return k
        count[TOP] = top
        if slot >= 0 and (top == 0 or agenda.block[top - 1, 2] != slot):
            count[SLOTS] = slot


@inline_kernel
def _fill_block(tolerance, nest, agenda, states, tokens, law, groups, scratch, series):
    """Fill the block on top of the stack; returns the prefix that falls short, or -1."""
    top = agenda.counts[TOP] - 1
    block = Block(agenda.block[top, 0], agenda.block[top, 1], agenda.measure[top, 0], agenda.block[top, 2] < 0)
    allowed = agenda.measure[top, 2] * tolerance
    low, high = groups.of[block.first], groups.of[block.last - 1]
    if low < high:
        prefix_state(block.first, states.base, tokens, law, groups, scratch, series[PAIR])
        _fill_reach(block.first, low, high, states, tokens, law, groups, scratch)
    fill_arrivals(block.outside, law, scratch.gone, scratch.outer)
    short = 0.0
    for u in range(high, low - 1, -1):
        begin, end = max(block.first, groups.edge[u]), min(block.last, groups.edge[u + 1])
        copy_state(states.context, states.above[u % states.above.shape[0]])
        for x in range(begin, end):
            nest.base[x], nest.parts[x] = block.first, 0
        agenda.counts[CHAIN] += end - begin
        if alone(begin, tokens):
            short = _fill_single(u, begin, low, short, block, nest, agenda, states, tokens, law, groups, scratch)
            k = begin if short > allowed and block.first < begin < block.last - 1 else -1
        else:
            short, k = _fill_group(
                u,
                begin,
                end,
                low,
                high,
                short,
                allowed,
                block,
                nest,
                agenda,
                states,
                tokens,
                law,
                groups,
                scratch,
                series,
            )
        if k >= 0:
            agenda.counts[INNER], agenda.measure[top, 3] = k + 1, short
            return k
        if (high - u) % _STRIDE == _STRIDE - 1:
            k = _broken_prefix(u, low, allowed, block, agenda, states, law, groups, scratch)
            if k >= 0:
                agenda.counts[INNER], agenda.measure[top, 3] = begin, allowed
                return k
    nest.share[block.first] = 0.0
    return -1


@inner_kernel
def _fill_reach(first, low, high, states, tokens, law, groups, scratch):
    """For all groups of a block but the last: `survival` of the ranks up to its end, and the exponentials."""
    states.reach[low] = mass_between(first, groups.edge[low + 1], tokens)
    fill_arrivals(states.reach[low], law, scratch.gone, states.fade[low])
    for u in range(low + 1, high):
        states.reach[u] = states.reach[u - 1] + groups.survival[u]
        for j in range(law.time.size):
            states.fade[u, j] = states.fade[u - 1, j] * groups.decay[u, j]


@inner_kernel
def _fill_single(u, x, low, short, block, nest, agenda, states, tokens, law, groups, scratch):
    """Solve for a token that stands alone; returns what is short with it."""
    survival, bonus, weight = tokens.survival[x], tokens.bonus[x], scratch.weight
    fill_arrivals(survival, law, scratch.gone, scratch.left)
    for j in range(weight.size):
        weight[j] = law.weight[j] * scratch.outer[j] * scratch.gone[j]
    top, rate = law.drafts - 1, law.race * block.outside + bonus
    up = coefficient(groups.state[u], states.context, top, rate, weight)
    lo, share = up, 0.0
    if u > low:
        multiply_row(weight, states.fade[u - 1])
        lo = coefficient(states.base, states.context, top, rate + law.race * states.reach[u - 1], weight)
    if up > lo:
        share = min(max((up - agenda.r[x]) / (up - lo), 0.0), 1.0)
    nest.share[x] = share
    nest.marginal[x] = share * lo + (1.0 - share) * up
    multiply_token(states.context, share, law.race * survival, bonus, scratch.gone, scratch.left)
    return short + agenda.r[x] - nest.marginal[x]


@inner_kernel
def _fill_group(
    u, begin, end, low, high, short, allowed, block, nest, agenda, states, tokens, law, groups, scratch, series
):
    """Solve for the ranks ``begin:end`` of group u; returns what is short with them, and the rank that is, or -1."""
    E, G, table = series[PAIR], series[STEP], series[TABLE]
    set_one(E, G)
    mass, before = groups.survival[u], 0.0
    portion = scratch.portion
    if begin == groups.edge[u] and end == groups.edge[u + 1]:
        copy_half(groups.full[u], UPPER, E, UPPER)
        for j in range(portion.size):
            portion[j] = groups.decay[u, j]
    else:
        mass, before = mass_between(begin, end, tokens), mass_between(groups.edge[u], begin, tokens)
        fill_arrivals(mass, law, scratch.gone, portion)
        walk(u, begin, agenda.counts, tokens, groups, series)
        copy_half(series[WALKER], UPPER, E, UPPER)
        copy_half(series[WALKER], UPPER, E, LOWER)
        include_full(E, G, begin, end, tokens, 1.0, 0.0)
    if u == high and block.root:  # nothing but prefixes is included: as in the first pass
        copy_half(groups.table[u], UPPER, table, UPPER)
    else:
        fill_arrivals(before, law, scratch.gone, scratch.left)
        for j in range(portion.size):
            scratch.weight[j] = law.weight[j] * scratch.outer[j] * scratch.left[j] * portion[j]
        rate = law.race * (block.outside + before + mass)
        context, state = states.context, groups.state[u]
        fill_table(table, UPPER, state, context, law.drafts, rate, scratch.weight, law, scratch.rows)
    if u == low:
        copy_half(table, UPPER, table, LOWER)
    else:
        for j in range(portion.size):
            scratch.weight[j] = law.weight[j] * scratch.outer[j] * states.fade[u - 1, j] * portion[j]
        rate = law.race * (block.outside + states.reach[u - 1] + mass)
        fill_table(table, LOWER, states.base, states.context, law.drafts, rate, scratch.weight, law, scratch.rows)
    size, slope, share, marginal = tokens.size, tokens.slope, nest.share, nest.marginal
    below = block.last - 1
    short, k = descend(E, G, table, begin, end, size, slope, agenda.r, share, marginal, short, allowed, below)
    if k > block.first:
        return short, k
    multiply_series(states.context, E, LOWER, law.race * mass, portion, law, scratch.factor)
    return short, -1


@inner_kernel
def walk(u, k, count, tokens, groups, series):
    """Bring the walker, a series that stays between calls, to the prefix [0, k) inside group u.

    Blocks are filled in ascending order where they have no ancestors: it mostly has only a few steps to go.
    """
    if count[WALK_GROUP] != u or count[WALK_RANK] > k:
        set_one(series[WALKER], series[STEP])
        count[WALK_GROUP], count[WALK_RANK] = u, groups.edge[u]
    include_full(series[WALKER], series[STEP], count[WALK_RANK], k, tokens, 1.0, 0.0)
    count[WALK_RANK] = k


@inner_kernel
def _broken_prefix(u, low, allowed, block, agenda, states, law, groups, scratch):
    """A prefix, out of a few that end where groups begin, with a gap below -allowed after group u; -1 if there is none.

    The chain would find it too, but only when it has come down to it.
    """
    if u <= low:
        return -1
    start = value(states.base, states.context, block.outside + states.reach[u - 1], law, scratch)
    stride = max((u - low) // _SAMPLES, 1)
    rest = block.outside
    worst, lowest = -1, -allowed
    for v in range(u - 1, low, -1):
        rest += groups.survival[v]
        if (u - v) % stride == 0:
            agenda.counts[SCAN] += 1
            k = groups.edge[v]
            reached = value(groups.state[v], states.context, rest, law, scratch)
            gap = agenda.goal[k] - agenda.goal[block.first] - (reached - start)
            if gap < lowest:
                worst, lowest = k, gap
    return worst
