"""A rigorous bracket for P(all three drafts without replacement are rejected) under recursive rejection sampling.

The probability is ``sum_x sum_{y != x} a(x) b(y|x) Z(l_3(x, y)) / Z(l_2(x))`` over the rejected pair (x, y), in the
notation of `exact.py`: ``a(x) = (w_x/W - p_x)_+``, ``b(y|x) = (s w_y - (p_y - l_1 w_y)_+ / Z(l_1))_+`` with
``s = 1/(W - w_x)``, ``l_2 = l_1 + s Z(l_1)``, ``l_3 = l_2 + Z(l_2)/(W - w_x - w_y)``. x and y enter through their
weights: the *heavy* tokens are taken one by one, the *light* ones in bins of nearly equal weight.

* Over the y of a bin the error is of second order. ``1/(W - w_x - w_y)`` is convex in w_y and Z is convex and
  decreasing, so that a bin's weights and first moment (prefix sums within the bin, in ratio order) bound its sum by
  Jensen's inequality from below and by chords from above.
* Over the x of a bin it is of first order, factor by factor: b and ``1/Z(l_2)`` rise with w_x, and l_3 lies between
  ``l_2(low) + Z(l_2(high))/(W - low - w_y)`` and the same with low and high exchanged. The terms y = x of the bin,
  which do not belong there, are bounded likewise and taken away.
"""

import numpy as np

from mdsd_core._jit import inline_kernel, kernel
from mdsd_core.verifiers.residual import rest_mass
from mdsd_core.verifiers.residual_table import ResidualTable, mass_at

_HEAVY = 64

#: Octaves of weight below the largest light token that get bins of their own.
_OCTAVES = 30

#: What the rounding of the sums (all of positive terms) stays far below.
_ROUNDING = 1e-12


def rejection_of_three(table: ResidualTable, width: float = 1e-6) -> tuple[float, float]:
    """Bounds on the probability that all three drafts are rejected, at most `width` apart.

    There must be more than 64 tokens. Bins are halved until the bracket is narrow enough, at most nine times.
    """
    w, size = table.w, table.w.size
    heavy = np.zeros(size, dtype=np.bool_)
    heavy[np.argpartition(w, size - _HEAVY)[size - _HEAVY :]] = True
    by_weight = np.argsort(w)[::-1]
    by_weight = by_weight[~heavy[by_weight]]
    low, high = 0.0, 1.0
    for refinement in range(10):
        tokens, start = _bins(w, heavy, 4 * 2**refinement)
        spread = 0.02 * width / 4.0**refinement
        bounds = _bracket(table, np.flatnonzero(heavy), by_weight, spread, tokens, start)
        low, high = max(low, bounds[0] - _ROUNDING), min(high, bounds[1] + _ROUNDING)
        if high - low <= width:
            break
    return low, high


def _bins(w, heavy, per_octave):
    """Light tokens by bins of weight, in ratio order within a bin; and where the bins start."""
    light = np.flatnonzero(~heavy)
    octave = np.minimum(np.log2(w[light].max()) - np.log2(w[light]), _OCTAVES)
    number = (octave * per_octave).astype(np.int64)
    by_bin = np.argsort(number, kind="stable")
    start = np.flatnonzero(np.diff(number[by_bin], prepend=-1))
    return light[by_bin], np.append(start, light.size)


@inline_kernel
def _prefix(tokens, value):
    sums = np.zeros(tokens.size + 1)
    for i in range(tokens.size):
        sums[i + 1] = sums[i] + value[tokens[i]]
    return sums


@inline_kernel
def _first_at_least(tokens, low, high, rank):
    """The first index in ``low..high`` whose token has at least this rank."""
    while low < high:
        middle = (low + high) // 2
        if tokens[middle] >= rank:
            high = middle
        else:
            low = middle + 1
    return low


@inline_kernel
def _second_rejection(sums, first, middle, end, level, mass, rest):
    """The sum of b(y|x) over y of a bin, and that of ``b(y|x) w_y``.

    Tokens from `first` to `middle` are never kept by the residual at `level` less ``mass / rest``; those from `end` on
    are never rejected.
    """
    sum_w, sum_p, sum_ww, sum_pw = sums
    share = (sum_w[middle] - sum_w[first]) / rest
    share += (level * (sum_w[end] - sum_w[middle]) - (sum_p[end] - sum_p[middle])) / mass
    moment = (sum_ww[middle] - sum_ww[first]) / rest
    moment += (level * (sum_ww[end] - sum_ww[middle]) - (sum_pw[end] - sum_pw[middle])) / mass
    return share, moment


