"""The blocks of a token that has to hold several of them: the vertices of a convex minorant.

Raising the inclusion F of token y moves the gap of every prefix k (see :mod:`mdsd_core.transport.nest.search`)
along a line, from gap_k at F = 0 with slope ``-(push_k - push_s)``, push_k the derivative of Qhat by F_y with [0, k)
full. Where prefix k becomes tight, [s, k) closes as a block of its own. So the blocks of y end at the vertices of the
*greatest convex minorant* of the points ``(push_k, gap_k)``, k = s..y, and the slopes of its edges are the values of
F at which they are filled.

The minorant is first taken at the ends of groups only, without the vertices that matter less than the tolerance; then
the groups inside which it may have a deeper vertex are looked at token by token.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdsd_core._jit import inner_kernel, kernel
from mdsd_core.transport.nest.chain import free_slot, set_block
from mdsd_core.transport.nest.groups import derivative, fill_value_table, mass_across, mass_between, prefix_state, value
from mdsd_core.transport.nest.search import fill_ancestors, outermost_broken
from mdsd_core.transport.nest.series import LOWER, UPPER, advance, apply, fill_table, include_full, set_one
from mdsd_core.transport.nest.states import Floats, copy_state, fill_arrivals, fill_derivative_weight, multiply_row

#: Vertices of the minorant that matter less than this share of the tolerance are dropped.
_DROP = 0.25


class Points(NamedTuple):
    """The points of a minorant, and what they are made of.

    Attributes
    ----------
    rank, push, gap : ndarray, shape [m + 1]
        The points: prefix k, push_k and gap_k.
    vertex : ndarray of int64, shape [m + 1]
        The vertices, as indices of points.
    rest, edge_push, edge_gap : ndarray, shape [G]
        For the prefix that ends where a group begins: the `survival` of what is not included at all, and its point.
    fine : ndarray of bool, shape [G]
        True if all ranks of a group are points.
    sag : ndarray, shape [G]
        How far the partial sums of r may lie below the chord of a group's ends.
    projection : ndarray, shape [4, n + 1, J]
        The ancestors and y as a linear form on the states of prefixes, for values (plain, eps) and pushes.
    """

    rank: NDArray[np.int64]
    push: Floats
    gap: Floats
    vertex: NDArray[np.int64]
    rest: Floats
    edge_push: Floats
    edge_gap: Floats
    fine: NDArray[np.bool_]
    sag: Floats
    projection: Floats


@inner_kernel
def _fill_projection(y, projection, problem, work):
    """Rows 0 and 1 belong to P and D for y not included, rows 2 and 3 to P and D for the derivative by F_y."""
    law, tokens, _ = problem
    ancestors, gone, left = work.states.ancestors, work.scratch.gone, work.scratch.left
    fill_arrivals(tokens.survival[y], law, gone, left)
    bonus = tokens.bonus[y]
    for i in range(law.drafts + 1):
        a, b = law.drafts - i, max(law.drafts - 1 - i, 0)
        inner = 1.0 if i < law.drafts else 0.0
        for j in range(law.time.size):
            outer = law.weight[j] * left[j]
            projection[0, i, j] = outer * ancestors[1, a, j]
            projection[1, i, j] = outer * ancestors[0, a, j]
            outer = inner * law.weight[j] * gone[j]
            projection[2, i, j] = outer * (ancestors[1, b, j] + bonus * ancestors[0, b, j])
            projection[3, i, j] = outer * ancestors[0, b, j]


@inner_kernel
def _project(state, projection, left, rate, own):
    """Value and push of the prefix with this state; `rate` of the tokens not included without y, `own` that of y."""
    value, push, value_eps, push_eps = 0.0, 0.0, 0.0, 0.0
    for i in range(state.shape[1]):
        for j in range(left.size):
            P, D = left[j] * state[0, i, j], left[j] * state[1, i, j]
            value += P * projection[0, i, j] + D * projection[1, i, j]
            value_eps += P * projection[1, i, j]
            push += P * projection[2, i, j] + D * projection[3, i, j]
            push_eps += P * projection[3, i, j]
    return value + (rate + own) * value_eps, push + rate * push_eps


@inner_kernel
def _scan_edges(y, block, points, problem, work):
    """The points of the prefixes that end between the first rank of the block and y where a group begins."""
    law, tokens, groups = problem
    agenda, scratch = work.agenda, work.scratch
    _fill_projection(y, points.projection, problem, work)
    low, high = groups.of[block.first], groups.of[y]
    rest = block.outside + mass_between(groups.edge[high], y, tokens)
    fill_arrivals(rest, law, scratch.gone, scratch.left)
    own = law.race * tokens.survival[y]
    for u in range(high, low - 1, -1):
        points.rest[u] = rest
        if block.first < groups.edge[u] < y:
            agenda.progress[0].scan_steps += 1
            reached, push = _project(groups.state[u], points.projection, scratch.left, law.race * rest, own)
            points.edge_push[u] = push
            points.edge_gap[u] = agenda.goal[groups.edge[u]] - reached
        if u > low:
            rest += groups.survival[u - 1]
            multiply_row(scratch.left, groups.decay[u - 1])


@inner_kernel
def _fill_point(i, k, state, y, rest, points, problem, work):
    """Enter prefix k, given its state, as point i; its gap lacks the constant of prefix `first`."""
    law, tokens, _ = problem
    ancestors, agenda, scratch = work.states.ancestors, work.agenda, work.scratch
    agenda.progress[0].scan_steps += 1
    points.rank[i] = k
    points.push[i] = derivative(y, state, ancestors, rest, tokens, law, scratch)
    points.gap[i] = agenda.goal[k] - value(state, ancestors, rest + tokens.survival[y], law, scratch)


@inner_kernel
def _fill_inner_points(i, u, begin, end, y, points, problem, work):
    """Enter the prefixes k with ``begin < k < end`` inside group u as points i, i + 1, ...; returns the next i."""
    law, tokens, groups = problem
    ancestors, agenda, scratch = work.states.ancestors, work.agenda, work.scratch
    E, G, table = scratch.pair, scratch.step, scratch.table
    state, rest = groups.state[u], points.rest[u]
    fill_value_table(table, UPPER, state, ancestors, rest + tokens.survival[y], law, scratch)
    fill_derivative_weight(y, rest, tokens, law, scratch.gone, scratch.left, scratch.weight)
    rate = law.race * rest + tokens.bonus[y]
    fill_table(table, LOWER, state, ancestors, law.drafts - 1, rate, scratch.weight, law, scratch.rows)
    set_one(E, G)
    include_full(E, G, groups.edge[u], begin, tokens, 1.0, 1.0)
    reached, push = apply(table, E)
    for k in range(begin + 1, end):
        agenda.progress[0].scan_steps += 1
        more, further = advance(E, G, table, tokens.size[k - 1], tokens.slope[k - 1], 1.0, 1.0, 0.0)
        reached += more
        push += further
        points.rank[i] = k
        points.push[i] = push
        points.gap[i] = agenda.goal[k] - reached
        i += 1
    return i


@inner_kernel
def _collect(y, block, points, problem, work):
    """Put the points in order: `first`, ends of groups, all ranks of fine groups, y. Returns how many there are.

    Gaps are relative to that of `first`; the gap of y is where the chain has put it: its own, less what was clipped.
    """
    _, tokens, groups = problem
    states, first = work.states, block.first
    low, high = groups.of[first], groups.of[y]
    rest = block.outside + mass_across(first, y, tokens, groups)
    _fill_point(0, first, states.floor, y, rest, points, problem, work)
    count = 1
    for u in range(low, high + 1):
        begin, end = max(first, groups.edge[u]), min(y, groups.edge[u + 1])
        if first < begin < y:
            points.rank[count] = begin
            points.push[count], points.gap[count] = points.edge_push[u], points.edge_gap[u]
            count += 1
        if points.fine[u] and end - begin > 1:
            count = _fill_inner_points(count, u, begin, end, y, points, problem, work)
    prefix_state(y, states.prefix, problem, work.scratch)
    _fill_point(count, y, states.prefix, y, block.outside, points, problem, work)
    start = points.gap[0]
    for i in range(count + 1):
        points.gap[i] -= start
        if i > 0:
            points.push[i] = max(points.push[i], points.push[i - 1])  # q-convexity, against rounding
    points.gap[count] = work.nest.share[y] * (points.push[count] - points.push[0])
    return count + 1


@inner_kernel
def _depth(low, high, points):
    """How far the convex chain of the vertices low..high dips below its chord, by bisection on the slope."""
    push, gap, vertex = points.push, points.gap, points.vertex
    a, b = vertex[low], vertex[high]
    slope = (gap[b] - gap[a]) / max(push[b] - push[a], 1e-300)
    while low < high:  # the last vertex that is reached by an edge less steep than the chord
        middle = (low + high + 1) // 2
        c, d = vertex[middle - 1], vertex[middle]
        if gap[d] - gap[c] < slope * (push[d] - push[c]):
            low = middle
        else:
            high = middle - 1
    c = vertex[low]
    return gap[a] + slope * (push[c] - push[a]) - gap[c]


@inner_kernel
def _fill_minorant(count, drop, points):
    """The vertices of the greatest convex minorant, but for those less than `drop` below a chord; returns how many."""
    push, gap, vertex = points.push, points.gap, points.vertex
    top = 0
    for i in range(count):
        while top >= 2:
            a, b = vertex[top - 2], vertex[top - 1]
            if (gap[b] - gap[a]) * (push[i] - push[b]) < (gap[i] - gap[b]) * (push[b] - push[a]):
                break
            top -= 1
        vertex[top] = i
        top += 1
    kept, at = 1, 0
    while at < top - 1:
        low, high = at + 1, top - 1  # the furthest vertex with a shallow chord
        while low < high:
            middle = (low + high + 1) // 2
            if _depth(at, middle, points) <= drop:
                low = middle
            else:
                high = middle - 1
        at = low
        vertex[kept] = vertex[at]
        kept += 1
    return kept


@kernel
def fill_sag(r, tokens, groups, sag):
    """How far the partial sums of r may lie below their chord inside each group; see :class:`Points`.

    As r/w rises along the ranks, they are convex in the weight, and lie above their tangents at both ends.
    """
    for u in range(sag.size):
        first, last = groups.edge[u], groups.edge[u + 1] - 1
        size, total = 0.0, 0.0
        for x in range(first, last + 1):
            size += tokens.size[x]
            total += r[x]
        chord, low, high = total / size, r[first] / tokens.size[first], r[last] / tokens.size[last]
        sag[u] = size * (chord - low) * (high - chord) / (high - low) if high > low else 0.0


@inner_kernel
def _mark_fine(count, kept, drop, points, groups):
    """Mark the groups inside which the minorant may go deeper than at their ends by more than `drop`.

    Inside a group both Qhat and its derivative are convex in the weight, as r is; so a point inside lies below the
    chord of the ends by at most the sag of r.
    """
    push, gap = points.push, points.gap
    edge, before = 0, 0.0
    for i in range(1, count):
        while edge < kept - 2 and points.vertex[edge + 1] < i:
            edge += 1
        a, b = points.vertex[edge], points.vertex[edge + 1]
        slope = (gap[b] - gap[a]) / max(push[b] - push[a], 1e-300)
        height = gap[i] - gap[a] - slope * (push[i] - push[a])
        u = groups.of[points.rank[i - 1]]
        if points.sag[u] > drop and min(before, height) < points.sag[u]:
            points.fine[u] = True
        before = height


@inner_kernel
def find_blocks(k, points, problem, work):
    """Find the token that has to hold several blocks, as a prefix k of the block on top of the stack is overfull.

    Returns the token and the number of vertices, one more than that of its blocks: 2 if nothing was found that matters,
    0 if the search was given up because of the limit on steps.
    """
    groups, states, progress = problem.groups, work.states, work.agenda.progress[0]
    block = work.agenda.stack[progress.blocks - 1]
    drop = _DROP * progress.tolerance
    prefix_state(block.first, states.floor, problem, work.scratch)
    inner = progress.inner
    while True:
        # the token, its ancestors, and the points of its minorant at the ends of groups
        y = outermost_broken(k, inner, block, problem, work)
        fill_ancestors(y, block.last, problem, work)
        _scan_edges(y, block, points, problem, work)
        points.fine[groups.of[block.first] : groups.of[y] + 1] = False
        points.fine[groups.of[k]] = True
        # the minorant: coarse, then with all ranks of the groups that may matter
        broken, kept = -1, 0
        for fine in (False, True):
            count = _collect(y, block, points, problem, work)
            worst = np.argmin(points.gap[:count])
            if points.gap[worst] < -progress.tolerance and y < block.last - 1:
                broken = points.rank[worst]  # broken already further out, then
                break
            kept = _fill_minorant(count, drop, points)
            if not fine:
                _mark_fine(count, kept, drop, points, groups)
        if broken < 0:
            return y, kept
        if progress.chain_steps + progress.scan_steps > progress.limit:
            return y, 0
        k, inner = broken, y + 1


@inner_kernel
def stack_blocks(y, kept, points, problem, work):
    """Replace the block on top of the stack by the blocks of token y, as found by :func:`find_blocks`.

    There must be a free slot in `held`.
    """
    law, tokens, groups = problem
    nest, agenda, states, scratch = work
    progress = agenda.progress[0]
    # a slot for the state of the ancestors of y
    top = progress.blocks - 1
    outside = agenda.stack[top].outside
    free_slot(top, agenda)
    slot = progress.slots
    progress.slots += 1
    copy_state(states.ancestors, states.held[slot])
    # a block, and a segment of y, for each edge of the minorant
    nest.parts_from[y], nest.parts[y] = progress.parts, kept - 1
    level, received = 0.0, 0.0
    for i in range(kept):
        a = points.vertex[i]
        start = points.rank[a]
        prefix_state(start, states.prefix, problem, scratch)
        rest = outside + mass_across(start, y, tokens, groups)
        push = derivative(y, states.prefix, states.ancestors, rest, tokens, law, scratch)
        if i == kept - 1:
            nest.marginal[y] = received + (1.0 - level) * push
            break
        b = points.vertex[i + 1]
        end, run, below = points.rank[b], points.push[b] - points.push[a], level
        if run > 0.0:
            level = min(max(below, (points.gap[b] - points.gap[a]) / run), 1.0)
        received += (level - below) * push
        nest.part_base[progress.parts], nest.part_share[progress.parts] = start, level - below
        progress.parts += 1
        rest = outside + mass_across(end, y, tokens, groups)
        set_block(agenda.stack[top], start, end, slot, y, level, rest)
        top += 1
    nest.share[y] = level
    progress.blocks = top
    progress.repairs += 1
