"""Probability vectors: checks that every public function shares."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Largest ``|sum - 1|`` that is taken as rounding, by the precision the probabilities arrived in.
SUM_TOLERANCE = {"float64": 1e-9, "float32": 1e-5, "float16": 5e-4}


def _as_array(x: Any) -> NDArray[Any]:
    if hasattr(x, "detach"):  # a torch tensor, recognised without importing torch here
        x = x.detach().cpu()
        x = x.float() if str(x.dtype) == "torch.bfloat16" else x
    return np.asarray(x)


def check_distribution(x: ArrayLike, name: str = "p", *, ndim: int = 1) -> NDArray[np.float64]:
    """Check one distribution (or a stack of them) and return it as float64.

    Parameters
    ----------
    x : array_like, shape (V,) or (..., V) with `ndim` axes
        Probabilities along the last axis: finite, >= 0, with a sum of 1 up to :data:`SUM_TOLERANCE` of its dtype.
    name : str
        What to call the argument in an error message.
    ndim : int
        The number of axes wanted.

    Returns
    -------
    ndarray, float64, C-contiguous
        `x` itself where it already is such an array with sum 1 to 1e-14 (do not write into it), else a normalised copy.

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
    >>> check_distribution([0.5, 0.6], "q")
    Traceback (most recent call last):
        ...
    ValueError: q must sum to 1 (tolerance 1e-09 for float64), got 1.1
    """
    array = _as_array(x)
    if array.dtype == object or array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    kind = array.dtype.name if array.dtype.name in SUM_TOLERANCE else "float64"
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axis/axes, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    result = np.ascontiguousarray(array, dtype=np.float64)
    bad = ~np.isfinite(result) | (result < 0)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name} must be finite and >= 0, got {name}{list(where)} = {result[where]}")
    total = result.sum(axis=-1)
    off = np.abs(total - 1.0)
    if (off > SUM_TOLERANCE[kind]).any():
        row = np.unravel_index(int(np.argmax(off)), off.shape) if off.ndim else ()
        place = f" in row {[int(i) for i in row]}" if off.ndim else ""
        raise ValueError(
            f"{name} must sum to 1 (tolerance {SUM_TOLERANCE[kind]} for {kind}){place}, got {float(total[row]):.9g}"
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
