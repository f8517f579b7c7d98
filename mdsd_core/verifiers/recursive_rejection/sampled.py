"""P(all drafts without replacement are rejected) under recursive rejection sampling, by sampled histories.

The probability of a history of rejections is a product of conditional ones, and those of one step add up to
``Z(l_{j+1}) / Z(l_j)`` (see `exact.py`). If each next rejected token is drawn by its share of that sum, the
product of the sums telescopes: the probability that all k drafts are rejected is the mean of ``Z(l_k)`` over histories
of k - 1 rejections. Z(l_k) depends on a history only through the weights of its tokens, so it varies little.

A step takes O(log V): the heaviest tokens are weighed one by one, the others through prefix sums in ratio order. The
uniforms are Latin hypercubes, independent of each other: the interval is Student's, from the means of the hypercubes.
"""

import numpy as np

from mdsd_core._jit import inline_kernel, kernel
from mdsd_core.verifiers.residual_table import ResidualTable, mass_at, rank_above

_HEAVY = 32

#: Independent Latin hypercubes. Their means are not quite normal (a few heavy tokens decide much), so the interval for
#: level 0.99 takes the two-sided quantile 0.997 of Student's t with 31 degrees of freedom.
_CUBES = 32
_STUDENT = 3.221


def rejection_sampled(
    table: ResidualTable, draws: int, histories: int, rng: np.random.Generator
) -> tuple[float, float]:
    """The mean of Z(l_k) over `histories` sampled histories, and the half-width of its 99 % interval."""
    size = table.w.size
    heavies = min(size, max(_HEAVY, 2 * draws))
    heavy = np.zeros(size, dtype=np.bool_)
    heavy[np.argpartition(table.w, size - heavies)[size - heavies :]] = True
    largest = np.flatnonzero(heavy)
    largest = largest[np.argsort(-table.w[largest], kind="stable")]
    light = np.flatnonzero(~heavy)
    sum_w, sum_p = (np.concatenate(([0.0], np.cumsum(x[light]))) for x in (table.w, table.p))
    size_of_cube = -(-histories // _CUBES)
    means = np.empty(_CUBES)
    for c in range(_CUBES):
        strata = rng.permuted(np.tile(np.arange(size_of_cube), (draws - 1, 1)), axis=1)
        uniforms = (strata + rng.random(strata.shape)) / size_of_cube
        means[c] = _mean_of_histories(table, largest, light, sum_w, sum_p, uniforms)
    half = float(_STUDENT * means.std(ddof=1) / np.sqrt(_CUBES))
    if half == 0.0:  # all histories alike: one of probability 5.3/N stays unseen in N with probability .005
        half = min(1.0, 5.3 / (_CUBES * size_of_cube)) * _with_replacement(table, draws)
    return float(means.mean()), half


def _with_replacement(table: ResidualTable, draws: int) -> float:
    """Z(l_k) with replacement, which no history without replacement exceeds."""
    _, _, ratio, above_p, above_w = table
    level, mass = 0.0, 1.0
    for _ in range(draws):
        level += mass / above_w[0]
        mass = mass_at(level, 0, ratio, above_p, above_w)[1]
    return float(mass)


@inline_kernel
def _cumulative(k, split, end, sum_w, sum_p, level, next_level, mass, rest):
    """The chance that one of the first k light tokens is rejected next (if none of them has been yet)."""
    low = min(k, split)
    chance = sum_w[low] / rest
    if k > split:
        k = min(k, end)
        chance += (next_level * (sum_w[k] - sum_w[split]) - (sum_p[k] - sum_p[split])) / mass
    return chance


@kernel
def _mean_of_histories(table, heavy, light, sum_w, sum_p, uniforms):
    p, w, ratio, above_p, above_w = table
    steps, count = uniforms.shape
    heavies = heavy.size
    heavy_p, heavy_w = p[heavy], w[heavy]
    left_w = np.empty(heavies)  # the weights of the heavy tokens not rejected yet, 0 for the others
    chance = np.empty(heavies)
    gone = np.empty(steps, dtype=np.int64)  # the light tokens rejected, ascending ranks
    near = 0
    total = 0.0
    for h in range(count):
        level, mass, lights = 0.0, 1.0, 0
        left_w[:] = heavy_w
        for j in range(steps + 1):
            rest = sum_w[light.size]
            for i in range(lights):
                rest -= w[gone[i]]
            for i in range(heavies):
                rest += left_w[i]
            next_level = level + mass / rest
            near, next_mass = mass_at(next_level, near, ratio, above_p, above_w)
            if j == steps or next_mass == 0.0:
                mass = next_mass
                break
            all_heavy = 0.0
            for i in range(heavies):
                kept = max(heavy_p[i] - level * left_w[i], 0.0) / mass
                chance[i] = max(left_w[i] / rest - kept, 0.0)
                all_heavy += chance[i]
            split = np.searchsorted(light, rank_above(ratio, level, near))
            end = np.searchsorted(light, near)
            all_light = _cumulative(end, split, end, sum_w, sum_p, level, next_level, mass, rest)
            for i in range(lights):
                all_light -= w[gone[i]] / rest
            sought = uniforms[j, h] * (all_heavy + max(all_light, 0.0))
            chosen = -1
            for i in range(heavies):
                if chance[i] > 0.0:
                    chosen = i
                    if sought < chance[i]:
                        break
                    sought -= chance[i]
            else:
                low, high = 0, end
                while low < high:
                    middle = (low + high) // 2
                    reached = _cumulative(middle + 1, split, end, sum_w, sum_p, level, next_level, mass, rest)
                    for i in range(lights):
                        if gone[i] <= light[middle]:
                            reached -= w[gone[i]] / rest
                    if reached > sought:
                        high = middle
                    else:
                        low = middle + 1
                if low < end:  # else rounding left the sum short of the point sought: the last heavy token stands
                    chosen = -1
                    place = lights
                    while place > 0 and gone[place - 1] > light[low]:
                        gone[place] = gone[place - 1]
                        place -= 1
                    gone[place] = light[low]
                    lights += 1
            if chosen >= 0:
                left_w[chosen] = 0.0
            level, mass = next_level, next_mass
        total += mass
    return total / count
