"""The nest of the optimal verifier without replacement: its picture, its shape, what it gains and what it costs."""

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import check_pair
from mdsd_core.schemes import Scheme
from mdsd_core.schemes.base import check_count
from mdsd_core.transport.nest import NestedPlan, NestedWork, Segments, nested_plan
from mdsd_core.transport.nest.plan import TOLERANCE
from mdsd_study.statistics import Interval, bootstrap_ratio


@dataclass(frozen=True)
class NestShape:
    """A nest in numbers.

    Attributes
    ----------
    tokens, segments : int
        How many there are; at most two segments a token.
    contacts : tuple of int
        The prefixes, from 0 to `tokens`, that no label reaches over: drafts inside such a prefix serve it alone.
    widest : int
        The number of tokens between the two contacts that lie furthest apart.
    depth : int
        The largest number of labels one inside the other.
    several : int
        Tokens whose label holds several blocks side by side.
    blocks : int
        The largest number of blocks in one label.

    Examples
    --------
    >>> from mdsd_core.schemes import WithoutReplacement
    >>> from mdsd_core.transport.nest import nested_plan
    >>> shape = shape_of(nested_plan([0.1, 0.1, 0.4, 0.4], [0.25] * 4, WithoutReplacement(2), 1e-12).segments())
    >>> shape.contacts, shape.widest
    ((0, 4), 4)
    """

    tokens: int
    segments: int
    contacts: tuple[int, ...]
    widest: int
    depth: int
    several: int
    blocks: int


def shape_of(segments: Segments) -> NestShape:
    """Measure a nest, in O(V).

    Parameters
    ----------
    segments : Segments
        From :meth:`mdsd_core.transport.nest.NestedPlan.segments`.

    Returns
    -------
    NestShape

    Examples
    --------
    The label of token 4 holds a block of two tokens beside a block of one:

    >>> from mdsd_core.schemes import WithoutReplacement
    >>> made = nested_plan([0.1, 0.1, 0.4, 0.4], [0.25] * 4, WithoutReplacement(2), 1e-12)
    >>> shape_of(made.segments())
    NestShape(tokens=4, segments=7, contacts=(0, 4), widest=4, depth=2, several=1, blocks=2)
    """
    m = segments.tokens.size
    arc = segments.base < segments.rank
    over = np.zeros(m + 1, dtype=np.int64)  # labels that reach over the border of ranks k - 1 and k
    np.add.at(over, segments.base[arc] + 1, 1)
    np.add.at(over, segments.rank[arc] + 1, -1)
    contacts = np.flatnonzero(np.cumsum(over) == 0)
    first = np.unique(segments.rank[arc], return_index=True)[1]
    inside = np.zeros(m + 1, dtype=np.int64)  # labels that hold rank k in one of their blocks
    np.add.at(inside, segments.base[arc][first], 1)
    np.add.at(inside, segments.rank[arc][first], -1)
    blocks = np.bincount(segments.rank[arc], minlength=1)
    return NestShape(
        tokens=m,
        segments=segments.rank.size,
        contacts=tuple(contacts.tolist()),
        widest=int(np.diff(contacts).max(initial=0)),
        depth=int(np.cumsum(inside).max(initial=0)),
        several=int((blocks > 1).sum()),
        blocks=int(blocks.max(initial=0)),
    )


def draw_nest(axis: Axes, segments: Segments, edges: ArrayLike, *, finest: float = 0.0) -> LineCollection:
    """Draw the labels that hold blocks as arcs over the ratio order, coloured by their probability.

    An arc stands on the first rank of the block and on the token that the label belongs to. A token's own segment, by
    which it beats all ranks below, has no arc.

    Parameters
    ----------
    axis : matplotlib Axes
        Its limits are set.
    segments : Segments
        From :meth:`mdsd_core.transport.nest.NestedPlan.segments`.
    edges : array_like, shape (m + 1,)
        Where the ranks begin and end on the horizontal axis, ascending: equally spaced, or sums of masses.
    finest : float
        In units of the whole width: of arcs whose ends fall onto the same two points of a grid this fine one is drawn,
        and narrower ones are left out. 0: all are drawn.

    Returns
    -------
    LineCollection
        The arcs; the colour scale from 0 to 1 is the probability of the segment.

    Raises
    ------
    ValueError
        If `edges` do not fit or fall.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from mdsd_core.schemes import WithoutReplacement
    >>> made = nested_plan([0.1, 0.1, 0.4, 0.4], [0.25] * 4, WithoutReplacement(2), 1e-12)
    >>> len(draw_nest(Figure().subplots(), made.segments(), range(5)).get_segments())
    3
    """
    edges = np.asarray(edges, dtype=np.float64)
    m = segments.tokens.size
    if edges.shape != (m + 1,) or (np.diff(edges) < 0).any() or not edges[-1] > edges[0]:
        raise ValueError(f"edges must be {m + 1} ascending places, got {edges.tolist()}")
    arc = segments.base < segments.rank
    rank, share = segments.rank[arc], segments.share[arc]
    left, right = edges[segments.base[arc]], 0.5 * (edges[rank] + edges[rank + 1])
    whole = float(edges[-1] - edges[0])
    if finest > 0.0:
        grid = np.stack([left, right], axis=1)
        chosen = np.unique(np.round(grid / (whole * finest)), axis=0, return_index=True)[1]
        chosen = np.sort(chosen[(right - left)[chosen] >= whole * finest])
        left, right, share = left[chosen], right[chosen], share[chosen]
    angle = np.linspace(0.0, math.pi, 73)
    middle, radius = 0.5 * (left + right)[:, None], 0.5 * (right - left)[:, None]
    lines = np.stack([middle - radius * np.cos(angle), np.sqrt(2.0 * radius / whole) * np.sin(angle)], axis=2)
    widths = 1.6 if finest == 0.0 else 0.8
    arcs = LineCollection(list(lines), array=share, cmap="viridis_r", norm=Normalize(0.0, 1.0), linewidths=widths)
    axis.add_collection(arcs)
    axis.set(xlim=(edges[0], edges[-1]), ylim=(0.0, 1.05), yticks=[])
    axis.grid(visible=False)
    axis.spines["left"].set_visible(False)
    return arcs


