"""The largest entries of a vector, when only a few are wanted: one pass, and no copy."""

import numpy as np

from mdsd_core._jit import kernel

#: Entries looked at together: hardly any such block holds one that belongs to the largest.
_BLOCK = 512


@kernel
def leading(q, m):
    """Places of the m largest entries, largest first, the first of equal ones first; fewer where fewer are positive."""
    places, largest = np.full(m, -1), np.zeros(m)
    if m > 0:
        for first in range(0, q.size, _BLOCK):
            last = min(first + _BLOCK, q.size)
            if _none_above(q[first:last], largest[m - 1]):
                continue
            for x in range(first, last):
                if q[x] > largest[m - 1]:
                    j = m - 1
                    while j > 0 and q[x] > largest[j - 1]:
                        places[j], largest[j] = places[j - 1], largest[j - 1]
                        j -= 1
                    places[j], largest[j] = x, q[x]
    return places[places >= 0]


@kernel
def _none_above(x, bound):
    count = 0
    for i in range(x.size):  # a count without a way out: a form that becomes SIMD
        count += x[i] > bound
    return count == 0
