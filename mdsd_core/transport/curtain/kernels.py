"""Kernels of the left-curtain coupling: one sweep that finds the intervals, one walk that cuts them into pieces.

All positions are labels in [0, 1]. The largest of n uniform labels has density ``Z(w) = n w^(n-1)``; the Z-mass of
[s, t] is ``t^n - s^n``.
"""

import numpy as np

from mdsd_core._jit import contract_kernel, inline_kernel
from mdsd_core._powers import END_ERROR, power_mass, power_series
from mdsd_core._sums import add

#: A token's Z-mass is met to this much of itself, plus this much shared among all tokens.
_RELATIVE, _SHARED = 1e-13, 1e-14
#: Steps of Newton's method; with bisection in between, more than any start needs.
_STEPS = 60
#: Up to this ratio of n times a width to a middle, the middle of one token ago is as good.
_STEADY = 1e-4


@contract_kernel
def _free(q, r, n, low, high):
    """The left end in [low, high] of an interval of length q, free of holes, with Z-mass r.

    To relative accuracy, however small q is: later and larger tokens will lie around it.
    """
    if high <= low or n == 1:
        return low
    tolerance = _RELATIVE * r
    left = low
    for step in range(_STEPS):
        mass, low_density, high_density = power_mass(left, q, n)
        excess = mass - r
        if excess > 0.0:
            high = left
        else:
            low = left
        # the difference of the densities, but free of cancellation where q is small
        rate = (n - 1) * mass / (left + 0.5 * q) if n * q <= _STEADY * left else high_density - low_density
        change = -excess / rate if rate > 0.0 else np.inf
        if step == 0 and not abs(change) <= 0.1 * left:  # a far start: put the middle where Z is the mean
            following = (r / (n * q)) ** (1.0 / (n - 1)) - 0.5 * q
            doubt = np.inf
        else:
            following = left + change
            doubt = 0.5 * n * (n - 1) * (n - 2) * q * change * change + END_ERROR * abs(excess)
        if not low <= following <= high:
            following = 0.5 * (low + high)
        elif doubt <= tolerance or following == left:
            return following
        left = following
    return left


@inline_kernel
def _inverse(x):
    return 1.0 / x if x > 1e-300 else np.nan


@inline_kernel
def _around_steadily(rest, r, n, hull_left, hull_right, per_left, per_right, d):
    """One step of Newton's method from d for :func:`_around`, quick as it waits for no division by the hull's ends.

    `per_left` and `per_right` are the inverses of the ends of the hull one token ago. Returns the new d, a bound of the
    mass that it misses, and Z at the right end of the hull.
    """
    e = rest - d
    x, y = d * per_left, e * per_right
    left_density, left_mean, left_end, _ = power_series(hull_left - 0.5 * d, x, n)
    right_density, right_mean, hull_end, right_end = power_series(hull_right + 0.5 * e, y, n)
    excess = left_density * (d * left_mean) + right_density * (e * right_mean) - r
    rate = right_density * right_end - left_density * left_end
    change = excess / rate if rate > 0.0 else np.inf
    doubt = 0.5 * n * (n - 1) * change * change + END_ERROR * abs(excess)
    return d + change, doubt if n * (x + y) <= _STEADY else np.inf, right_density * hull_end


@contract_kernel
def _around(rest, r, n, hull_left, hull_right, guess, low, high, tolerance):
    """How much d of a length `rest` lies left of the hull, so that both sides together have Z-mass r; d in [low, high].

    The mass falls with d, from all to the right to all to the left. Also returns Z at the right end of the hull.
    """
    d = min(max(guess, low), high)
    hull_density = 0.0
    for _ in range(_STEPS):
        left_mass, left_density, _ = power_mass(hull_left - d, d, n)
        right_mass, hull_density, right_density = power_mass(hull_right, rest - d, n)
        excess = left_mass + right_mass - r
        if excess > 0.0:
            low = d
        else:
            high = d
        rate = right_density - left_density
        change = excess / rate if rate > 0.0 else np.inf
        following = d + change
        if not low <= following <= high:
            following = 0.5 * (low + high)
        elif 0.5 * n * (n - 1) * change * change + END_ERROR * abs(excess) <= tolerance or following == d:
            return following, hull_density
        d = following
    return d, hull_density