def closed_share(reached: ArrayLike, start: ArrayLike, bound: ArrayLike, prompts: Sequence[str]) -> Interval:
    """The share of a gap that is closed, ``sum (reached - start) / sum (bound - start)``, prompts resampled.

    Parameters
    ----------
    reached, start, bound : array_like, shape (N,)
        Acceptances at the same positions: of the better rule, of the rule it is compared with, and the optimal rate.
    prompts : sequence of str, length N
        Which prompt each position belongs to.

    Returns
    -------
    Interval
        Both ends are NaN if one of the prompts has no gap.

    Examples
    --------
    >>> found = closed_share([0.69, 0.8], [0.6, 0.7], [0.7, 0.8], ["a", "b"])
    >>> round(found.mean, 12), round(found.low, 12), round(found.high, 12)
    (0.95, 0.9, 1.0)
    """
    start = np.asarray(start, dtype=np.float64)
    gained, gap = np.asarray(reached, dtype=np.float64) - start, np.asarray(bound, dtype=np.float64) - start
    names = np.asarray(prompts, dtype=str)
    if any(not gap[names == name].sum() > 0.0 for name in np.unique(names)):
        total = float(gap.sum())
        mean = float(gained.sum()) / total if total > 0.0 else math.nan
        return Interval(mean, math.nan, math.nan, 0.95, np.unique(names).size, gap.size)
    return bootstrap_ratio(gained, gap, prompts, seed=0)


@dataclass(frozen=True)
class PlanCost:
    """What one plan cost, and what came of it.

    Attributes
    ----------
    seconds, argsort : float
        Processor time of the plan, everything from p and q on, and of ``numpy.argsort(p)``: the fastest of the repeats.
    acceptance, bound, loss : float
        See :class:`~mdsd_core.transport.nest.NestedPlan`.
    work : NestedWork
        Steps, repairs and the tolerance at the end.

    Examples
    --------
    >>> from mdsd_core.schemes import WithoutReplacement
    >>> cost = measure_plan([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], WithoutReplacement(2), repeats=1)
    >>> cost.argsorts == cost.seconds / cost.argsort, round(cost.acceptance, 9)
    (True, 0.985714286)
    """

    seconds: float
    argsort: float
    acceptance: float
    bound: float
    loss: float
    work: NestedWork

    @property
    def argsorts(self) -> float:
        """The time of the plan in units of a sort."""
        return self.seconds / self.argsort


def measure_plan(
    p: ArrayLike, q: ArrayLike, scheme: Scheme, tolerance: float = TOLERANCE, *, repeats: int = 3
) -> PlanCost:
    """Make a plan a few times, each time beside a sort of p, and keep the fastest of both.

    Parameters
    ----------
    p, q, scheme, tolerance
        As for :func:`~mdsd_core.transport.nest.nested_plan`. Compiled code is not warmed up here.
    repeats : int
        How often, at least 1.

    Returns
    -------
    PlanCost
        Times are the processor time of this thread: others that use the same machine disturb it least.

    Examples
    --------
    >>> from mdsd_core.schemes import WithoutReplacement
    >>> cost = measure_plan([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], WithoutReplacement(2), repeats=1)
    >>> round(cost.bound, 9), cost.work.repairs
    (0.985714286, 0)
    """
    p, q = check_pair(p, q)
    plans, sorts = [], []
    for _ in range(check_count("repeats", repeats)):
        started = time.thread_time()
        np.argsort(p)
        sorts.append(time.thread_time() - started)
        started = time.thread_time()
        found: NestedPlan = nested_plan(p, q, scheme, tolerance)
        plans.append(time.thread_time() - started)
    return PlanCost(min(plans), max(min(sorts), 1e-9), found.acceptance, found.bound, found.loss, found.work)


def median_and_worst(values: Sequence[float]) -> tuple[float, float]:
    """The median and the largest of some figures.

    >>> median_and_worst([3.0, 1.0, 2.0])
    (2.0, 3.0)
    """
    return statistics.median(values), max(values)


def sums_in_order(values: NDArray[np.float64], segments: Segments) -> NDArray[np.float64]:
    """Partial sums of a vector over the vocabulary along the ranks of a nest, from 0 on, shape (m + 1,).

    >>> from mdsd_core.schemes import DistinctConditioned
    >>> made = nested_plan([0.3, 0.3, 0.4], [0.4, 0.3, 0.3], DistinctConditioned(2))
    >>> sums_in_order(np.array([0.4, 0.3, 0.3]), made.segments())
    array([0. , 0.4, 0.7, 1. ])
    """
    return np.concatenate(([0.0], np.cumsum(np.asarray(values, dtype=np.float64)[segments.tokens])))
