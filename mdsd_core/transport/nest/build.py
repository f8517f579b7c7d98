"""Build the nest: fill blocks, split those that fall short, and coarsen the tolerance past the limit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdsd_core._jit import kernel
from mdsd_core.transport.nest.chain import BLOCK, PROGRESS, Agenda, Nest, States, Workspace, fill_blocks
from mdsd_core.transport.nest.groups import Problem
from mdsd_core.transport.nest.minorant import Points, fill_sag, find_blocks, stack_blocks
from mdsd_core.transport.nest.states import Floats, Scratch, new_states

#: Where a search finds nothing to split, the block may fall short by this many times what it lacks.
_PATIENCE = 2.0


@dataclass(frozen=True)
class NestedWork:
    """How much work a plan took, and the tolerance it ended with.

    Attributes
    ----------
    chain_steps : int
        Linear equations solved: one for each token, and again for tokens of blocks that had to be split.
    scan_steps : int
        Prefixes and tokens looked at to find where a block has to be split.
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
    r: Floats, contacts: NDArray[np.int64], problem: Problem, scratch: Scratch, tolerance: float, limit: int
) -> tuple[Nest, NestedWork]:
    """Segments that realise `r`, with no prefix overfull by much more than `tolerance`.

    Parameters
    ----------
    r : ndarray, shape [m]
        The law asked for, in the base polytope of Q.
    contacts : ndarray of int64
        The prefixes, from 0 to m, where r has mass Q.
    problem : Problem
        As left by the first pass.
    scratch : Scratch
        To be overwritten.
    tolerance : float
        The mass by which a prefix may receive more than r gives it.
    limit : int
        Steps after which the tolerance grows tenfold, and again after every quarter more; the block in hand is filled
        anew, finished ones stay.
    """
    progress = np.zeros((), PROGRESS)
    progress["walk_group"], progress["limit"], progress["tolerance"] = -1, limit, tolerance
    goal = np.concatenate(([0.0], np.cumsum(r)))
    agenda = Agenda(r, goal, contacts, np.empty(r.size, BLOCK), progress.reshape(1))
    work = Workspace(new_nest(r.size), agenda, _new_shared_states(contacts, problem), scratch)
    points = None
    k = fill_blocks(problem, work)
    while k >= 0:
        if progress["chain_steps"] + progress["scan_steps"] > progress["limit"]:
            progress["tolerance"] *= 10.0
            progress["limit"] += max(limit // 4, 1)
            k = fill_blocks(problem, work)
            continue
        if points is None:
            points = _new_points(r, problem)
        held = work.states.held
        if progress["slots"] == held.shape[0]:
            work = work._replace(states=work.states._replace(held=np.concatenate((held, np.empty_like(held)))))
        k = _split_blocks(k, points, problem, work)
    chain, scan, repairs = (int(progress[name]) for name in ("chain_steps", "scan_steps", "repairs"))
    return work.nest, NestedWork(chain, scan, repairs, float(progress["tolerance"]), bool(progress["limit"] > limit))


def _new_shared_states(contacts: NDArray[np.int64], problem: Problem) -> States:
    law, groups = problem.law, problem.groups
    spans = groups.of[contacts[1:] - 1] - groups.of[contacts[:-1]] + 1
    ancestors, floor, prefix = new_states(law, 3)
    held, above = new_states(law, 4), new_states(law, int(spans.max()))
    return States(ancestors, floor, prefix, held, above, np.empty_like(groups.survival), np.empty_like(groups.decay))


def _new_points(r: Floats, problem: Problem) -> Points:
    m, (count, J) = r.size, problem.groups.decay.shape
    sag = np.empty(count)
    fill_sag(r, problem.tokens, problem.groups, sag)
    rank, vertex = np.empty((2, m + 1), np.int64)
    push, gap = np.empty((2, m + 1))
    rest, edge_push, edge_gap = np.empty((3, count))
    fine, projection = np.empty(count, np.bool_), np.empty((4, problem.law.drafts + 1, J))
    return Points(rank, push, gap, vertex, rest, edge_push, edge_gap, fine, sag, projection)


@kernel
def _split_blocks(k, points, problem, work):
    """Split the block in hand, whose prefix k is overfull, and fill on, as often as slots and steps allow.

    Returns -1, or the prefix that is overfull now. Most small vocabularies never come here, and then it is not
    compiled.
    """
    progress = work.agenda.progress[0]
    while (
        k >= 0
        and progress.slots < work.states.held.shape[0]
        and progress.chain_steps + progress.scan_steps <= progress.limit
    ):
        y, kept = find_blocks(k, points, problem, work)
        if kept > 2:
            stack_blocks(y, kept, points, problem, work)
        elif kept == 2:  # no split helps: allow the block what it lacks
            block = work.agenda.stack[progress.blocks - 1]
            block.patience = _PATIENCE * max(block.patience, block.short / progress.tolerance)
        k = fill_blocks(problem, work)
    return k
