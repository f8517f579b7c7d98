"""Why an empirical acceptance rate can lie above the "bound": noise, a faulty rule, the bound of another law.

No lossless verifier accepts more often than the optimal rate of the law its drafts are drawn from. Where a count says
otherwise, either the count is noisy (:func:`chance_above`, :func:`wilson`), or the rule is not lossless
(:func:`skipped_duplicates`), or the "bound" is not the one of these drafts
(two laws, see :class:`~mdsd_core.schemes.DistinctConditioned`).
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from mdsd_core.distributions import check_pair, draw_token
from mdsd_core.randomness import UniformSource
from mdsd_core.schemes import WithReplacement
from mdsd_core.schemes.base import check_count
from mdsd_core.verifiers.node import Verdict

#: The most drafts for which :func:`skipped_duplicates` has a formula at any vocabulary.
MOST_DRAFTS = 3

_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class SkippedDuplicates:
    """What recursive rejection sampling becomes when it skips repeated drafts.

    Attributes
    ----------
    acceptance : float
        P(the emitted token is among the drafts).
    law : ndarray of float64, shape (V,)
        The law of the emitted token. It is not p.
    deviation : float
        Total variation distance between `law` and p.

    Examples
    --------
    >>> round(skipped_duplicates([0.4, 0.6, 0.0], [0.2, 0.2, 0.6], 2).deviation, 12)  # emits (.44, .56, 0)
    0.04
    """

    acceptance: float
    law: NDArray[np.float64]
    deviation: float


def skipped_duplicates(p: ArrayLike, q: ArrayLike, n: int) -> SkippedDuplicates:
    """The exact acceptance and output law of RRS that passes over a draft it has already rejected.

    A repeated draft would be rejected again, so skipping it seems to save work. But the residual is then not updated,
    and the next draft is judged against a residual that it meets more often than it should. **The rule is faulty**: it
    is here so that its effect can be measured.

    Parameters
    ----------
    p, q : array_like, shape (V,)
        Target and draft distribution; n independent drafts are drawn from q.
    n : int
        The number of drafts, 1 to :data:`MOST_DRAFTS`.

    Returns
    -------
    SkippedDuplicates
        Exact up to rounding (about 1e-15).

    Raises
    ------
    TypeError, ValueError
        If `p` or `q` is no distribution, or n is out of range.

    Notes
    -----
    The residual ``r_k`` depends only on k, how many different drafts were rejected; a rejected token has ``r = 0`` from
    then on. So the history before a draft matters through k alone, and the chances of k are sums over the first, second
    and third rejected token that factor into the moments ``sum_x (q_x - r_k(x))_+ q_x^i``. O(V n).

    Examples
    --------
    Three drafts, one of them likely and always rejected. The true rule accepts with probability 0.523, no lossless rule
    more often than 0.571:

    >>> found = skipped_duplicates([0.0, 0.3, 0.7], [0.7, 0.2, 0.1], 3)
    >>> round(found.acceptance, 12), round(found.deviation, 6)
    (0.593, 0.119)
    """
    p, q = check_pair(p, q)
    n = check_count("n", n)
    if n > MOST_DRAFTS:
        raise ValueError(f"n must be at most {MOST_DRAFTS} (enumerate the tuples of a small vocabulary), got {n}")
    residuals = list(itertools.islice(_residuals(p, q), max(n, 3) + 1))
    lost = [np.maximum(q - r, 0.0) for r in residuals]  # what draft law is rejected at each level
    a = [float((lost[0] * q**i).sum()) for i in range(3)]
    b = [float((lost[1] * q**i).sum()) for i in range(2)]
    c = float(lost[2].sum())
    # chance[j][k]: after j drafts, none accepted, k different ones have been rejected
    chance = [
        [1.0],
        [0.0, a[0]],
        [0.0, a[1], a[0] * b[0] - a[1]],
        [
            0.0,
            a[2],
            2.0 * a[1] * b[0] + a[0] * b[1] - 3.0 * a[2],
            (a[0] * b[0] - a[1]) * c - (a[1] * b[0] - a[2]) - (a[0] * b[1] - a[2]),
        ],
    ]
    law = np.zeros_like(p)
    for before in chance[:n]:
        for k, probability in enumerate(before):
            law += max(probability, 0.0) * np.minimum(residuals[k], q)
    accepted = float(law.sum())
    for k, probability in enumerate(chance[n]):
        law += max(probability, 0.0) * residuals[k]
    return SkippedDuplicates(accepted, law, float(0.5 * np.abs(law - p).sum()))


def _residuals(p: NDArray[np.float64], q: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """``r_0 = p, r_{k+1} ~ (r_k - q)_+``, without end; where nothing is left, r stays (it is never reached)."""
    r = p
    while True:
        yield r
        left = np.maximum(r - q, 0.0)
        total = left.sum()
        r = left / total if total > 0.0 else r


def skipping_law(p: ArrayLike, q: ArrayLike, drafts: ArrayLike) -> NDArray[np.float64]:
    """The law, shape [V], of the token that the faulty rule emits for one tuple of independent drafts; any n.

    >>> skipping_law([0.4, 0.6, 0.0], [0.2, 0.2, 0.6], [2, 2]).round(12)
    array([0.33333333, 0.66666667, 0.        ])
    """
    p, q = check_pair(p, q)
    row, residuals = _independent(q, drafts), _residuals(p, q)
    law, reach = np.zeros_like(p), 1.0
    for x, r in zip(dict.fromkeys(row), residuals):  # each token once, in the order drawn
        accepted = min(1.0, r[x] / q[x])
        law[x] += reach * accepted
        reach *= 1.0 - accepted
    return law + reach * next(residuals)


def verify_skipping(p: ArrayLike, q: ArrayLike, drafts: ArrayLike, rng: UniformSource) -> Verdict:
    """Emit a token by the faulty rule, one uniform for each different draft judged and one for the residual.

    Not in the registry of verifiers: nothing but a measurement should use it.

    >>> verify_skipping([0.0, 1.0], [0.5, 0.5], [0, 1], np.random.default_rng(0))
    Verdict(token=1, accepted_index=1)
    """
    p, q = check_pair(p, q)
    row, residuals = _independent(q, drafts), _residuals(p, q)
    for x, r in zip(dict.fromkeys(row), residuals):
        if rng.random() * q[x] < r[x]:
            return Verdict(x, row.index(x))
    token = draw_token(next(residuals), rng.random())
    return Verdict(token, row.index(token) if token in row else -1)


def _independent(q: NDArray[np.float64], drafts: ArrayLike) -> list[int]:
    return WithReplacement(np.asarray(drafts).size).check_drafts(q, drafts).tolist()


def chance_above(acceptances: ArrayLike, bound: float, *, rounds: int = 1) -> float:
    """The exact probability that a counted acceptance rate lies above a bound.

    Parameters
    ----------
    acceptances : array_like, shape (N,)
        The acceptance probability at each of N positions, in [0, 1].
    bound : float
        What the counted rate is compared with; in [0, 1].
    rounds : int
        Independent rounds at each position; ``N * rounds`` rounds are counted.

    Returns
    -------
    float
        P(accepted rounds / all rounds > bound), to 1e-10. A rate within 1e-9 of a round of the bound is not above it.

    Notes
    -----
    The count has a Poisson binomial law; it is inverted from its characteristic function at all roots of unity (Hong,
    Computational Statistics & Data Analysis 59, 2013). O(N^2 rounds).

    Examples
    --------
    A rule that attains its bound is above it half of the time, whatever the number of rounds:

    >>> round(chance_above([0.5], 0.5, rounds=10_001), 9)
    0.5
    >>> round(chance_above([0.5, 1.0], 0.7), 9)
    0.5
    """
    a = np.asarray(acceptances, dtype=np.float64)
    if a.ndim != 1 or a.size == 0 or not ((a >= 0) & (a <= 1)).all():
        raise ValueError(f"acceptances must be probabilities, at least one, got {a.tolist()}")
    if not 0 <= bound <= 1:
        raise ValueError(f"bound must lie in [0, 1], got {bound}")
    total = a.size * check_count("rounds", rounds)
    most = math.floor(total * bound + 1e-9)  # the largest count that is not above
    if most >= total:
        return 0.0
    phase = np.exp(2j * np.pi * np.arange(total + 1) / (total + 1))
    transform = np.empty(total + 1, dtype=np.complex128)
    for start in range(0, total + 1, _BLOCK):
        part = slice(start, start + _BLOCK)
        factors = 1.0 - a[:, None] + a[:, None] * phase[None, part]
        transform[part] = np.prod(factors, axis=0) ** rounds
    law = np.fft.fft(transform).real / (total + 1)
    return float(np.clip(law[most + 1 :].sum(), 0.0, 1.0))


def wilson(successes: int, rounds: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval for a probability from a count (E. B. Wilson, JASA 22, 1927).

    For rounds of unequal probabilities it is an interval for their mean, and if anything too wide.

    >>> low, high = wilson(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.49, 0.943)
    """
    rounds = check_count("rounds", rounds)
    if not 0 <= successes <= rounds:
        raise ValueError(f"successes must lie in [0, {rounds}], got {successes}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}")
    interval = stats.binomtest(int(successes), rounds).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)
