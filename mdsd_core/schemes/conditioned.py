"""Independent drafts conditioned on being different: the law of the generating-function formula."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mdsd_core._jit import kernel
from mdsd_core.schemes._tables import descending, draw_conditioned, symmetric_tails
from mdsd_core.schemes.base import NO_DRAFT, Kind, distinct_tuples
from mdsd_core.schemes.inner import InnerLaw
from mdsd_core.schemes.without_replacement.inclusion import conditioned_inclusion

#: Weights as a function of the draft distribution; they need not be normalised.
WeightFunction = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class DistinctConditioned(InnerLaw):
    """`n` independent drafts of law w, given that all are different: ``P(S) ~ prod_{x in S} w_x``.

    ``Q(H) = e_n(w_H) / e_n(w)``, e_n the elementary symmetric polynomial: the coefficients of ``prod (1 + w_x t)`` by
    which a rendering of Hu et al. (arXiv 2502.18779) gives the rate without replacement. Sequential sampling, which
    is what samplers do, has another law: :class:`WithoutReplacement`.

    Parameters
    ----------
    n : int
        The number of drafts, >= 1.
    weights_from : callable, optional
        The weights as a function of q, such as :func:`odds`; q itself if not given. Finite, >= 0, 0 where q is 0.

    Examples
    --------
    >>> DistinctConditioned(2).prefix_mass(np.array([0.25, 0.25, 0.5]))
    array([0. , 0. , 0.2, 1. ])
    """

    n: int
    weights_from: WeightFunction | None = None
    kind: ClassVar[Kind] = "conditioned"

    def __repr__(self) -> str:
        """The function of the weights by its name: an address would differ from run to run.

        >>> DistinctConditioned(2, odds)
        DistinctConditioned(n=2, weights_from=odds)
        """
        function = self.weights_from
        return f"DistinctConditioned(n={self.n}, weights_from={getattr(function, '__name__', function)})"

    @property
    def of_q(self) -> bool:  # type: ignore[override]
        """True if the weights are q."""
        return self.weights_from is None

    @property
    def uniforms(self) -> int:
        """Of these, n choose the set and n - 1 shuffle it."""
        return 2 * self.n - 1

    def weigh(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights of the law, relative to the largest if they are not q.

        Raises
        ------
        ValueError
            If `weights_from` gave anything but finite weights >= 0, not all 0, that are 0 where `q` is 0.
        """
        if self.weights_from is None or not q.any():
            return q
        w = np.asarray(self.weights_from(q), dtype=np.float64)
        if w.shape != q.shape:
            raise ValueError(f"weights_from must keep the shape {q.shape}, got {w.shape}")
        bad = ~np.isfinite(w) | (w < 0) | ((q == 0) & (w != 0))
        if bad.any():
            x = int(np.argmax(bad))
            raise ValueError(
                f"weights_from must give finite weights >= 0, 0 where q is 0; token {x}: q={q[x]}, w={w[x]}"
            )
        if not w.any():
            raise ValueError("weights_from must give a positive weight to some token, got only zeros")
        return w / w.max()

    def inclusion(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """By elementary symmetric polynomials, O(V n^2); see :meth:`Scheme.inclusion`."""
        return conditioned_inclusion(w, self.n)

    def prefix_steps(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """``w_k e_{n-1}(w_0 .. w_{k-1}) / e_n(w)``; see :meth:`Scheme.prefix_steps`. O(m n), no overflow."""
        n = min(self.n, int(np.count_nonzero(w)))
        steps = np.zeros(w.size)
        if n > 0:
            _symmetric_steps(w / w.max(), n, steps)
        return steps

    def enumerate_by(self, w: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """All ordered tuples of different tokens; see :meth:`Scheme.enumerate`."""
        tuples, _ = distinct_tuples(w, self.n)
        # mantissas and exponents apart: products of weights may be far below the smallest double
        mantissa, exponent = np.frexp(w)
        product, shift = np.frexp(mantissa[tuples].prod(axis=1))
        total_exponent = exponent[tuples].sum(axis=1) + shift
        probability = np.ldexp(product, np.maximum(total_exponent - total_exponent.max(), -1100))
        positive = probability > 0
        return tuples[positive], probability[positive] / probability.sum()

    def draw_by(self, w: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.int64]:
        """Walk the tokens, largest first, by backward elementary symmetric polynomials; then shuffle.

        Exact in O(V log V + V n) for the table, O(n^2 log V) a draw.
        """
        order, w = descending(w)
        places = np.full((u.shape[0], self.n), NO_DRAFT, dtype=np.int64)
        draw_conditioned(w, symmetric_tails(w, min(self.n, w.size)), u, places)
        return np.where(places == NO_DRAFT, NO_DRAFT, order[places])


def odds(q: NDArray[np.float64]) -> NDArray[np.float64]:
    """The odds ``q / (1 - q)`` as weights, relative to the largest: ``1 - q`` of the largest is summed directly.

    >>> odds(np.array([0.5, 0.25, 0.25, 0.0]))
    array([1.        , 0.33333333, 0.33333333, 0.        ])
    """
    top = int(np.argmax(q))
    rest = float(np.delete(q, top).sum())
    # relative to the odds of the largest, which are infinite where it is the only token
    result = q / (1.0 - np.where(np.arange(q.size) == top, 0.0, q)) * (rest / q[top])
    result[top] = 1.0
    return result


@kernel
def _symmetric_steps(w, n, steps):
    """Steps of e_n over the prefixes, relative to e_n of all.

    The state is ``e[m] = e_m(prefix) / (product of the m largest weights of the prefix)``, in [1, binomial], so that
    neither state nor update can leave the range of doubles, whatever the weights.
    """
    top = np.zeros(n)  # the n largest weights of the prefix, descending
    e = np.zeros(n + 1)
    e[0] = 1.0
    for k in range(w.size):
        x = w[k]
        if x == 0.0:
            continue
        steps[k] = e[n - 1]
        rank = n
        while rank > 0 and top[rank - 1] < x:
            rank -= 1
        for m in range(n, rank, -1):  # x is one of the m largest
            e[m] = e[m - 1] + (e[m] * (top[m - 1] / x) if top[m - 1] > 0.0 else 0.0)
        for m in range(rank, 0, -1):
            e[m] += e[m - 1] * (x / top[m - 1])
        for m in range(n - 1, rank, -1):
            top[m] = top[m - 1]
        if rank < n:
            top[rank] = x
    # steps[k] still lacks x (n - 1 largest before k) / (n largest of all): n ratios <= 1, paired by rank
    before = np.zeros(n)
    filled, factor = 0, 1.0
    for k in range(w.size):
        x = w[k]
        if x == 0.0:
            continue
        if filled < n - 1:
            steps[k] = 0.0
        elif x <= top[n - 1]:
            steps[k] *= factor * (x / top[n - 1]) / e[n]
        else:
            ratio, i = 1.0, 0
            for j in range(n):
                if i == j and (i == n - 1 or before[i] < x):
                    ratio *= x / top[j]
                else:
                    ratio *= before[i] / top[j]
                    i += 1
            steps[k] *= ratio / e[n]
        if n > 1 and before[n - 2] < x:
            i = n - 2
            while i > 0 and before[i - 1] < x:
                before[i] = before[i - 1]
                i -= 1
            before[i] = x
            filled += 1
            factor = 1.0
            for j in range(n - 1):
                factor *= before[j] / top[j]
    return steps