@contract_kernel
def sweep(w, r, contacts, n):
    """Intervals of the left-curtain coupling, token by token in ratio order.

    Token k gets the interval [left[k], right[k]] without the holes inside it, which are the intervals of its children:
    in all a length w[k], of Z-mass r[k]; w and r have the sum 1. At the end the intervals of every block between two
    contacts are stretched to fill the block exactly, so that the nest tiles [0, 1] whatever the rounding.

    Returns left, right and parent (the rank of the interval around it, -1 for none). Parents have higher ranks than
    their children, which stand from left to right in the order of their ranks.
    """
    m = w.size
    left, right, parent = np.empty(m), np.empty(m), np.empty(m, np.int32)  # [m] each
    # a stack of disjoint holes from left to right, above a bottom that ends where the block begins
    hole, hole_left, hole_right = np.empty(m + 1, np.int32), np.empty(m + 1), np.empty(m + 1)  # [m + 1] each
    parent[:] = -1
    mass, lost = 0.0, 0.0
    hole_right[0] = 0.0
    for c in range(contacts.size - 1):
        # a block of ranks between two contacts: where it ends, and the block of one token, which needs no equation
        first, last = contacts[c], contacts[c + 1]
        for k in range(first, last):
            mass, lost = add(mass, lost, w[k])
        end = mass + lost if last < m else 1.0
        if last == first + 1:
            left[first], right[first] = hole_right[0], end
            hole_right[0] = end
            continue
        top = 0
        share = old_share = 0.5  # of a token's length, what went to the left of the hull
        floor = 0.0  # a lower bound of Z right of all holes
        per_left = per_right = np.nan
        for k in range(first, last):
            q = w[k]
            h = top
            hull_right = hole_right[top]
            # right of all holes, if there is Z enough
            if top == 0 or (r[k] > q * floor and r[k] >= power_mass(hull_right, q, n)[0]):
                start = _free(q, r[k], n, hull_right, end - q)
                stop = min(start + q, end)
                floor = 0.0
                per_left, per_right = _inverse(start), _inverse(stop)
            else:  # around the last holes: which ones, then how much lies on either side of them
                rest, own = q, r[k]
                h -= 1
                hull_left = hole_left[h + 1]
                while h > 0:  # swallow the next hole too, if the gap before it is not room enough
                    gap = hull_left - hole_right[h]
                    if gap >= rest:
                        break
                    gap_mass = power_mass(hole_right[h], gap, n)[0]
                    if gap_mass + power_mass(hull_right, rest - gap, n)[0] <= own:
                        break
                    rest -= gap
                    own -= gap_mass
                    hull_left = hole_left[h]
                    h -= 1
                    per_left = np.nan
                gap = hull_left - hole_right[h]
                low = min(max(0.0, hull_right + rest - end), gap)
                high = max(min(gap, rest), low)
                guess, old_share = old_share * rest, share
                tolerance = _RELATIVE * own + _SHARED / m
                d, doubt, floor = _around_steadily(rest, own, n, hull_left, hull_right, per_left, per_right, guess)
                if not (low <= d <= high and doubt <= tolerance):
                    d, floor = _around(rest, own, n, hull_left, hull_right, guess, low, high, tolerance)
                share = d / rest
                per_left, per_right = _inverse(hull_left), _inverse(hull_right)
                start = max(hull_left - d, hole_right[h])
                stop = min(hull_right + (rest - d), end)
                for j in range(h + 1, top + 1):
                    parent[hole[j]] = k
            # the new interval takes the place of the holes inside it
            left[k], right[k] = start, stop
            top = h + 1
            hole[top], hole_left[top], hole_right[top] = k, start, stop
        # stretch what is left to fill the block
        for j in range(1, top + 1):
            left[hole[j]] = right[hole[j - 1]] if j > 1 else hole_right[0]
            right[hole[j]] = left[hole[j + 1]] if j < top else end
        hole_right[0] = end
    return left, right, parent


@contract_kernel
def pieces(w, left, right, parent, n):
    """The pieces of all tokens, from left to right, and the law they realise.

    A token's pieces are what its children leave of its interval. A draft draws one of its token's pieces by length (the
    last one if rounding left none with a length). Returns

    start : token k has the pieces ``start[k]:start[k + 1]``
    key : position of a piece among all pieces, from left to right
    cumulative : P(a draft k draws this piece or one of its own to the left)
    r : the law of the winner, for n independent drafts of law w
    """
    m = w.size
    start, r = np.zeros(m + 1, np.int64), np.zeros(m)
    key, cumulative = np.empty(2 * m, np.int64), np.empty(2 * m)
    if m == 0:
        return start, key, cumulative, r
    # the intervals as a tree, and the number of children
    child, sibling = np.full(m + 1, -1, np.int32), np.empty(m, np.int32)  # [m + 1], [m]; child[m]: the leftmost root
    for k in range(m - 1, -1, -1):
        around = parent[k] if parent[k] >= 0 else m
        sibling[k] = child[around]
        child[around] = k
        start[around] += 1
    # from the number of children to the place of the first piece; that of k moves on in start[k + 1] as pieces come in
    count, children = 0, start[0]
    start[0] = 0
    for k in range(m):
        following = start[k + 1]
        start[k + 1] = count
        count += children + 1
        children = following
    # walk round the tree from left to right, one piece a step
    x = last = child[m]
    down = True  # came to x from its left; else from `last`, its child
    position = 0.0
    before, lost = 0.0, 0.0  # mass of all pieces so far
    for j in range(count):
        q = w[x]
        i = start[x + 1]
        start[x + 1] = i + 1
        drawn = 0.0 if down else cumulative[i - 1]
        following = child[x] if down else sibling[last]
        length = left[following] - position if following >= 0 else q
        upto = min(drawn + length / q, 1.0) if length < q else 1.0
        step = q * (upto - drawn)
        r[x] += power_mass(before + lost, step, n)[0]
        before, lost = add(before, lost, step)
        key[i] = j
        cumulative[i] = upto
        if following >= 0:
            position = left[following]
            x, down = following, True
        else:
            position = right[x]
            last = x
            if parent[x] >= 0:
                x, down = parent[x], False
            else:
                x, down = sibling[x], True
    # relative to all that the pieces make up
    scale = 1.0 / (before + lost) ** n
    for k in range(m):
        r[k] *= scale
    return start, key[:count], cumulative[:count], r


@contract_kernel
def by_token(tokens, r, row, marginal):
    """From ranks to token ids: the row of each token (-1 before the call), and its r."""
    for k in range(tokens.size):
        row[tokens[k]] = k
    for x in range(row.size):  # a gather waits less than a second scatter
        marginal[x] = r[row[x]] if row[x] >= 0 else 0.0
