"""Schemes that always draft the most probable tokens: top-m plus k sampled, greedy, SpecHub's pairs, the top n."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import check_distribution, draw_tokens
from mdsd_core.schemes.base import NO_DRAFT, Kind, Scheme, check_count, rows_of
from mdsd_core.schemes.independent import WithReplacement
from mdsd_core.schemes.without_replacement.law import WithoutReplacement


@dataclass(frozen=True)
class TopThenSampled(Scheme):
    """The `top` most probable tokens T of `q`, most probable first, then `sampled` drafts from `q` off T.

    ``Q(H)`` is 0 unless H holds T, else Q of the inner law on the rest of H. Where q has no mass off T nothing is
    sampled. ``top=0`` is the inner law itself.

    Parameters
    ----------
    top : int
        m, the number of tokens always drafted, >= 0.
    sampled : int
        k, the number of drafts sampled off T, >= 1.
    replacement : bool
        Whether the sampled drafts are drawn with replacement.

    Examples
    --------
    >>> TopThenSampled(1, 2).sample([0.5, 0.25, 0.25, 0.0], np.random.default_rng(3))
    array([0, 1, 2])
    >>> TopThenSampled(1, 1).set_mass([0.5, 0.25, 0.25], [0, 2])
    0.5
    """

    top: int
    sampled: int
    replacement: bool = False

    def __post_init__(self) -> None:
        check_count("top", self.top, 0)
        check_count("sampled", self.sampled)
        if not isinstance(self.replacement, bool):
            raise TypeError(f"replacement must be True or False, got {self.replacement!r}")

    @property
    def fixed_drafts(self) -> int:
        """`top`."""
        return self.top

    @cached_property
    def inner(self) -> WithReplacement | WithoutReplacement:
        """The law of the drafts off T, for ``q`` restricted to the tokens off T."""
        return WithReplacement(self.sampled) if self.replacement else WithoutReplacement(self.sampled)


def greedy(n: int) -> TopThenSampled:
    """The greedy scheme of Hu et al. (arXiv 2502.18779): the n - 1 most probable tokens and one sampled off them.

    >>> greedy(3)
    TopThenSampled(top=2, sampled=1, replacement=False)
    """
    return TopThenSampled(check_count("n", n) - 1, 1)


@dataclass(frozen=True)
class SpecHubPairs(Scheme):
    """The pairs of SpecHub (arXiv 2411.05289): two drafts, one of which is always the most probable token a, the hub.

    The first draft is drawn from `q`. If it is not the hub, the second is the hub; if it is, the second is drawn from
    `q` without the hub. So ``P(x, a) = q_x`` and ``P(a, x) = q_a q_x / (1 - q_a)``, together ``q_x / (1 - q_a)`` for
    the unordered pair: the law of ``greedy(2)`` up to the order of the two, and the same Q.

    Examples
    --------
    >>> tuples, probability = SpecHubPairs().enumerate([0.5, 0.25, 0.25])
    >>> tuples.tolist(), probability.tolist()
    ([[0, 1], [0, 2], [1, 0], [2, 0]], [0.25, 0.25, 0.25, 0.25])
    """

    @property
    def name(self) -> str:
        """Its name in the grammar."""
        return "spechub"

    @property
    def fixed_drafts(self) -> int:
        """1, the hub: the most probable token, lowest id first among ties."""
        return 1

    @cached_property
    def inner(self) -> WithoutReplacement:
        """The law of the draft that is not the hub, ``q_x / (1 - q_a)``."""
        return WithoutReplacement(1)

    @property
    def uniforms(self) -> int:
        """2."""
        return 2

    def draws(self, kind: Kind) -> bool:
        """Hub pairs only: a rule for sampled drafts would not see what the order of a pair tells."""
        return kind == "hub pairs"

    def enumerate(self, q: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Hub first, then hub second; see :meth:`Scheme.enumerate`."""
        hub_first, chance = super().enumerate(q)
        if hub_first[0, 1] == NO_DRAFT:
            return hub_first, chance
        q = check_distribution(q, "q")
        hub, others = hub_first[0, 0], hub_first[:, 1]
        tuples = np.concatenate((hub_first, hub_first[:, ::-1]))
        probability = np.concatenate((q[hub] * chance, q[others]))
        positive = probability > 0
        return tuples[positive], probability[positive] / probability.sum()

    def draw(self, q: ArrayLike, u: ArrayLike) -> NDArray[np.int64]:
        """Two uniforms a draw: is the first draft the hub; which token goes with it. O(V + log V)."""
        q = check_distribution(q, "q")
        rows = rows_of(u, self.uniforms)
        (hub,), w = self.split(q)
        drafts = np.full(rows.shape, hub, dtype=np.int64)
        if w.any():
            other = draw_tokens(w, rows[:, 1])
            hub_first = rows[:, 0] < q[hub]
            drafts[np.arange(rows.shape[0]), hub_first.astype(np.int64)] = other
        else:
            drafts[:, 1] = NO_DRAFT
        return drafts if np.ndim(u) == 2 else drafts[0]


@dataclass(frozen=True)
class Deterministic(Scheme):
    """The `n` most probable tokens, most probable first, with no randomness: ``Q(H)`` is 1 if H holds them, else 0.

    A proposal kind of its own: the drafts carry no draft probability, and a rule that divides by q must not see them.

    Parameters
    ----------
    n : int
        The number of drafts, >= 1.

    Examples
    --------
    >>> Deterministic(2).sample([0.2, 0.4, 0.4], np.random.default_rng(0))
    array([1, 2])
    """

    n: int

    def __post_init__(self) -> None:
        check_count("n", self.n)

    @property
    def fixed_drafts(self) -> int:
        """`n`: all the drafts; see :func:`top_tokens`."""
        return self.n

    @property
    def inner(self) -> None:
        """None: nothing is sampled."""
        return None
