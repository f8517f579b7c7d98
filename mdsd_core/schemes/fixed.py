"""Schemes that always draft the most probable tokens: top-m plus k sampled, greedy, SpecHub, deterministic top-n."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import check_distribution
from mdsd_core.schemes.base import NO_DRAFT, Scheme, check_count, rows_of, support_size, top_tokens
from mdsd_core.schemes.independent import WithReplacement, draw_independent, enumerate_independent
from mdsd_core.schemes.sequential import WithoutReplacement, draw_without_replacement, enumerate_sequential


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
    def drafts(self) -> int:
        """The number n = top + sampled."""
        return self.top + self.sampled

    @property
    def distinct(self) -> bool:
        """True unless two or more drafts are sampled with replacement."""
        return not self.replacement or self.sampled == 1

    @property
    def uniforms(self) -> int:
        """One for each sampled draft."""
        return self.sampled

    @property
    def inner(self) -> WithReplacement | WithoutReplacement:
        """The law of the drafts off T, for ``q`` restricted to the tokens off T."""
        return WithReplacement(self.sampled) if self.replacement else WithoutReplacement(self.sampled)

    def effective_drafts(self, q: NDArray[np.float64]) -> int:
        """n, or fewer where the support is too small: T first, then what the inner law can draw off T."""
        support = support_size(q)
        fixed = min(self.top, support)
        rest = support - fixed
        return fixed + (min(rest, self.sampled) if self.distinct or rest == 0 else self.sampled)

    def fixed_set(self, q: NDArray[np.float64]) -> NDArray[np.int64]:
        """The `top` most probable tokens (all of the support, if it is smaller); see :func:`top_tokens`."""
        return np.sort(top_tokens(q, self.top))

    def weights(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """The draft probabilities off T, 0 on T."""
        w = q.copy()
        w[top_tokens(q, self.top)] = 0.0
        return w

    def prefix_steps(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Those of the inner law; see :meth:`Scheme.prefix_steps`."""
        return self.inner.prefix_steps(w)

    def prefix_runs(
        self, w: NDArray[np.float64], p: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.float64]]:
        """Those of the inner law; see :meth:`Scheme.prefix_runs`."""
        return self.inner.prefix_runs(w, p)

    def enumerate(self, q: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """T and all tuples of the inner law; see :meth:`Scheme.enumerate`."""
        q = check_distribution(q, "q")
        w = self.weights(q)
        listing = enumerate_independent if self.replacement and w.any() else enumerate_sequential
        tuples, probability = listing(w, self.sampled)
        return _behind(top_tokens(q, self.top), tuples, self.drafts), probability

    def draw(self, q: ArrayLike, u: ArrayLike) -> NDArray[np.int64]:
        """T, then the algorithm of the inner law on q off T."""
        q = check_distribution(q, "q")
        w, rows = self.weights(q), rows_of(u, self.uniforms)
        if w.any():
            sampled = (draw_independent if self.replacement else draw_without_replacement)(w, rows)
        else:
            sampled = np.full(rows.shape, NO_DRAFT, dtype=np.int64)
        drafts = _behind(top_tokens(q, self.top), sampled, self.drafts)
        return drafts if np.ndim(u) == 2 else drafts[0]


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
    def drafts(self) -> int:
        """2."""
        return 2

    @property
    def distinct(self) -> bool:
        """True."""
        return True

    def fixed_set(self, q: NDArray[np.float64]) -> NDArray[np.int64]:
        """The hub: the most probable token, lowest id first among ties."""
        return top_tokens(q, 1)

    def weights(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """The draft probabilities off the hub, 0 on it."""
        return greedy(2).weights(q)

    def prefix_steps(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """``w / sum(w)``, the law of the draft that is not the hub; see :meth:`Scheme.prefix_steps`."""
        return greedy(2).prefix_steps(w)

    def enumerate(self, q: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Hub first, then hub second; see :meth:`Scheme.enumerate`."""
        q = check_distribution(q, "q")
        hub = int(top_tokens(q, 1)[0])
        w = self.weights(q)
        others = np.flatnonzero(w)
        if others.size == 0:
            return np.array([[hub, NO_DRAFT]]), np.ones(1)
        beside_hub = np.full(others.size, hub)
        tuples = np.concatenate((np.stack((beside_hub, others), axis=1), np.stack((others, beside_hub), axis=1)))
        probability = np.concatenate((q[hub] * (w / w.sum())[others], q[others]))
        positive = probability > 0
        return tuples[positive].astype(np.int64), probability[positive] / probability.sum()

    def draw(self, q: ArrayLike, u: ArrayLike) -> NDArray[np.int64]:
        """Two uniforms a draw: is the first draft the hub; which token goes with it. O(V + log V)."""
        q = check_distribution(q, "q")
        rows = rows_of(u, self.uniforms)
        hub = int(top_tokens(q, 1)[0])
        w = self.weights(q)
        drafts = np.full(rows.shape, hub, dtype=np.int64)
        if w.any():
            other = draw_independent(w, rows[:, 1])
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
    def drafts(self) -> int:
        """The number n of drafts."""
        return self.n

    @property
    def distinct(self) -> bool:
        """True."""
        return True

    @property
    def uniforms(self) -> int:
        """0."""
        return 0

    def fixed_set(self, q: NDArray[np.float64]) -> NDArray[np.int64]:
        """All the drafts; see :func:`top_tokens`."""
        return np.sort(top_tokens(q, self.n))

    def weights(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """All 0: nothing is drawn off the fixed set."""
        return np.zeros(q.size)

    def prefix_steps(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """All 0: nothing is drawn off the fixed set; see :meth:`Scheme.prefix_steps`."""
        return np.zeros(w.size)

    def enumerate(self, q: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The one tuple, with probability 1."""
        return self.draw(q, np.empty((1, 0))), np.ones(1)

    def draw(self, q: ArrayLike, u: ArrayLike) -> NDArray[np.int64]:
        """The same drafts for every row of `u`; O(V)."""
        q = check_distribution(q, "q")
        rows = rows_of(u, self.uniforms)
        none = np.full((rows.shape[0], 0), NO_DRAFT, dtype=np.int64)
        drafts = _behind(top_tokens(q, self.n), none, self.n)
        return drafts if np.ndim(u) == 2 else drafts[0]


def _behind(top: NDArray[np.int64], sampled: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Rows of n drafts: the fixed tokens, then the sampled ones, then padding."""
    drafts = np.full((sampled.shape[0], n), NO_DRAFT, dtype=np.int64)
    drafts[:, : top.size] = top
    drafts[:, top.size : top.size + sampled.shape[1]] = sampled[:, : n - top.size]
    return drafts
