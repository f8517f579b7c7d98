"""The nest of a law: fill blocks, split those that fall short, and keep the work within its limit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdsd_core._jit import kernel
from mdsd_core.transport.nest.chain import (
    CHAIN,
    REPAIRS,
    SCAN,
    SLOTS,
    TOP,
    WALK_GROUP,
    Agenda,
    Nest,
    States,
    fill_blocks,
)
from mdsd_core.transport.nest.contacts import Points, fill_sag, find_blocks, push_blocks
from mdsd_core.transport.nest.groups import Groups, new_scratch
from mdsd_core.transport.nest.states import Floats, Law, Tokens, new_state

#: After a search that found nothing, a block is let pass so many times what was short.
_PATIENCE = 2.0


@dataclass(frozen=True)
class NestedWork:
    """What a plan cost, and what it had to settle for.

    Attributes
    ----------
    chain_steps : int
        Linear equations solved: one a token, and again where a chain had to be broken off.
    scan_steps : int
        Prefixes and tokens looked at in search of the cause.
    repairs : int
        Tokens found to hold several blocks.
    tolerance : float
        The tolerance at the end: the one asked for, or a coarser one (see `fell_back`).
    fell_back : bool
        True if the limit on the work was reached and the tolerance raised.

    Examples
    --------
    >>> NestedWork(chain_steps=3).fell_back
    False
    """

    chain_steps: int = 0
    scan_steps: int = 0
    repairs: int = 0
    tolerance: float = 0.0
    fell_back: bool = False


def new_nest(m: int) -> Nest:
    """A nest of m tokens without any parts; everything else is still to be written."""
    return Nest(
        base=np.empty(m, dtype=np.int64),
        share=np.empty(m),
        marginal=np.empty(m),
        parts_from=np.empty(m, dtype=np.int64),
        parts=np.zeros(m, dtype=np.int64),
        part_base=np.empty(2 * m, dtype=np.int64),
        part_share=np.empty(2 * m),
    )


def build_nest(
    r: Floats,
    steps: Floats,
    contacts: NDArray[np.int64],
    tokens: Tokens,
    law: Law,
    groups: Groups,
    tolerance: float,
    limit: int,
) -> tuple[Nest, NestedWork]:
    """Segments that realise `r`, with no prefix short by much more than `tolerance`.

    Parameters
    ----------
    r, steps : ndarray, shape [m]
        The law asked for, in the base polytope of Q, and dQ.
    contacts : ndarray of int64
        The prefixes, from 0 to m, where r has mass Q. Between two neighbours the nest is one component.
    tokens, law, groups
        As left by the first pass.
    tolerance : float
        The mass by which a prefix may fall short.
    limit : int
        Steps after which the tolerance grows tenfold, and again after every quarter more.
    """
    m, count = r.size, groups.edge.size - 1
    nest = new_nest(m)
    agenda = Agenda(
        r=r,
        goal=np.concatenate(([0.0], np.cumsum(r))),
        block=np.empty((m, 4), dtype=np.int64),
        measure=np.empty((m, 4)),
        counts=np.zeros(10, dtype=np.int64),
    )
    agenda.counts[WALK_GROUP] = -1
    state = (2, law.drafts + 1, law.time.size)
    spans = groups.of[contacts[1:] - 1] - groups.of[contacts[:-1]] + 1
    above, fade = np.empty((int(spans.max()), *state)), np.empty_like(groups.decay)
    states = States(new_state(law), new_state(law), new_state(law), above, np.empty(count), fade)
    points = Points(
        rank=np.empty(m + 1, dtype=np.int64),
        push=np.empty(m + 1),
        gap=np.empty(m + 1),
        vertex=np.empty(m + 1, dtype=np.int64),
        rest=np.empty(count),
        edge_push=np.empty(count),
        edge_gap=np.empty(count),
        fine=np.empty(count, dtype=np.bool_),
        sag=np.empty(count),
        projection=np.empty((4, *state[1:])),
    )
    fill_sag(r, tokens, groups, points.sag)
    scratch, series = new_scratch(law), np.zeros((4, law.degree + 1, law.spread + 1, 4))
    held = np.empty((4, *state))
    now, next_limit = tolerance, limit
    rest = (tokens, law, groups, scratch, series)
    k = fill_blocks(steps, contacts, now, nest, agenda, states, held, *rest)
    while k >= 0:
        if agenda.counts[CHAIN] + agenda.counts[SCAN] > next_limit:
            now, next_limit = 10.0 * now, next_limit + max(limit // 4, 1)
            k = fill_blocks(steps, contacts, now, nest, agenda, states, held, *rest)
            continue
        if agenda.counts[SLOTS] == held.shape[0]:
            held = np.concatenate((held, np.empty_like(held)))
        k = _split_blocks(k, steps, contacts, now, next_limit, nest, agenda, states, held, points, *rest)
    chain, scan, repairs = (int(agenda.counts[i]) for i in (CHAIN, SCAN, REPAIRS))
    return nest, NestedWork(chain, scan, repairs, now, next_limit > limit)


@kernel
def _split_blocks(
    k, steps, contacts, tolerance, limit, nest, agenda, states, held, points, tokens, law, groups, scratch, series
):
    """Split the block in hand, whose prefix k falls short, and fill on, as often as slots and steps allow.

    Returns -1, or the prefix that falls short now. Small vocabularies never come here, and need not compile it.
    """
    count = agenda.counts
    while k >= 0 and count[SLOTS] < held.shape[0] and count[CHAIN] + count[SCAN] <= limit:
        y, kept = find_blocks(k, tolerance, limit, nest, agenda, states, points, tokens, law, groups, scratch, series)
        if kept > 2:
            push_blocks(y, kept, nest, agenda, states, held, points, tokens, law, groups, scratch, series)
        elif kept == 2:  # the block lacks what it cannot get: let that pass
            block = agenda.measure[count[TOP] - 1]
            block[2] = _PATIENCE * max(block[2], block[3] / tolerance)
        k = fill_blocks(steps, contacts, tolerance, nest, agenda, states, held, tokens, law, groups, scratch, series)
    return k
