"""The chain: one nest of labels inside the other, from the outside in, one linear equation a token.

A *block* is an interval [s, h) of ranks inside the labels of its *ancestors*: tokens of higher rank whose inclusion is
settled. As long as every token x of the block nests around all of [s, x), from h - 1 down to s, it receives

    r_x = F lo + (1 - F) up,   up, lo = d Qhat / d F_x with [0, x) full, and with [0, s) full, of the ranks below x,

which is linear in F = F_x. The segments of x are (s, F) and (x, 1 - F). If all F lie in [0, 1], the nest realises r. A
negative F says that x asks for more than it can get: it *falls short*. When this adds up to more than the tolerance,
times the `patience` of the block, some token further out has to hold several blocks side by side. The prefix [s, k) of
the ranks not yet settled is then *overfull*: it receives as much more as the ranks from k on fall short by.
:mod:`mdsd_core.transport.nest.search` finds that token, and its blocks are filled one by one. What is still outside [0,
1] is clipped; the marginal of the clipped nest is the same expression, and it is the one that is recorded.
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
    Scratch,
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


def _record(integers: str, numbers: str) -> np.dtype[np.void]:
    """A record type with these fields. As `numpy.record` its fields are attributes where nothing is compiled, too."""
    fields = [(name, np.int64) for name in integers.split()] + [(name, np.float64) for name in numbers.split()]
    return np.dtype((np.record, fields))


#: A block on the stack: the ranks ``first:last``; `holder`, the token that holds it, at `inclusion`; `slot`, where the
#: state of the ancestors without the holder is held (both -1: no ancestors); `outside`, the `survival` of later ranks
#: that are not included at all; `patience`, the multiple of the tolerance by which the block may fall short; `short`,
#: by how much it did when the chain stopped.
BLOCK = _record("first last slot holder", "inclusion outside patience short")

#: How far the work has come: blocks on the stack, slots in use, parts written, components begun; `inner`, the lowest
#: rank that was settled when a prefix was found overfull; the group and the prefix where the walker stands (see
#: :func:`walk`); steps of the chain, steps of scans and repairs so far; and what holds now, the limit on steps and the
#: tolerance.
PROGRESS = _record(
    "blocks slots parts components inner walk_group walk_rank chain_steps scan_steps repairs limit", "tolerance"
)


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
    """What is to be realised, and what of it is still to be done.

    Attributes
    ----------
    r, goal : ndarray, shape [m] and [m + 1]
        The law asked for, and its partial sums.
    contacts : ndarray of int64
        The prefixes, from 0 to m, where r has mass Q. Between two neighbours the nest is one *component*.
    stack : ndarray of BLOCK, shape [m]
        The blocks still to be filled, the next one last.
    progress : ndarray of PROGRESS, shape [1]
        Counters.
    """

    r: Floats
    goal: Floats
    contacts: NDArray[np.int64]
    stack: NDArray[np.void]
    progress: NDArray[np.void]


class States(NamedTuple):
    """States that the chain and the repairs share.

    Attributes
    ----------
    ancestors : ndarray, shape [2, n + 1, J]
        The ancestors of the block in hand, and its ranks in the groups already passed.
    floor : ndarray, shape [2, n + 1, J]
        The prefix [0, first) of the block in hand.
    prefix : ndarray, shape [2, n + 1, J]
        The prefix that is asked about: in a search at k, in a repair at its token or at the beginning of a block.
    held : ndarray, shape [S, 2, n + 1, J]
        The ancestors of the holders of blocks on the stack; a holder joins them when its block is filled. Blocks of one
        holder share a slot.
    above : ndarray, shape [A, 2, n + 1, J]
        The ancestors as they were when the chain came to group u, at ``u % A``: A is the most groups a block spans.
    reach, fade : ndarray, shape [G] and [G, J]
        `survival` of the block's ranks up to the end of group u, and its exponentials.
    """

    ancestors: Floats
    floor: Floats
    prefix: Floats
    held: Floats
    above: Floats
    reach: Floats
    fade: Floats


class Workspace(NamedTuple):
    """What the kernels write to while they build a nest."""

    nest: Nest
    agenda: Agenda
    states: States
    scratch: Scratch


@inner_kernel
def set_block(block, first, last, slot, holder, inclusion, outside):
    """Write a block of the stack."""
    block.first, block.last, block.slot, block.holder = first, last, slot, holder
    block.inclusion, block.outside, block.patience, block.short = inclusion, outside, 1.0, 0.0


@inner_kernel
def free_slot(top, agenda):
    """Give back the slot of block `top` of the stack if no block below it uses the same."""
    slot = agenda.stack[top].slot
    if slot >= 0 and (top == 0 or agenda.stack[top - 1].slot != slot):
        agenda.progress[0].slots = slot


@outer_kernel
def fill_blocks(problem, work):
    """Fill blocks until none is left (-1), or until a prefix k is overfull by more than the tolerance (k).

    In the second case the block in hand stays on the stack, and ``states.above`` and ``nest.share`` tell how far it
    got.
    """
    law, tokens, groups = problem
    nest, agenda, states, scratch = work
    progress = agenda.progress[0]
    while True:
        # the next block: the top of the stack, or else the next component
        if progress.blocks == 0:
            if progress.components == agenda.contacts.size - 1:
                return -1
            first, last = agenda.contacts[progress.components], agenda.contacts[progress.components + 1]
            progress.components += 1
            if last == first + 1:  # strict priority
                nest.base[first], nest.share[first], nest.marginal[first] = first, 0.0, agenda.r[first]
                continue
            u = groups.of[last - 1]
            outside = groups.after[u + 1] + mass_between(last, groups.edge[u + 1], tokens)
            set_block(agenda.stack[0], first, last, -1, -1, 0.0, outside)
            progress.blocks = 1
        top = progress.blocks - 1
        block = agenda.stack[top]
        # the state of its ancestors
        if block.slot < 0:
            set_empty(states.ancestors, 0.0)
        else:
            copy_state(states.held[block.slot], states.ancestors)
            survival, bonus = tokens.survival[block.holder], tokens.bonus[block.holder]
            fill_arrivals(survival, law, scratch.gone, scratch.left)
            multiply_token(states.ancestors, block.inclusion, law.race * survival, bonus, scratch.gone, scratch.left)
        # its tokens
        k = _fill_block(block, problem, work)
        if k >= 0:
            return k
        progress.blocks = top
        free_slot(top, agenda)


@inline_kernel
def _fill_block(block, problem, work):
    """Fill a block from the last group to the first; returns the prefix that is overfull, or -1."""
    law, tokens, groups = problem
    nest, agenda, states, scratch = work
    progress = agenda.progress[0]
    low, high = groups.of[block.first], groups.of[block.last - 1]
    if low < high:
        prefix_state(block.first, states.floor, problem, scratch)
        _fill_reach(block.first, low, high, problem, states, scratch)
    fill_arrivals(block.outside, law, scratch.gone, scratch.outer)
    short, allowed = 0.0, block.patience * progress.tolerance
    for u in range(high, low - 1, -1):
        begin, end = max(block.first, groups.edge[u]), min(block.last, groups.edge[u + 1])
        copy_state(states.ancestors, states.above[u % states.above.shape[0]])
        for x in range(begin, end):
            nest.base[x], nest.parts[x] = block.first, 0
        progress.chain_steps += end - begin
        if alone(begin, tokens):
            short = _fill_single(begin, short, block, problem, work)
            k = begin if short > allowed and block.first < begin < block.last - 1 else -1
        else:
            short, k = _fill_group(u, begin, end, short, block, problem, work)
        if k >= 0:
            progress.inner, block.short = k + 1, short
            return k
        if (high - u) % _STRIDE == _STRIDE - 1:
            k = _broken_prefix(u, block, problem, work)
            if k >= 0:
                progress.inner, block.short = begin, allowed
                return k
    nest.share[block.first] = 0.0
    return -1


@inner_kernel
def _fill_reach(first, low, high, problem, states, scratch):
    """For all groups of a block but the last: `survival` of the ranks up to its end, and the exponentials."""
    law, tokens, groups = problem
    states.reach[low] = mass_between(first, groups.edge[low + 1], tokens)
    fill_arrivals(states.reach[low], law, scratch.gone, states.fade[low])
    for u in range(low + 1, high):
        states.reach[u] = states.reach[u - 1] + groups.survival[u]
        for j in range(law.time.size):
            states.fade[u, j] = states.fade[u - 1, j] * groups.decay[u, j]


@inner_kernel
def _fill_single(x, short, block, problem, work):
    """Solve for a token that stands alone; returns what is short with it."""
    law, tokens, groups = problem
    nest, agenda, states, scratch = work
    u, weight = groups.of[x], scratch.weight  # weight: [J]
    survival, bonus = tokens.survival[x], tokens.bonus[x]
    fill_arrivals(survival, law, scratch.gone, scratch.left)
    for j in range(weight.size):
        weight[j] = law.weight[j] * scratch.outer[j] * scratch.gone[j]
    top, rate = law.drafts - 1, law.race * block.outside + bonus
    up = coefficient(groups.state[u], states.ancestors, top, rate, weight)
    lo, share = up, 0.0
    if u > groups.of[block.first]:
        multiply_row(weight, states.fade[u - 1])
        lo = coefficient(states.floor, states.ancestors, top, rate + law.race * states.reach[u - 1], weight)
    if up > lo:
        share = min(max((up - agenda.r[x]) / (up - lo), 0.0), 1.0)
    nest.share[x] = share
    nest.marginal[x] = share * lo + (1.0 - share) * up
    multiply_token(states.ancestors, share, law.race * survival, bonus, scratch.gone, scratch.left)
    return short + agenda.r[x] - nest.marginal[x]


@inner_kernel
def _fill_group(u, begin, end, short, block, problem, work):
    """Solve for the ranks ``begin:end`` of group u; returns what is short with them, and the rank that is, or -1."""
    law, tokens, groups = problem
    nest, agenda, states, scratch = work
    E, G, table = scratch.pair, scratch.step, scratch.table  # [degree + 1, spread + 1, 4]
    portion, weight = scratch.portion, scratch.weight  # [J]
    # the series of the ranks before `end` (upper) and before `begin` (lower), and the base factor of begin:end
    set_one(E, G)
    mass, before = groups.survival[u], 0.0
    if begin == groups.edge[u] and end == groups.edge[u + 1]:
        copy_half(groups.full[u], UPPER, E, UPPER)
        for j in range(portion.size):
            portion[j] = groups.decay[u, j]
    else:
        mass, before = mass_between(begin, end, tokens), mass_between(groups.edge[u], begin, tokens)
        fill_arrivals(mass, law, scratch.gone, portion)
        walk(u, begin, agenda.progress[0], tokens, groups, scratch)
        copy_half(scratch.walker, UPPER, E, UPPER)
        copy_half(scratch.walker, UPPER, E, LOWER)
        include_full(E, G, begin, end, tokens, 1.0, 0.0)
    # the upper table
    if u == groups.of[block.last - 1] and block.slot < 0:  # no ancestors yet: the table of the first pass holds
        copy_half(groups.table[u], UPPER, table, UPPER)
    else:
        fill_arrivals(before, law, scratch.gone, scratch.left)
        for j in range(portion.size):
            weight[j] = law.weight[j] * scratch.outer[j] * scratch.left[j] * portion[j]
        rate = law.race * (block.outside + before + mass)
        fill_table(table, UPPER, groups.state[u], states.ancestors, law.drafts, rate, weight, law, scratch.rows)
    # the lower table
    if u == groups.of[block.first]:
        copy_half(table, UPPER, table, LOWER)
    else:
        for j in range(portion.size):
            weight[j] = law.weight[j] * scratch.outer[j] * states.fade[u - 1, j] * portion[j]
        rate = law.race * (block.outside + states.reach[u - 1] + mass)
        fill_table(table, LOWER, states.floor, states.ancestors, law.drafts, rate, weight, law, scratch.rows)
    # the chain, and what it makes of the ancestors
    allowed = block.patience * agenda.progress[0].tolerance
    short, k = descend(begin, end, short, allowed, block.last - 1, agenda.r, tokens, nest, scratch)
    if k > block.first:
        return short, k
    multiply_series(states.ancestors, E, LOWER, law.race * mass, portion, law, scratch.factor)
    return short, -1


@inner_kernel
def walk(u, k, progress, tokens, groups, scratch):
    """Bring the walker, a series that stays between calls, to the prefix [0, k) inside group u.

    Blocks are filled in ascending order where they have no ancestors: it mostly has only a few steps to go.
    ``scratch.step`` must hold no token.
    """
    if progress.walk_group != u or progress.walk_rank > k:
        set_one(scratch.walker, scratch.step)
        progress.walk_group, progress.walk_rank = u, groups.edge[u]
    include_full(scratch.walker, scratch.step, progress.walk_rank, k, tokens, 1.0, 0.0)
    progress.walk_rank = k


@inner_kernel
def _broken_prefix(u, block, problem, work):
    """A prefix, out of a few that end where groups begin, with too low a gap after group u; -1 if there is none.

    The chain would find it too, but only when it has come down to it.
    """
    law, groups = problem.law, problem.groups
    agenda, states, scratch = work.agenda, work.states, work.scratch
    low, progress = groups.of[block.first], agenda.progress[0]
    if u <= low:
        return -1
    start = value(states.floor, states.ancestors, block.outside + states.reach[u - 1], law, scratch)
    stride = max((u - low) // _SAMPLES, 1)
    rest = block.outside
    worst, lowest = -1, -block.patience * progress.tolerance
    for v in range(u - 1, low, -1):
        rest += groups.survival[v]
        if (u - v) % stride == 0:
            progress.scan_steps += 1
            k = groups.edge[v]
            reached = value(groups.state[v], states.ancestors, rest, law, scratch)
            gap = agenda.goal[k] - agenda.goal[block.first] - (reached - start)
            if gap < lowest:
                worst, lowest = k, gap
    return worst
