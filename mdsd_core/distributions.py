"""Probability vectors: from logits to probabilities; the checks that all share, and how far from 1 a sum may be."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Largest ``|sum - 1|`` of a row that is taken as rounding, by the type it was computed in: from fine to coarse.
SUM_TOLERANCE = {"float64": 1e-9, "float32": 1e-5, "float16": 5e-4, "bfloat16": 4e-3}

#: A temperature below this is greedy. Far below any in use; at or above it ``exp(difference / T)`` is harmless, as
#: differences are taken from the largest logit and are never positive.
GREEDY_BELOW = 1e-5


def _as_array(x: Any, name: str) -> NDArray[Any]:
    if hasattr(x, "detach"):  # a torch tensor, recognised without importing torch here
        x = x.detach().cpu()
        x = x.float() if str(x.dtype) == "torch.bfloat16" else x
    array = np.asarray(x)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    return array


def _first(mask: NDArray[np.bool_]) -> list[int]:
    """The indices of the first True."""
    return np.argwhere(mask)[0].tolist()


@dataclass(frozen=True)
class SamplingParams:
    """How one model's logits become the distribution that tokens are drawn from.

    The target has one and the draft has one; they may differ (the output then still has the target's law).

    Parameters
    ----------
    temperature : float
        Logits are divided by it. 0, and anything below :data:`GREEDY_BELOW`, means greedy: all mass on the largest
        logit, the lowest id among equals, whatever the filters; no seed changes the text then.
    top_k : int or None
        Keep the k largest logits, and every logit equal to the k-th; None keeps all.
    top_p : float in (0, 1]
        Keep the fewest most probable tokens that together have at least this probability; 1 keeps all.
    min_p : float in [0, 1]
        Keep tokens with at least this share of the largest probability; 0 keeps all.

    Raises
    ------
    TypeError, ValueError
        If a parameter is no number or out of its range.

    Examples
    --------
    >>> SamplingParams(temperature=0.7, top_p=0.9)
    SamplingParams(temperature=0.7, top_k=None, top_p=0.9, min_p=0.0)
    >>> SamplingParams(temperature=-1)
    Traceback (most recent call last):
        ...
    ValueError: temperature must be finite and >= 0, got -1
    >>> SamplingParams(temperature=1e-8).greedy
    True
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        for name in ("temperature", "top_p", "min_p"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
                raise TypeError(f"{name} must be a real number, got {value!r}")
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"temperature must be finite and >= 0, got {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must lie in (0, 1], got {self.top_p}")
        if not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p must lie in [0, 1], got {self.min_p}")
        if self.top_k is not None:
            check_count("top_k (None keeps all tokens)", self.top_k)

    @property
    def greedy(self) -> bool:
        """True if all mass goes to the largest logit."""
        return self.temperature < GREEDY_BELOW


def probabilities(
    logits: ArrayLike,
    params: SamplingParams | None = None,
    *,
    vocab_size: int | None = None,
    name: str = "logits",
) -> NDArray[np.float64]:
    """Turn logits into the distribution that `params` asks for.

    Temperature, top-k, top-p and min-p are applied in this order, as ``transformers`` does it, and the result agrees
    with its warpers to 1e-12 in float64. All arithmetic is float64, whatever the precision of the logits.

    Parameters
    ----------
    logits : array_like or torch tensor, shape (..., W)
        Real numbers; ``-inf`` marks a token that must not be drawn. Never changed.
    params : SamplingParams, optional
        Default: temperature 1, no filters.
    vocab_size : int, optional
        The number V <= W of ids that exist. Logits past it belong to padding rows of the embedding: they take no part
        and have no place in the result, so that two models padded to different widths give one vocabulary. Default: W.
    name : str
        What to call the logits in an error message.

    Returns
    -------
    ndarray, float64, shape (..., V)
        Each row sums to 1 up to rounding.

    Raises
    ------
    TypeError
        If `logits` does not hold real numbers.
    ValueError
        If the shape is wrong, an entry is NaN or ``+inf``, or a row has no finite entry; the message says where.

    Notes
    -----
    Ties. Greedy: the lowest id among the largest. Top-k: all tokens equal to the k-th stay (as in ``transformers``).
    Top-p: among equals at the boundary the lowest ids stay (``transformers`` leaves that to its sort; the number
    that stays is the same). Cost: O(W) a row, and O(W log W) with top-p.

    Examples
    --------
    >>> probabilities([2.0, 1.0, 1.0], SamplingParams(temperature=0))
    array([1., 0., 0.])
    >>> probabilities(np.log([0.5, 0.3, 0.2]), SamplingParams(top_k=2)).round(3)
    array([0.625, 0.375, 0.   ])
    >>> probabilities([[0.0, 0.0, 9.0]], vocab_size=2)
    array([[0.5, 0.5]])
    >>> probabilities([0.0, float("nan")])
    Traceback (most recent call last):
        ...
    ValueError: logits must be finite or -inf, got logits[1] = nan
    """
    params = SamplingParams() if params is None else params
    array = _as_array(logits, name)
    if array.ndim == 0 or array.size == 0:
        raise ValueError(f"{name} must have shape (..., V) and not be empty, got shape {array.shape}")
    if vocab_size is not None:
        if not 1 <= vocab_size <= array.shape[-1]:
            raise ValueError(
                f"vocab_size must lie in [1, {array.shape[-1]}] for {name} of this width, got {vocab_size}"
            )
        array = array[..., :vocab_size]
    array = array.astype(np.float64)  # a copy: what follows works in place
    bad = np.isnan(array) | (array == np.inf)
    if bad.any():
        where = _first(bad)
        raise ValueError(f"{name} must be finite or -inf, got {name}{where} = {array[tuple(where)]}")
    largest = array.max(axis=-1, keepdims=True)
    if (largest == -np.inf).any():
        row = _first((largest == -np.inf)[..., 0]) if array.ndim > 1 else []
        raise ValueError(
            f"{name} must have a finite entry in every row, got only -inf{f' in row {row}' if row else ''}"
        )

    rows = array.reshape(-1, array.shape[-1])
    if params.greedy:
        result = np.zeros_like(rows)
        result[np.arange(len(rows)), rows.argmax(axis=-1)] = 1.0  # argmax: the first, so the lowest id among equals
        return result.reshape(array.shape)
    if params.top_k is not None and params.top_k < rows.shape[-1]:
        kth = np.partition(rows, -params.top_k, axis=-1)[:, -params.top_k, None]
        rows[rows < kth] = -np.inf
    with np.errstate(over="ignore", under="ignore"):  # exp(-inf) = 0 is what a vanishing probability should be
        rows -= largest.reshape(-1, 1)
        rows /= params.temperature
        np.exp(rows, out=rows)
    rows /= rows.sum(axis=-1, keepdims=True)
    if params.top_p < 1:
        _keep_nucleus(rows, params.top_p)
    if params.min_p > 0:
        rows[rows < params.min_p * rows.max(axis=-1, keepdims=True)] = 0.0
        rows /= rows.sum(axis=-1, keepdims=True)
    return rows.reshape(array.shape)


def _keep_nucleus(rows: NDArray[np.float64], top_p: float) -> None:
    """Zero all but the top-p tokens of each row and renormalise, in place.

    Like ``transformers`` it drops the least probable tokens whose running sum, from below, is at most ``1 - top_p``.
    """
    for row in rows:
        ascending = np.argsort(-row, kind="stable")[::-1]  # stable on the negative: the lowest id comes last
        dropped = int(np.searchsorted(np.cumsum(row[ascending]), 1 - top_p, side="right"))
        row[ascending[: min(dropped, row.size - 1)]] = 0.0
        row /= row.sum()


def draw_tokens(p: NDArray[np.float64], u: ArrayLike) -> NDArray[np.int64]:
    """The tokens that uniforms stand for: the inverse of the distribution function of p.

    A token with ``p = 0`` is never drawn, whatever the rounding of the running sum.

    Parameters
    ----------
    p : ndarray of float64, shape (V,)
        Probabilities, on any scale: finite, >= 0, not all 0.
    u : array_like
        Numbers in [0, 1), of any shape.

    Returns
    -------
    ndarray of int64
        A token for each number; O(V + size log V).

    Examples
    --------
    >>> draw_tokens(np.array([0.0, 0.5, 0.5, 0.0]), [0.0, 0.5, 1 - 2**-53])
    array([1, 2, 2])
    """
    support = np.flatnonzero(p)
    running = np.cumsum(p[support])
    place = np.searchsorted(running, np.multiply(u, running[-1]), side="right")
    return support[np.minimum(place, support.size - 1)]  # a point among subnormal numbers may round to the end


def draw_token(p: NDArray[np.float64], u: float) -> int:
    """The token that one uniform stands for; see :func:`draw_tokens`.

    >>> draw_token(np.array([0.0, 0.5, 0.5, 0.0]), 0.25)
    1
    """
    return int(draw_tokens(p, u))


def _computed_in(row: NDArray[np.float64]) -> str:
    """The coarsest type of :data:`SUM_TOLERANCE` that holds all the values exactly.

    It is read off the values, so that a list, a file or a wider array of them is the row that it was made from.
    """
    with np.errstate(over="ignore"):  # infinity, which equals no value
        single = row.astype(np.float32)
    if not np.array_equal(single, row):
        return "float64"
    bits = single.view(np.uint32)
    if not (bits & 0xFFFF).any():
        return "bfloat16"
    steps = row * 2.0**24  # float16: 11 binary digits, multiples of 2^-24 (a cast to it takes milliseconds)
    if not (bits & 0x1FFF).any() and np.array_equal(np.rint(steps), steps):
        return "float16"
    return "float32"


def sum_correction(x: ArrayLike, name: str = "p") -> float:
    """How far the sums of the rows of `x` are from 1, at most: what dividing by them corrects.

    Parameters
    ----------
    x, name
        As for :func:`check_distribution`, with any number of axes.

    Returns
    -------
    float
        ``max |sum - 1|``; about 1e-16 for rows of float64.

    Examples
    --------
    >>> sum_correction([0.5, 0.498046875])
    0.001953125
    """
    return float(np.abs(_as_array(x, name).astype(np.float64).sum(axis=-1) - 1.0).max())


def check_count(name: str, value: Any, minimum: int = 1) -> int:
    """Check a number of things: an integer, at least `minimum`.

    >>> check_count("n", 0)
    Traceback (most recent call last):
        ...
    ValueError: n must be an integer >= 1, got 0
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer >= {minimum}, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value}")
    return int(value)


def check_distribution(x: ArrayLike, name: str = "p", *, ndim: int = 1) -> NDArray[np.float64]:
    """Check one distribution (or a stack of them) and return it as float64.

    Parameters
    ----------
    x : array_like, shape (V,) or (..., V) with `ndim` axes
        Probabilities along the last axis: finite, >= 0, with a sum of 1 up to :data:`SUM_TOLERANCE`. The tolerance of a
        row is that of the coarsest type which holds its values exactly: a softmax in float32 or bfloat16 passes as it
        is, as a list, and as float64.
    name : str
        What to call the argument in an error message.
    ndim : int
        The number of axes wanted.

    Returns
    -------
    ndarray, float64, C-contiguous
        `x` itself where it already is such an array with sum 1 to 1e-14 (do not write into it), else a copy, its rows
        divided by their sums; :func:`sum_correction` says by how much that changes them.

    Raises
    ------
    TypeError
        If `x` does not hold real floating-point numbers.
    ValueError
        If the shape, an entry or a sum is wrong; the message names `name`, the place and the value.

    Examples
    --------
    >>> check_distribution([0.25, 0.75])
    array([0.25, 0.75])
    >>> check_distribution(np.float32([0.1, 0.2, 0.7]).tolist()).sum().item()
    1.0
    >>> check_distribution([0.5, 0.6], "q")
    Traceback (most recent call last):
        ...
    ValueError: q must sum to 1 (tolerance 1e-09, as its values fit float64), got 1.1
    """
    array = _as_array(x, name)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axis/axes, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    result = np.ascontiguousarray(array, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        total = result.sum(axis=-1)
        fine = np.isfinite(total).all() and result.min() >= 0  # NaN and infinity show in the sum
    if not fine:
        bad = ~np.isfinite(result) | (result < 0)
        if bad.any():
            where = _first(bad)
            raise ValueError(f"{name} must be finite and >= 0, got {name}{where} = {result[tuple(where)]}")
    off = np.abs(total - 1.0)
    for row in np.argwhere(off > SUM_TOLERANCE["float64"]):
        kind = _computed_in(result[tuple(row)])
        if off[tuple(row)] > SUM_TOLERANCE[kind]:
            place = f" in row {row.tolist()}" if off.ndim else ""
            raise ValueError(
                f"{name} must sum to 1 (tolerance {SUM_TOLERANCE[kind]}, as its values fit {kind}){place}, "
                f"got {float(total[tuple(row)]):.9g}"
            )
    if (off > 1e-14).any():
        result = result / total[..., None]
    return result


def check_pair(p: ArrayLike, q: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Check a target distribution `p` and a draft distribution `q` over the same vocabulary.

    >>> check_pair([1.0, 0.0], [0.5, 0.5])
    (array([1., 0.]), array([0.5, 0.5]))
    >>> check_pair([1.0], [0.5, 0.5])
    Traceback (most recent call last):
        ...
    ValueError: p and q must have one vocabulary, got sizes 1 and 2
    """
    p, q = check_distribution(p, "p"), check_distribution(q, "q")
    if p.size != q.size:
        raise ValueError(f"p and q must have one vocabulary, got sizes {p.size} and {q.size}")
    return p, q
