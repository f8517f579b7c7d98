"""The order of all of section "optimal transport": tokens by the ratio p/w, ascending."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdsd_core._jit import kernel

#: Moves a token (on average) before the repair of nearly equal ratios gives way to a full sort.
_PATIENCE = 8


class RatioOrder(NamedTuple):
    """Tokens of positive weight in ascending order of p/w, lowest id first among equals, with their p and w."""

    tokens: NDArray[np.int64]
    p: NDArray[np.float64]
    w: NDArray[np.float64]


def ratio_order(p: NDArray[np.float64], w: NDArray[np.float64]) -> RatioOrder:
    """Sort the tokens with ``w > 0`` by ``p/w``.

    Parameters
    ----------
    p, w : ndarray of float64, shape [V]
        Target probabilities and weights, finite and >= 0; they need not be normalised.

    Returns
    -------
    RatioOrder
        Arrays of shape [m], m the number of tokens with ``w > 0``. Tokens with ``p = 0`` come first. Equal ratios stand
        in the order of their ids, so the result does not depend on the machine's sort.

    Notes
    -----
    O(V log V). A sort of values runs three times as fast as an argsort, so the token id is packed into the low bits of
    the ratio; the few neighbours whose ratios differ only there are put right while the ids are unpacked.

    Examples
    --------
    >>> order = ratio_order(np.array([0.5, 0.0, 0.5, 0.0]), np.array([0.25, 0.25, 0.5, 0.0]))
    >>> order.tokens
    array([1, 2, 0])
    >>> order.w
    array([0.25, 0.5 , 0.25])
    """
    bits = max(int(p.size - 1).bit_length(), 1)
    keys = np.empty(p.size, dtype=np.uint64)
    keys = keys[: _pack(p, w, bits, keys)]
    keys.sort()
    tokens = keys.view(np.int64)  # the ids take the place of the keys
    sorted_p, sorted_w = np.empty(keys.size), np.empty(keys.size)
    if not _unpack(p, w, bits, keys, _PATIENCE * keys.size, tokens, sorted_p, sorted_w):
        tokens = np.flatnonzero(w)
        with np.errstate(over="ignore"):  # a ratio beyond the largest float is infinite, and last
            tokens = tokens[np.argsort(p[tokens] / w[tokens], kind="stable")]
        sorted_p, sorted_w = p[tokens], w[tokens]
    return RatioOrder(tokens, sorted_p, sorted_w)


@kernel
def _pack(p, w, bits, keys):
    """Leading bits of the ratio (its sign, always 0, shifted out), then the id; returns how many there are."""
    low = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    m = 0
    for x in range(p.size):
        if w[x] > 0.0:
            ratio = np.float64(p[x] / w[x]).view(np.uint64) << np.uint64(1)
            keys[m] = (ratio & ~low) | np.uint64(x)
            m += 1
    return m


@kernel
def _unpack(p, w, bits, keys, allowed, tokens, sorted_p, sorted_w):
    """Ids in exact order of the ratio, by insertion; False if that takes more moves than allowed."""
    low = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    moves = 0
    last = 0.0
    for k in range(keys.size):
        x = np.int64(keys[k] & low)
        own_p, own_w = p[x], w[x]
        ratio = own_p / own_w
        j = k
        if ratio < last:
            while j > 0 and ratio < sorted_p[j - 1] / sorted_w[j - 1]:
                tokens[j], sorted_p[j], sorted_w[j] = tokens[j - 1], sorted_p[j - 1], sorted_w[j - 1]
                j -= 1
            moves += k - j
            if moves > allowed:
                return False
        else:
            last = ratio
        tokens[j], sorted_p[j], sorted_w[j] = x, own_p, own_w
    return True
