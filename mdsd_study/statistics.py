"""Intervals, tests and Holm's correction, with the prompt as the unit: positions of one text are not independent.

Everything here resamples, or flips the signs of, whole prompts. Seeds are explicit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtrit

#: Fewer prompts than this are too few for an interval that means what it says; the study then prints no mark.
ENOUGH_PROMPTS = 12


@dataclass(frozen=True)
class Interval:
    """A mean with its bootstrap interval over prompts.

    Attributes
    ----------
    mean : float
        Over all positions.
    low, high : float
        The ends of the interval; they may be NaN if there is one prompt only.
    level : float
        The coverage that it aims at.
    prompts, positions : int
        How much it rests on.

    Examples
    --------
    >>> Interval(0.5, 0.4, 0.6, level=0.95, prompts=4, positions=100).enough
    False
    """

    mean: float
    low: float
    high: float
    level: float
    prompts: int
    positions: int

    @property
    def enough(self) -> bool:
        """True if it rests on :data:`ENOUGH_PROMPTS` prompts."""
        return self.prompts >= ENOUGH_PROMPTS


def _by_prompt(values: ArrayLike, prompts: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.int64], list[str]]:
    """Sum and number of the values of each prompt, prompts in alphabetical order (so the order of the rows is free)."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0 or array.size != len(prompts):
        raise ValueError(
            f"values must be as many as prompts and at least one, got shapes {array.shape} and {len(prompts)}"
        )
    if not np.isfinite(array).all():
        where = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"values must be finite, got values[{where}] = {array[where]}")
    names, index = np.unique(np.asarray(prompts, dtype=str), return_inverse=True)
    sums = np.array([math.fsum(array[index == i]) for i in range(len(names))])
    return sums, np.bincount(index), names.tolist()


def bootstrap_mean(
    values: ArrayLike, prompts: Sequence[str], *, seed: int, level: float = 0.95, resamples: int = 4000
) -> Interval:
    """The mean over positions, with an interval from resampling prompts.

    Parameters
    ----------
    values : array_like, shape (N,)
        One figure a position.
    prompts : sequence of str, length N
        Which prompt each position belongs to.
    seed : int
        Of the resampling.
    level : float, in (0, 1)
        Coverage aimed at.
    resamples : int
        Number of bootstrap samples.

    Returns
    -------
    Interval
        The expanded percentile interval: the percentiles are those that make it as wide as a t interval would be, since
        the plain percentile interval is too narrow for a dozen prompts. With one prompt both ends are NaN.

    Notes
    -----
    A bootstrap sample draws as many prompts as there are, with replacement, and takes all their positions; its figure
    is the sum over the positions divided by their number. The tail probability is ``Phi(-sqrt(k/(k-1)) t)``, k prompts,
    t the quantile of Student's law with k - 1 degrees of freedom.

    References
    ----------
    Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69 (2015), section 5.4.

    Examples
    --------
    >>> found = bootstrap_mean([0.5, 0.7, 0.6, 0.8], ["a", "a", "b", "b"], seed=0)
    >>> round(found.mean, 12), found.prompts, found.low < 0.65 < found.high
    (0.65, 2, True)
    """
    sums, counts, names = _by_prompt(values, prompts)
    return _interval([(sums, counts.astype(np.float64))], names, int(counts.sum()), seed, level, resamples)


def bootstrap_difference(
    a: ArrayLike, b: ArrayLike, prompts: Sequence[str], *, seed: int, level: float = 0.95, resamples: int = 4000
) -> Interval:
    """The mean of ``a - b`` at the same positions, with its interval: paired, so what the two share cancels.

    >>> found = bootstrap_difference([0.5, 0.9], [0.4, 0.8], ["a", "b"], seed=0)
    >>> round(found.low, 12), round(found.high, 12)
    (0.1, 0.1)
    """
    return bootstrap_mean(_differences(a, b), prompts, seed=seed, level=level, resamples=resamples)


def _differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"a and b must have one shape, got {first.shape} and {second.shape}")
    return first - second


