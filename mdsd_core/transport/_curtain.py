"""Kernels of the left-curtain coupling: one sweep that finds the intervals, two that cut them into pieces.

All positions are labels in [0, 1]. The largest of n uniform labels has density ``Z(w) = n w^(n-1)``; the Z-mass of
[s, t] is ``t^n - s^n``.
"""

import numpy as np

from mdsd_core._jit import inline_kernel, kernel

#: A token's Z-mass is met to this much of itself, plus this much shared among all tokens.
_RELATIVE, _SHARED = 1e-13, 1e-14
#: Steps of Newton's method; bisection steps in between make 60 enough for any start.
_STEPS = 60
#: Below this ratio of n times the width to the middle, three terms of the Z-mass's series are exact to rounding.
_NARROW = 0.02
#: Relative error of the same series for Z at the ends.
_SERIES = 1e-9
#: Ranks: half the memory traffic of int64.
_INDEX = np.int32


@inline_kernel
def _mass(s, length, n):
    """The Z-mass of [s, s + length], and Z at its two ends."""
    middle = s + 0.5 * length
    x = length / middle
    if n * x <= _NARROW:
        power, base, bits = float(n), middle, n - 1
        while bits > 0:
            if bits & 1:
                power *= base
            base *= base
            bits >>= 1
        x *= 0.5
        square = x * x
        even = 0.5 * (n - 1) * (n - 2) * square
        odd = (n - 1) * x * (1.0 + (n - 2) * (n - 3) / 6.0 * square)
        mean = 1.0 + (n - 1) * (n - 2) / 6.0 * square * (1.0 + (n - 3) * (n - 4) / 20.0 * square)
        return length * power * mean, power * (1.0 + even - odd), power * (1.0 + even + odd)
    t = s + length
    total = lower = upper = 1.0
    for _ in range(n - 1):
        lower *= s
        upper *= t
        total = total * t + lower
    return length * total, n * lower, n * upper


@inline_kernel
def _right_of_all(q, r, n, low, high):
    """The left end in [low, high] of an interval of length q, free of holes, with Z-mass r.

    To relative accuracy, however small q is: later and larger tokens will lie around it.
    """
    if high <= low or n == 1:
        return low
    tolerance = _RELATIVE * r
    left = low
    for step in range(_STEPS):
        mass, low_density, high_density = _mass(left, q, n)
        excess = mass - r
        if excess > 0.0:
            high = left
        else:
            low = left
        # the difference of the densities, but free of cancellation where q is small
        rate = (n - 1) * mass / (left + 0.5 * q) if n * q <= 1e-4 * left else high_density - low_density
        change = -excess / rate
        if step == 0 and not abs(change) <= 0.1 * left:  # a far start: put the middle where Z is the mean
            following = (r / (n * q)) ** (1.0 / (n - 1)) - 0.5 * q
            left_over = np.inf
        else:
            following = left + change
            left_over = 0.5 * n * (n - 1) * (n - 2) * q * change * change + _SERIES * abs(excess)
        if not low <= following <= high:
            following = 0.5 * (low + high)
        elif left_over <= tolerance or following == left:
            return following
        left = following
    return left


@inline_kernel
def _around(rest, r, n, hull_left, hull_right, guess, low, high, tolerance):
    """How much d of a length `rest` lies left of the hull, so that both sides together have Z-mass r; d in [low, high].

    The mass falls with d, from all to the right to all to the left. Also returns Z at the right end of the hull.
    """
    d = min(max(guess, low), high)
    for _ in range(_STEPS):
        left_mass, left_density, _ = _mass(hull_left - d, d, n)
        right_mass, hull_density, right_density = _mass(hull_right, rest - d, n)
        excess = left_mass + right_mass - r
        if excess > 0.0:
            low = d
        else:
            high = d
        change = excess / (right_density - left_density)
        following = d + change
        if not low <= following <= high:
            following = 0.5 * (low + high)
        elif 0.5 * n * (n - 1) * change * change + _SERIES * abs(excess) <= tolerance or following == d:
            return following, hull_density
        d = following
    return d, hull_density


