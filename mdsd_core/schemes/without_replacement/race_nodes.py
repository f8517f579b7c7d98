"""Nodes of the race integral, with an error bound that holds for every draft distribution.

The steps of Q are integrals ``int g(t) dt`` over the time t. The trapezoid rule in ``log t`` is used, on nodes
``t_j = t_0 e^{jh}``. Its error has three parts, each *relative to the step of Q itself*:

* the step h: at most ``2 cos(theta)^{-(n+1)} / (e^{2 pi theta / h} - 1)`` for any theta in (0, pi/2);
* the early end: at most ``t_0^{n+1} / (n+1)!``, with the total rate as unit;
* the late end: the chance that arrival n + 1 is still to come, whose i-th gap has at least the rate
  ``r_i = 1 - (the i largest q)``, by Chernoff's bound.

The proofs are in the book, in the chapter on the race (the proposition on quadrature).
"""

from functools import lru_cache
from math import ceil, lgamma, log

import numpy as np
from numpy.typing import NDArray

#: Default relative error of the quadrature for every step of Q.
ERROR = 1e-13


@lru_cache(maxsize=256)
def log_step(n: int, error: float) -> float:
    """The largest step h in log t whose bound stays below `error`.

    >>> bool(0.2 < log_step(4, 1e-13) < 0.25)
    True
    """
    theta = np.linspace(0.5, 1.5, 2001)
    return float((2 * np.pi * theta / np.log1p(2 * np.cos(theta) ** -(n + 1.0) / error)).max())


def race_nodes(
    largest: NDArray[np.float64], rest: float, error: float = ERROR
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights for the race of n drafts.

    Parameters
    ----------
    largest : ndarray, shape (n,)
        The n largest rates, in any order.
    rest : float
        The sum of all other rates, > 0.
    error : float
        Bound on the relative error of every step of Q: a third each for discretisation and the two ends.

    Returns
    -------
    t, dt : ndarray, shape (J,)
        Ascending nodes and their weights; J is a multiple of 4.
    """
    error /= 3.0
    first, last = _log_ends(largest, rest, error)
    h = log_step(largest.size, error)
    count = -(-(int((last - first) / h) + 2) // 4) * 4
    t = np.exp(first + h * np.arange(count))
    return t, t * h


def octave_nodes(
    largest: NDArray[np.float64], rest: float, error: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Nodes and weights as :func:`race_nodes` gives them, with a step that divides an octave.

    Returns
    -------
    t, dt : ndarray, shape (J,)
        Ascending nodes and their weights; J is a multiple of 8.
    K : int
        Nodes per octave: ``t[j + K] = 2 t[j]``, so that exponentials can be squared from node to node.
    """
    first, last = _log_ends(largest, rest, error / 6.0)
    K = ceil(log(2.0) / log_step(largest.size, error * (2.0 / 3.0)))
    h = log(2.0) / K
    count = -(-(int((last - first) / h) + 2) // 8) * 8
    t = np.exp(first + h * np.arange(K))
    t = np.ldexp(t[np.arange(count) % K], np.arange(count) // K)
    return t, t * h, K


def _log_ends(largest: NDArray[np.float64], rest: float, error: float) -> tuple[float, float]:
    """Logarithms of the first and the last time that are needed, for a relative error of `error` at each end."""
    n = largest.size
    left = rest + np.concatenate((np.cumsum(np.sort(largest))[::-1], [0.0]))  # r_0 .. r_n
    total = left[0]
    first = log(error) / (n + 1) + lgamma(n + 2) / (n + 1) - log(total)
    # the latest time as a minimum over exponents (1 - d) r_n
    d = np.geomspace(0.01, 0.9, 60)[:, None]
    exponent = 1.0 - d  # in units of r_n
    ratio = rest / left
    late = (-np.log1p(-exponent * ratio).sum(axis=1) - log(error)) / exponent[:, 0]
    return first, log(float(late.min())) - log(rest)
