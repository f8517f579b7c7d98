"""Q of drafts drawn one after the other without replacement, as an exponential race.

Give token x an arrival time ``T_x ~ Exp(q_x)``: the first n arrivals are the drafts. ``Q(H)`` is then an integral over
one time, for every prefix H of an order at once. The law is *not* the one of the generating function
``prod (1 + q_x z)``, see :class:`~mdsd_core.schemes.DistinctConditioned`.
"""

import numpy as np
from numpy.typing import NDArray

from mdsd_core._jit import kernel
from mdsd_core._sums import add
from mdsd_core.schemes.without_replacement._race_kernels import walk
from mdsd_core.schemes.without_replacement._race_runs import walk_runs
from mdsd_core.schemes.without_replacement.race_nodes import ERROR, race_nodes

#: Below this many tokens the walk over single tokens is as fast as that over runs.
SMALL = 512


def race_steps(w: NDArray[np.float64], n: int, error: float = ERROR) -> NDArray[np.float64]:
    """The steps of Q over the prefixes of an order, for n drafts drawn sequentially without replacement.

    Parameters
    ----------
    w : ndarray of float64, shape (m,)
        Weights in the order of the prefixes, >= 0, not necessarily normalised.
    n : int
        The number of drafts; all of the support is drawn if it is smaller.
    error : float
        Bound on the *relative* error of every step by quadrature, in [1e-14, 1e-3] (for steps above 1e-250, or products
        of probabilities leave the range of doubles). n <= 2 needs none.

    Returns
    -------
    ndarray, shape (m,)
        ``dQ[k] = Q[k + 1] - Q[k]``, non-negative, with sum 1 up to `error` and rounding (about 1e-13).

    Notes
    -----
    All terms of the integrals are positive, so no step suffers from cancellation, and the bound holds for every w,
    however skewed. Tokens with ``q t`` below 1e-15 even at the last node share one slope: an error of 1e-14 of that
    ``q t`` at most. The number of nodes, J, grows with the logarithm of the rates outside the n largest: about 45 at
    n = 4 for logits at temperature 1, 170 at 0.1. O(m n J) operations; n = 2 in closed form, O(m).

    References
    ----------
    The race is folklore (Gumbel-top-n, Kool et al., arXiv 1903.06059). The integral for all prefixes, its positive form
    and its error bound are new here.

    Examples
    --------
    >>> race_steps(np.array([0.25, 0.25, 0.5]), 2).round(12)
    array([0.        , 0.16666667, 0.83333333])
    """
    support, q, n = _canonical(w, n)
    steps = np.empty(q.size)
    if n == q.size:
        steps[:] = 0.0
        steps[-1:] = 1.0  # everything is drawn: the last token completes the set
    elif n == 1:
        steps = q / q.sum()
    elif n == 2:
        _pair_steps(q, steps)
    else:
        t, dt = _nodes(q, n, error)
        walk(q, n, t, dt, steps)
    if q.size == w.size:
        return steps
    result = np.zeros(w.size)
    result[support] = steps
    return result


def race_runs(
    w: NDArray[np.float64], p: NDArray[np.float64], n: int, error: float = ERROR
) -> tuple[NDArray[np.int64] | None, NDArray[np.float64]]:
    """Steps of Q over runs of tokens, fine enough for the optimal acceptance rate.

    Parameters
    ----------
    w, p : ndarray of float64, shape (m,)
        Weights (> 0) and target probabilities of the tokens, in ascending order of p/w.
    n, error
        As for :func:`race_steps`.

    Returns
    -------
    ends : ndarray of int64, shape (R,), or None
        Run i ends before token ``ends[i]``; ascending, the last is m. None if every token is a run of its own.
    steps : ndarray of float64, shape (R,)
        The step of Q over each run. The maximum over the prefixes of ``Q - (sum of p)`` is attained at the end of a
        run: inside a run, the convexity of Q along the order rules out a larger value.

    Notes
    -----
    O(m) and O(n^2 J) a run, with some hundreds of runs: an absolute error of Q of about 1e-13, at a small part of the
    time of :func:`race_steps`.

    Examples
    --------
    >>> ends, steps = race_runs(np.full(1000, 1e-3), np.full(1000, 1e-3), 3)
    >>> int(ends[-1]), bool(abs(steps.sum() - 1) < 1e-13)
    (1000, True)
    """
    _, q, drawn = _canonical(w, n)
    if w.size < SMALL or drawn <= 2 or drawn == q.size or q.size < w.size:
        return None, race_steps(w, n, error)
    t, dt = _nodes(q, drawn, error)
    ends, steps = np.empty(q.size, dtype=np.int64), np.empty(q.size)
    runs = walk_runs(q, np.ascontiguousarray(p), drawn, t, dt, ends, steps)
    return ends[:runs], steps[:runs]


def _canonical(w: NDArray[np.float64], n: int) -> tuple[NDArray[np.int64] | slice, NDArray[np.float64], int]:
    """The places of the support, the rates there, and the number of tokens really drawn.

    The unit of rates is a power of 2, so nothing is rounded: the largest is about 1, or 2^500 where the smallest are so
    small that the last arrival would come after the largest double.
    """
    count = int(np.count_nonzero(w))
    support = slice(None) if count == w.size else np.flatnonzero(w)
    q, n = w[support], min(n, count)
    if n > 0:
        shift = -int(np.frexp(q.max())[1])
        shift += 500 if float(np.ldexp(q.min(), shift)) < 1e-200 else 0
        if shift != 0:
            q = q * 2.0**shift if abs(shift) < 1000 else np.ldexp(q, shift)
    return support, q, n


def _nodes(q: NDArray[np.float64], n: int, error: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if not 1e-14 <= error <= 1e-3:
        raise ValueError(f"error must be in [1e-14, 1e-3], got {error}")
    parts = np.partition(q, q.size - n)
    return race_nodes(parts[q.size - n :], float(parts[: q.size - n].sum()), error)


@kernel
def _pair_steps(q, steps):
    """Two drafts in closed form: ``P({x, y}) = q_x q_y / (1 - q_x) + q_x q_y / (1 - q_y)``, for any total rate.

    The rate outside the largest token is summed directly; it may be far below the rounding of 1.
    """
    top = np.argmax(q)
    rest, lost = 0.0, 0.0
    for k in range(q.size):
        if k != top:
            rest, lost = add(rest, lost, q[k])
    rest += lost
    total = rest + q[top]
    # over the prefix: mass is the sum of q; odds that of q / (1 - q), without the top token
    mass, mass_lost, odds, odds_lost, seen = 0.0, 0.0, 0.0, 0.0, False
    for k in range(q.size):
        x = q[k]
        if k == top:
            steps[k] = (x / total) * (odds + odds_lost + (mass + mass_lost) / rest)
            seen = True
        else:
            own = x / (total - x)
            steps[k] = (x / total) * (odds + odds_lost) + own * ((mass + mass_lost) / total)
            if seen:
                steps[k] += (x / rest) * (q[top] / total)
            odds, odds_lost = add(odds, odds_lost, own)
        mass, mass_lost = add(mass, mass_lost, x)
