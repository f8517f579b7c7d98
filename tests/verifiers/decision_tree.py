"""The exact law of what ``verify`` does with its uniforms, without knowing the rule.

A verifier's behaviour is piecewise constant in each uniform it draws. :func:`decision_law` finds the pieces by
bisection, to 2^-52, and adds up their lengths: an integral over the uniforms, not a simulation. Pieces are told apart
by the whole subtree of decisions that follows.
"""

from itertools import pairwise

import numpy as np

LAST = 1.0 - 2.0**-53  # the largest uniform


class _NeedsMore(Exception):
    pass


class Injected:
    """A uniform source that plays the given values, then raises."""

    def __init__(self, values):
        self.values, self.used = list(values), 0

    def random(self):
        if self.used == len(self.values):
            raise _NeedsMore
        self.used += 1
        return self.values[self.used - 1]


def _run(verify, prefix):
    """The verdict after these uniforms, or None if the rule asks for more of them."""
    source = Injected(prefix)
    try:
        verdict = verify(source)
    except _NeedsMore:
        return None
    assert source.used == len(prefix), "a rule must not ignore a uniform it could have left undrawn"
    return verdict


def _tree(verify, prefix, grid):
    """Nested tuples: a verdict, or ((length, subtree), ...)."""
    verdict = _run(verify, prefix)
    if verdict is not None:
        return (verdict.token, verdict.accepted_index)
    known = {}

    def at(u):
        if u not in known:
            known[u] = _tree(verify, (*prefix, u), grid)
        return known[u]

    def same(a, b):
        if isinstance(a[0], int) or isinstance(b[0], int):
            return a == b
        return len(a) == len(b) and all(abs(s - t) < 1e-12 and same(x, y) for (s, x), (t, y) in zip(a, b))

    points = sorted({0.0, LAST, *(g for g in grid if g <= LAST)})
    pieces, start = [], 0.0
    for left, right in pairwise(points):
        low = left
        while not same(at(low), at(right)):
            a, b = low, right  # the first change after `low`
            while b - a > 2.0**-52:
                middle = 0.5 * (a + b)
                a, b = (middle, b) if same(at(low), at(middle)) else (a, middle)
            pieces.append((b - start, at(low)))
            start = low = b
    pieces.append((1.0 - start, at(points[-1])))
    return tuple(pieces)


def decision_law(plan, drafts, V, grid=()):
    """The law of the token of ``plan.verify(drafts, source)``; asserts on the way that tokens are in range.

    `grid` adds points at which to look for changes (a change that reverts between two points would be missed, and the
    law would then not sum up: that shows as a failure, never as a pass).
    """
    law = np.zeros(V)

    def add(tree, weight):
        if isinstance(tree[0], int):
            assert 0 <= tree[0] < V
            law[tree[0]] += weight
        else:
            for length, subtree in tree:
                add(subtree, weight * length)

    add(_tree(lambda source: plan.verify(drafts, source), (), grid), 1.0)
    return law
