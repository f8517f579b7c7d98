"""Where in a block the chain went wrong: the outermost token whose single nest breaks a prefix.

Let ``gap_k = r[s..k) - (Qhat([0, k)) - Qhat([0, s)))``, Qhat with the labels of the ancestors: what the ranks [s, k)
are to receive, less the least they can. r can be realised in the block if no gap is negative. As the chain goes
inwards every token moves the gaps; if it ends up with too little for token k, the gap of prefix k became negative at
some token further out. That token is found by bisection, first among the groups, then inside one.
"""

from mdsd_core._jit import inner_kernel
from mdsd_core.transport.nest.groups import (
    fill_value_table,
    mass_across,
    mass_between,
    multiply_group,
    prefix_state,
    value,
)
from mdsd_core.transport.nest.series import LOWER, UPPER, advance, apply, include_full, set_one, settle
from mdsd_core.transport.nest.states import alone, copy_state


@inner_kernel
def _gap_at_group(k, u, block, problem, work):
    """The gap of prefix k when the chain came to group u; ``states.prefix`` is the state of the prefix."""
    law, tokens, groups = problem
    agenda, states, scratch = work.agenda, work.states, work.scratch
    end = min(block.last, groups.edge[u + 1])
    above = states.above[u % states.above.shape[0]]
    agenda.progress[0].scan_steps += 1
    reached = value(states.prefix, above, block.outside + mass_across(k, end, tokens, groups), law, scratch)
    start = value(states.floor, above, block.outside + mass_across(block.first, end, tokens, groups), law, scratch)
    return agenda.goal[k] - agenda.goal[block.first] - (reached - start)


@inner_kernel
def outermost_broken(k, inner, block, problem, work):
    """The first token after which the gap of prefix k is below -tolerance, as it is known to be after `inner`."""
    law, tokens, groups = problem
    nest, agenda, states, scratch = work
    progress = agenda.progress[0]
    first, outside, lowest_gap = block.first, block.outside, -progress.tolerance
    # among the groups, by bisection
    low, top = groups.of[inner], groups.of[block.last - 1]
    high = top
    prefix_state(k, states.prefix, problem, scratch)
    while low < high:
        u = (low + high) // 2
        if _gap_at_group(k, u, block, problem, work) < lowest_gap:
            low = u + 1
        else:
            high = u
    u = low
    if u == top and _gap_at_group(k, u, block, problem, work) < lowest_gap:
        return block.last - 1  # from the start, by what was lost further out
    begin, end = groups.edge[u], min(block.last, groups.edge[u + 1])
    if alone(begin, tokens):
        return begin
    # inside the group, its tables: prefix k as the upper series, prefix `first` as the lower one
    above = states.above[u % states.above.shape[0]]
    E, G, table = scratch.pair, scratch.step, scratch.table  # [degree + 1, spread + 1, 4]
    set_one(E, G)
    mass = mass_between(begin, end, tokens)
    if k > begin:
        include_full(E, G, begin, min(first, k), tokens, 1.0, 1.0)
        include_full(E, G, max(begin, first), k, tokens, 1.0, 0.0)
        fill_value_table(table, UPPER, groups.state[u], above, outside + mass, law, scratch)
    else:
        rest = outside + mass_across(k, begin, tokens, groups) + mass
        fill_value_table(table, UPPER, states.prefix, above, rest, law, scratch)
    if first > begin:
        fill_value_table(table, LOWER, groups.state[u], above, outside + mass, law, scratch)
    else:
        rest = outside + mass_across(first, begin, tokens, groups) + mass
        fill_value_table(table, LOWER, states.floor, above, rest, law, scratch)
    # inside the group, token by token
    reached, start = apply(table, E)
    gap = agenda.goal[k] - agenda.goal[first] - (reached - start)
    share = 0.0
    lowest = max(inner, begin)
    for y in range(end - 1, lowest, -1):
        progress.scan_steps += 1
        up, lo = advance(E, G, table, tokens.size[y], tokens.slope[y], share, share, 0.0)
        share = nest.share[y]
        gap -= share * (up - lo)
        if gap < lowest_gap:
            return y
    return lowest


@inner_kernel
def fill_ancestors(y, last, problem, work):
    """``states.ancestors``: the state of the ancestors of y, in a block that ends before `last`."""
    law, tokens, groups = problem
    nest, states, scratch = work.nest, work.states, work.scratch
    u = groups.of[y]
    copy_state(states.above[u % states.above.shape[0]], states.ancestors)
    end = min(last, groups.edge[u + 1])
    if y + 1 < end:
        E, G = scratch.pair, scratch.step
        set_one(E, G)
        share = 0.0
        for x in range(y + 1, end):
            advance(E, G, E, tokens.size[x], tokens.slope[x], share, 0.0, 0.0)
            share = nest.share[x]
        settle(E, G, share, 0.0)
        multiply_group(states.ancestors, mass_between(y + 1, end, tokens), law, scratch)