@kernel
def sweep(w, r, contacts, n):
    """Intervals of the left-curtain coupling, token by token in ratio order.

    Token k gets the interval [left[k], right[k]] without the holes inside it, which are the intervals of its children:
    in all a length w[k] / sum(w), of Z-mass r[k]. At the end the intervals of every block between two contacts are
    stretched to fill the block exactly, so that the nest tiles [0, 1] whatever the rounding.

    Returns left, right, and the nest as ranks, -1 for none: parent (the interval around it), child (the leftmost one
    inside it), sibling (the next one to the right with the same parent), and how many children there are. Parents have
    higher ranks than their children, which stand in the order of their ranks.
    """
    m = w.size
    left, right = np.empty(m), np.empty(m)
    parent, child, sibling, children = (
        np.empty(m, _INDEX),
        np.empty(m, _INDEX),
        np.empty(m, _INDEX),
        np.empty(m, _INDEX),
    )
    # a stack of disjoint holes from left to right, above a bottom that ends where the block begins
    hole, hole_left, hole_right = np.empty(m + 1, _INDEX), np.empty(m + 1), np.empty(m + 1)
    total = 0.0
    for k in range(m):
        total += w[k]
    mass = 0.0
    hole_right[0] = 0.0
    hole[0] = -1  # the last interval of the block before
    for c in range(contacts.size - 1):
        first, last = contacts[c], contacts[c + 1]
        for k in range(first, last):
            mass += w[k]
            parent[k] = child[k] = sibling[k] = -1
            children[k] = 0
        end = mass / total
        if last == first + 1:
            left[first], right[first] = hole_right[0], end
            if first > 0:
                sibling[hole[0]] = first
            hole[0], hole_right[0] = first, end
            continue
        top = 0
        share = old_share = 0.5  # of a token's length, what went to the left of the hull
        floor = 0.0  # a lower bound of Z right of all holes
        for k in range(first, last):
            q = w[k] / total
            tolerance = _RELATIVE * r[k] + _SHARED / m
            h = top
            hull_right = hole_right[top]
            if top == 0 or (r[k] > q * floor and r[k] >= _mass(hull_right, q, n)[0]):
                start = _right_of_all(q, r[k], n, hull_right, end - q)
                stop = min(start + q, end)
                floor = 0.0
            else:
                rest, inner_mass = q, 0.0
                h -= 1
                hull_left = hole_left[h + 1]
                while h > 0:
                    gap = hull_left - hole_right[h]
                    if gap >= rest:
                        break
                    gap_mass = _mass(hole_right[h], gap, n)[0]
                    if inner_mass + gap_mass + _mass(hull_right, rest - gap, n)[0] <= r[k]:
                        break
                    rest -= gap
                    inner_mass += gap_mass
                    hull_left = hole_left[h]
                    h -= 1
                gap = hull_left - hole_right[h]
                low = min(max(0.0, hull_right + rest - end), gap)
                high = max(min(gap, rest), low)
                guess, old_share = old_share * rest, share
                d, floor = _around(rest, r[k] - inner_mass, n, hull_left, hull_right, guess, low, high, tolerance)
                share = d / rest
                start = max(hull_left - d, hole_right[h])
                stop = min(max(hull_right + (rest - d), hull_right), end)
                child[k] = hole[h + 1]
                children[k] = top - h
                for j in range(h + 1, top + 1):
                    parent[hole[j]] = k
            left[k], right[k] = start, stop
            if h > 0:
                sibling[hole[h]] = k
            top = h + 1
            hole[top], hole_left[top], hole_right[top] = k, start, stop
        for j in range(1, top + 1):
            left[hole[j]] = right[hole[j - 1]] if j > 1 else hole_right[0]
            right[hole[j]] = left[hole[j + 1]] if j < top else end
        if first > 0:
            sibling[hole[0]] = hole[1]
        hole[0], hole_right[0] = hole[top], end
    return left, right, parent, child, sibling, children


@kernel
def pieces(w, left, right, parent, child, sibling, children, n):
    """The pieces of all tokens, from left to right, and the law they realise.

    A token's pieces are what its children leave of its interval. A draft draws one of its token's pieces by length (the
    last one if rounding left none with a length). Returns

    start : token k has the pieces ``start[k]:start[k + 1]``
    key : position of a piece among all pieces, from left to right
    cumulative : P(a draft k draws this piece or one of its own to the left)
    r : the law of the winner, for n independent drafts of law w / sum(w)
    """
    m = w.size
    total, count = 0.0, 0
    start = np.zeros(m + 1, np.int64)  # while they come in, start[k + 1] is the place of the next piece of k
    for k in range(m):
        total += w[k]
        start[k + 1] = count
        count += children[k] + 1
    key, cumulative, r = np.empty(count, np.int64), np.empty(count), np.zeros(m)
    if m == 0:
        return start, key, cumulative, r
    x = last = 0
    while parent[x] >= 0:
        x = parent[x]
    before = 0.0  # mass of all pieces so far
    down = True  # came to x from its left; else its last child is done
    position = 0.0
    for j in range(count):
        q = w[x] / total
        i = start[x + 1]
        start[x + 1] = i + 1
        drawn = 0.0 if down else cumulative[i - 1]
        following = child[x] if down else sibling[last]
        if following >= 0:
            upto = min(drawn + (left[following] - position) / q, 1.0)
        else:
            upto = 1.0
        step = q * (upto - drawn)
        r[x] += _mass(before, step, n)[0]
        before += step
        key[i] = j
        cumulative[i] = upto
        if following >= 0:  # into the next child
            position = left[following]
            x, down = following, True
        else:
            position = right[x]
            last = x
            if parent[x] >= 0:
                x, down = parent[x], False
            else:
                x, down = sibling[x], True
    scale = 1.0 / before**n
    for k in range(m):
        r[k] *= scale
    return start, key, cumulative, r
