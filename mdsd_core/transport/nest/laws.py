"""The laws of drafts as the kernels know them: nodes, weights, and the tokens in their units."""

import numpy as np
from numpy.typing import NDArray

from mdsd_core._jit import kernel
from mdsd_core.schemes.without_replacement.race_nodes import octave_nodes
from mdsd_core.transport.nest.series import DEGREE
from mdsd_core.transport.nest.states import Floats, Law, Tokens

#: Bound on the relative error of the quadrature for every set of drafts.
ERROR = 1e-12

#: A token whose weight relative to what competes with it is below this is never drawn, for all that doubles can tell.
_NEVER = 1e-20

#: The weight of a group, for the race times n and in units of the total outside the n largest tokens. At this size the
#: terms of the series that are cut off change the law by less than 1e-13 in all (measured: 1e-14 at n = 4).
_GROUP = 8e-3

#: The largest weight in units of the total outside the n largest. It is drawn first, whatever it is.
_LARGEST = 1e200


def drawable(w: Floats, n: int) -> NDArray[np.bool_]:
    """The tokens that n different drafts can hold with a probability above rounding.

    Both laws draw a token outside the n largest with a probability of at most n times its weight over that of the n-th
    largest, and over the total of all tokens outside.

    >>> drawable(np.array([1.0, 1e-30, 0.5, 1e-10]), 2)
    array([ True, False,  True,  True])
    """
    if w.size <= n:
        return np.ones(w.size, dtype=bool)
    parts = np.partition(w, w.size - n)
    return w > _NEVER * max(parts[w.size - n], parts[: w.size - n].sum())


def race(q: Floats, n: int, error: float = ERROR) -> tuple[Law, Tokens]:
    """Drafts drawn one after the other without replacement: the first n arrivals of an exponential race.

    Parameters
    ----------
    q : ndarray, shape (m,)
        Weights, in rank order, > 0, all :func:`drawable`; m > n.
    n : int
        The number of drafts, >= 2.
    error : float
        Bound on the relative error of the quadrature for the probability of every set of drafts.
    """
    parts = np.partition(q, q.size - n)
    q = np.minimum(q / parts[: q.size - n].sum(), _LARGEST)  # the total outside the n largest is the unit of rates
    time, weight, doubling = octave_nodes(np.sort(q)[q.size - n :], 1.0, error)
    unit = _GROUP / n
    powers = (unit * time) ** np.arange(DEGREE + 1)[:, None]
    law = Law(n, 1.0, 0.0, doubling, time, weight, powers, DEGREE, DEGREE)
    return law, Tokens(q / unit, q, np.zeros(q.size), -q)


def pairs(q: Floats) -> tuple[Law, Tokens]:
    """The same law for two drafts in closed form: ``P({x, y}) = q_x q_y / Q (1 / (Q - q_x) + 1 / (Q - q_y))``.

    Q is the sum of q. There is one node, a token that has not arrived has no rate, and one that has brings the eps-part
    ``1 / (Q - q_x)``. Shapes as for :func:`race`.
    """
    top = int(np.argmax(q))
    rest = float(q[:top].sum() + q[top + 1 :].sum())
    q = np.minimum(q / rest, _LARGEST)  # the others have a total of 1
    bonus = 1.0 / (1.0 + (q[top] - q))
    survival = np.log1p(q)
    # what exp(-survival) takes away, times the factor 1 / Q, and Q = 1 + q_top
    weight = np.exp(np.array([survival[:top].sum() + survival[top + 1 :].sum()]))
    law = Law(2, 0.0, 0.0, 1, np.ones(1), weight, _GROUP ** np.arange(3.0)[:, None], 2, 0)
    return law, Tokens(q / _GROUP, survival, bonus, bonus)


def conditioned(w: Floats, n: int) -> tuple[Law, Tokens]:
    """Independent drafts, n of them, given that they all differ: ``P(S) ~ prod_{x in S} w_x``.

    One node without rates: the states are those of independent inclusions, token x with the odds ``s w_x``, the scale s
    such that about n are expected. Given that n were included, the scale does not matter. Shapes as for :func:`race`.
    """
    w = w / w.max()
    following = float(np.partition(w, w.size - n - 1)[w.size - n - 1])
    odds = w * _scale(w, n, n / w.sum(), n / following)
    law = Law(n, 0.0, 1.0, 1, np.ones(1), np.ones(1), _GROUP ** np.arange(n + 1.0)[:, None], n, 0)
    nothing = np.zeros(w.size)
    return law, Tokens(odds / _GROUP, np.log1p(odds), nothing, nothing)


@kernel
def _scale(w, n, least, most):
    """A scale s between the two with ``sum s w / (1 + s w) = n``, to a factor of 2."""
    while most > 2.0 * least:
        middle = np.sqrt(least) * np.sqrt(most)
        expected = 0.0
        for x in range(w.size):
            odds = middle * w[x]
            expected += odds / (1.0 + odds)
        if expected < n:
            least = middle
        else:
            most = middle
    return least
