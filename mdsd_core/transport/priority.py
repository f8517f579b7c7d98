"""Random-priority selection: every draft draws a label, the draft with the highest label wins.

Both exact optimal couplings of this library are plans of this kind. They differ in who draws: independent drafts draw a
fresh label each (`coupling.py`), drafts without replacement draw one label a token (`nested.py`); as those drafts are
all different, "one label for every draft in the tuple" is the same sentence.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PriorityPlan:
    """Segments of labels for every token, and the law of the winner.

    Attributes
    ----------
    start : ndarray of int64, shape [V + 1]
        Token x owns the segments ``start[x]:start[x + 1]`` (none, if the scheme never draws it).
    key : ndarray of int64, shape [M]
        The label of a segment. No two tokens share a key, so the winner is always unique.
    fraction : ndarray of float64, shape [M]
        The probability that a draft x gets this segment; sums to 1 over the segments of a token.
    marginal : ndarray of float64, shape [V]
        r: the law of the winner over drafts and labels, *realised* by these very segments, to rounding.
    """

    start: NDArray[np.int64]
    key: NDArray[np.int64]
    fraction: NDArray[np.float64]
    marginal: NDArray[np.float64]
