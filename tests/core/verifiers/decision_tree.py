"""The exact law of what ``verify`` does with its uniforms, without knowing the rule.

A verifier's behaviour is piecewise constant in each uniform it draws. :func:`decision_law` finds the pieces by
bisection and adds up their lengths: an integral over the uniforms, not a simulation. Two values of a uniform belong to
one piece if the rule then does the same under each of a few fixed continuations. Should different pieces look alike
under all of them, the lengths go to the wrong tokens: the comparison with the law fails, it cannot pass by mistake.
"""

from itertools import pairwise

import numpy as np

LAST = 1.0 - 2.0**-53  # the largest uniform

_CONTINUATIONS = [np.random.default_rng(9).random(64).tolist(), [0.0] * 64, [LAST] * 64, [0.5] * 64]
_CONTINUATIONS += np.random.default_rng(8).random((6, 64)).tolist()
_PRECISION = 2.0**-46


class Injected:
    """A uniform source that plays the given values and counts them."""

    def __init__(self, values):
        self.values, self.used = values, 0

    def random(self):
        self.used += 1
        return self.values[self.used - 1]


def _behaviour(plan, drafts, prefix):
    """A verdict, if the rule ends with the prefix; else what it does under each continuation."""
    seen = []
    for continuation in _CONTINUATIONS:
        source = Injected([*prefix, *continuation])
        verdict = plan.verify(drafts, source)
        assert source.used >= len(prefix)
        if source.used == len(prefix):
            return verdict
        seen.append((verdict.token, verdict.accepted_index, source.used))
    return tuple(seen)


def decision_law(plan, drafts, V):
    """The law of the token of ``plan.verify(drafts, source)``; asserts on the way that tokens are in range."""
    law = np.zeros(V)

    def explore(prefix, weight, behaviour):
        if not isinstance(behaviour, tuple):
            assert 0 <= behaviour.token < V
            law[behaviour.token] += weight
            return
        known = {}

        def at(u):
            if u not in known:
                known[u] = _behaviour(plan, drafts, (*prefix, u))
            return known[u]

        start = 0.0
        for left, right in pairwise((0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, LAST)):
            while at(left) != at(right):
                a, b = left, right  # the first change after `left`
                while b - a > _PRECISION:
                    middle = 0.5 * (a + b)
                    a, b = (middle, b) if at(middle) == at(left) else (a, middle)
                explore((*prefix, left), weight * (b - start), at(left))
                start = left = b
        explore((*prefix, LAST), weight * (1.0 - start), at(LAST))

    explore((), 1.0, _behaviour(plan, drafts, ()))
    return law