@kernel
def _bracket(table, heavy, by_weight, spread, tokens, start):
    """Lower and upper bound, from the heavy tokens and the bins of light ones."""
    p, w, ratio, above_p, above_w = table
    total = above_w[0]
    level1 = 1.0 / total
    rank1, mass1 = mass_at(level1, 0, ratio, above_p, above_w)
    if mass1 == 0.0:
        return 0.0, 0.0
    bins, heavies = start.size - 1, heavy.size
    sum_w = _prefix(tokens, w)
    sums = sum_w, _prefix(tokens, p), _prefix(tokens, w * w), _prefix(tokens, p * w)
    least, most, split = np.empty(bins), np.empty(bins), np.empty(bins, dtype=np.int64)
    for b in range(bins):
        least[b], most[b] = w[tokens[start[b]]], w[tokens[start[b]]]
        for i in range(start[b], start[b + 1]):
            least[b], most[b] = min(least[b], w[tokens[i]]), max(most[b], w[tokens[i]])
        split[b] = _first_at_least(tokens, start[b], start[b + 1], rank1)
    rest = np.empty(heavies)
    for i in range(heavies):
        rest[i] = total - w[heavy[i]] if w[heavy[i]] < 0.5 * total else rest_mass(w, heavy[i : i + 1])
    light_total = sum_w[tokens.size]

    lower, upper = 0.0, 0.0
    group, near = 0, rank1  # groups of x: first the heavy tokens, then ranges of the light ones by weight
    position = 0
    while group < heavies or position < by_weight.size:
        # A group: sum of a(x) and of a(x) w_x, the range of w_x, and the weight left without x
        single = group < heavies
        if single:
            x = heavy[group]
            chance, own = w[x] / total - p[x], 0.0
            light_w = heavy_w = w[x]
            rest_light = rest_heavy = rest[group]
            me = group
            group += 1
            if x >= rank1:
                continue
        else:
            chance, own, me = 0.0, 0.0, -1
            heavy_w = light_w = w[by_weight[position]]
            while position < by_weight.size:
                x = by_weight[position]
                gain = w[x] / total - p[x] if x < rank1 else 0.0
                if chance > 0.0 and (chance + gain) * (heavy_w - w[x]) > spread * total:
                    break
                if gain > 0.0:
                    if chance == 0.0:
                        heavy_w = w[x]
                    chance, own, light_w = chance + gain, own + gain * w[x], w[x]
                position += 1
            rest_light, rest_heavy = total - light_w, total - heavy_w
        if chance <= 0.0:
            continue
        level_a, level_b = level1 + mass1 / rest_light, level1 + mass1 / rest_heavy
        rank_a, mass_a = mass_at(level_a, rank1, ratio, above_p, above_w)
        rank_b, mass_b = mass_at(level_b, rank_a, ratio, above_p, above_w)
        if mass_b == 0.0:  # the second draft is rejected with at most mass_a / mass1
            upper += chance * mass_a / mass1
            continue

        below, above = 0.0, 0.0
        for b in range(bins):
            first, middle = start[b], split[b]
            end = _first_at_least(tokens, middle, start[b + 1], rank_a)
            share, moment = _second_rejection(sums, first, middle, end, level_a, mass1, rest_light)
            if share > 0.0:
                mean = min(max(moment / share, least[b]), most[b])
                gap = 1.0 / (rest_heavy - least[b])
                if most[b] > least[b]:
                    part = (mean - least[b]) / (most[b] - least[b])
                    gap += part * (1.0 / (rest_heavy - most[b]) - gap)
                near, value = mass_at(level_b + mass_a * gap, near, ratio, above_p, above_w)
                below += share * value
            end = _first_at_least(tokens, middle, start[b + 1], rank_b)
            share, moment = _second_rejection(sums, first, middle, end, level_b, mass1, rest_heavy)
            if share > 0.0:
                mean = min(max(moment / share, least[b]), most[b])
                level = level_a + mass_b / (rest_light - least[b])
                near, value = mass_at(level, near, ratio, above_p, above_w)
                level_most = level_a + mass_b / (rest_light - most[b])
                if level_most > level:
                    part = (level_a + mass_b / (rest_light - mean) - level) / (level_most - level)
                    near, value_most = mass_at(level_most, near, ratio, above_p, above_w)
                    value += min(max(part, 0.0), 1.0) * (value_most - value)
                above += share * value
        for i in range(heavies):
            if i == me:
                continue
            y = heavy[i]
            kept = max(p[y] - level1 * w[y], 0.0) / mass1
            if single:
                left_a = light_total
                for j in range(heavies):
                    if j != i and j != me:
                        left_a += w[heavy[j]]
                left_b = left_a
            else:
                left_a, left_b = rest[i] - light_w, rest[i] - heavy_w
            share = w[y] / rest_light - kept
            if share > 0.0:
                near, value = mass_at(level_b + mass_a / left_b, near, ratio, above_p, above_w)
                below += share * value
            share = w[y] / rest_heavy - kept
            if share > 0.0:
                near, value = mass_at(level_a + mass_b / left_a, near, ratio, above_p, above_w)
                above += share * value
        if single:
            lower += chance * below / mass_a
            upper += chance * min(above / mass_b, mass_a / mass1)
        else:
            near, value = mass_at(level_b + mass_a / (rest_heavy - light_w), near, ratio, above_p, above_w)
            own_below = own / rest_light * value
            near, value = mass_at(level_a + mass_b / (rest_light - heavy_w), near, ratio, above_p, above_w)
            own_above = own / rest_heavy * value
            lower += max(chance * below - own_below, 0.0) / mass_a
            upper += min((chance * above - own_above) / mass_b, chance * mass_a / mass1)
    return lower, upper
