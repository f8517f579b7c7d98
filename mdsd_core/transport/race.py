"""Q of drafts drawn sequentially without replacement, as an exponential race: token x arrives at a time Exp(q_x)."""

from math import factorial, log

import numpy as np
from numpy.typing import NDArray


def race_steps(w: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The steps of Q over the prefixes of an order, for n drafts drawn sequentially without replacement.

    Parameters
    ----------
    w : ndarray, shape (m,)
        Weights in the order of the prefixes, >= 0, not necessarily normalised.
    n : int
        The number of drafts; all of the support is drawn if it is smaller.

    Returns
    -------
    ndarray, shape (m,)
        ``dQ[k] = Q[k + 1] - Q[k]``, non-negative.

    Examples
    --------
    >>> race_steps(np.array([0.25, 0.25, 0.5]), 2).round(12)
    array([0.        , 0.16666667, 0.83333333])
    """
    steps = np.zeros(w.size)
    support = np.flatnonzero(w)
    n = min(n, support.size)
    if n == 0:
        return steps
    if n == support.size:  # everything is drawn: the last token completes the set
        steps[support[-1]] = 1.0
        return steps
    q = w[support] / w.sum()
    rest = float(np.sort(q)[: q.size - n].sum())
    if rest < 1e-200:  # another unit of time, or the last arrivals would come after the largest double
        q, rest = q * 2.0**400, rest * 2.0**400
    first = (1e-16 * factorial(n) * (n + 1)) ** (1.0 / (n + 1)) / q.sum()
    count = int(np.ceil(4 * (log((40.0 + 3 * n) / rest, 2) - log(first, 2)))) + 1
    t = np.exp2(log(first, 2) + np.arange(count) / 4)
    dt = t * (log(2.0) / 4)
    # P[m]: m of the prefix have arrived by t; D[m]: the same times the rate of those that have not
    P, D = np.zeros((n, count)), np.zeros((n, count))
    P[0] = 1.0
    after = np.concatenate((np.cumsum(q[:0:-1])[::-1], [0.0]))
    for k, x in enumerate(q):
        a, b, c = -np.expm1(-x * t), np.exp(-x * t), after[k]
        steps[support[k]] = (dt * a * np.exp(-c * t) * (D[n - 1] + c * P[n - 1])).sum()
        D = (D + x * P) * b + np.vstack((np.zeros(count), D[:-1])) * a
        P = P * b + np.vstack((np.zeros(count), P[:-1])) * a
    return steps