def paired_p_value(a: ArrayLike, b: ArrayLike, prompts: Sequence[str], *, seed: int, resamples: int = 10_000) -> float:
    """Two-sided p-value of "a and b are exchangeable within each prompt", by flipping signs of whole prompts.

    Parameters
    ----------
    a, b : array_like, shape (N,)
        Figures at the same positions.
    prompts : sequence of str, length N
        Which prompt each position belongs to.
    seed : int
        Of the flips, where not all are tried.
    resamples : int
        Up to 13 prompts all sign patterns are tried, and the value is exact; beyond, this many random ones, and the
        value is ``(1 + hits)/(1 + resamples)``, which keeps its level.

    Examples
    --------
    >>> paired_p_value([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], ["a", "b", "c"], seed=0)
    0.25
    """
    sums, _, names = _by_prompt(_differences(a, b), prompts)
    k = len(names)
    seen = abs(math.fsum(sums)) * (1 - 1e-12)  # what equals it up to rounding counts as a hit
    if k <= 13:
        signs = 1.0 - 2.0 * ((np.arange(2**k)[:, None] >> np.arange(k)) & 1)
        return float(np.mean(np.abs(signs @ sums) >= seen))
    flips = np.random.default_rng(seed).integers(0, 2, size=(resamples, k))
    hits = int(np.count_nonzero(np.abs((1.0 - 2.0 * flips) @ sums) >= seen))
    return (1 + hits) / (1 + resamples)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Holm's adjusted p-values: reject where they are <= alpha, and any false rejection has probability <= alpha.

    Parameters
    ----------
    p_values : array_like, shape (m,)
        In [0, 1].

    References
    ----------
    Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p_values must be one list of numbers in [0, 1], got {p.tolist()}")
    order = np.argsort(p, kind="stable")
    scaled = p[order] * (p.size - np.arange(p.size))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def bootstrap_ratio(
    numerator: ArrayLike,
    denominator: ArrayLike,
    prompts: Sequence[str],
    *,
    seed: int,
    level: float = 0.95,
    resamples: int = 4000,
) -> Interval:
    """The ratio of two sums over prompts, with an interval from resampling prompts.

    For figures such as accepted drafts over rounds, or tokens over seconds, where each prompt gives a part of both.

    Parameters
    ----------
    numerator, denominator : array_like, shape (N,)
        What each prompt contributes; all denominators > 0. A prompt may come more than once: its parts are added.
    prompts : sequence of str, length N
        Which prompt each entry belongs to.
    seed, level, resamples
        As for :func:`bootstrap_mean`, whose expanded percentiles are used.

    Returns
    -------
    Interval
        ``mean`` is the ratio, ``positions`` the number of entries.

    Examples
    --------
    >>> found = bootstrap_ratio([2.0, 6.0, 4.0], [1.0, 2.0, 1.0], ["a", "b", "c"], seed=0)
    >>> found.mean, found.prompts, found.low < 3.0 < found.high
    (3.0, 3, True)
    """
    sums, names, size = _sums(numerator, denominator, prompts)
    return _interval([sums], names, size, seed, level, resamples)


def bootstrap_ratio_difference(
    a: tuple[ArrayLike, ArrayLike],
    b: tuple[ArrayLike, ArrayLike],
    prompts: Sequence[str],
    *,
    seed: int,
    level: float = 0.95,
    resamples: int = 4000,
) -> Interval:
    """The difference of two ratios of sums over the same prompts: paired, so what the two share cancels.

    Parameters
    ----------
    a, b : pair of array_like, each shape (N,)
        Numerator and denominator, as for :func:`bootstrap_ratio`.
    prompts, seed, level, resamples
        As for :func:`bootstrap_ratio`.

    Examples
    --------
    >>> found = bootstrap_ratio_difference(([2.0, 4.0], [1.0, 2.0]), ([1.0, 2.0], [1.0, 2.0]), ["a", "b"], seed=0)
    >>> found.low, found.mean, found.high
    (1.0, 1.0, 1.0)
    """
    (first, names, size), (second, _, _) = _sums(*a, prompts), _sums(*b, prompts)
    return _interval([first, second], names, size, seed, level, resamples)


#: The numerator and the denominator of a ratio, each shape [prompts].
_Sums = tuple[NDArray[np.float64], NDArray[np.float64]]


def _sums(numerator: ArrayLike, denominator: ArrayLike, prompts: Sequence[str]) -> tuple[_Sums, list[str], int]:
    """What each prompt contributes to a ratio; the prompts; the number of entries."""
    top, counts, names = _by_prompt(numerator, prompts)
    bottom, _, _ = _by_prompt(denominator, prompts)
    if not (bottom > 0).all():
        raise ValueError(f"denominator must be > 0 for every prompt, got {float(bottom.min())}")
    return (top, bottom), names, int(counts.sum())


def _interval(
    ratios: Sequence[_Sums], names: Sequence[str], size: int, seed: int, level: float, resamples: int
) -> Interval:
    """A ratio, or the first minus the second of two, with the expanded percentiles over resampled prompts."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}")
    if resamples < 100:
        raise ValueError(f"resamples must be at least 100, got {resamples}")
    signed, k = list(zip((1.0, -1.0), ratios, strict=False)), len(names)
    value = sum(sign * math.fsum(top) / math.fsum(bottom) for sign, (top, bottom) in signed)
    if k == 1:
        return Interval(value, math.nan, math.nan, level, 1, size)
    # The draws of scipy.stats.bootstrap with paired=True, whose import would take longer than a whole comparison.
    chosen = np.random.default_rng(seed).integers(0, k, size=(resamples, k))
    drawn = np.zeros(resamples)
    for sign, (top, bottom) in signed:
        drawn += sign * top[chosen].sum(axis=1) / bottom[chosen].sum(axis=1)
    tail = float(ndtr(-math.sqrt(k / (k - 1)) * stdtrit(k - 1, (1 + level) / 2)))
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(value, min(float(low), value), max(float(high), value), level, k, size)
