"""What every rule needs to know of a node: p, q, the fixed drafts, the weights of the sampled ones; and its verdict."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.randomness import UniformSource
from mdsd_core.schemes import NO_DRAFT, Scheme
from mdsd_core.verifiers.residual import draw

#: Scale of the weights, a power of two so that no digit changes: what is divided by them (the level of a residual, 1/w)
#: would leave the range of float64 for subnormal draft probabilities.
_LIFT = 2.0**64


@dataclass(frozen=True)
class Verdict:
    """The outcome of one step.

    Attributes
    ----------
    token : int
        The emitted token.
    accepted_index : int
        The (lowest) index of the emitted token among the drafts, -1 if it is none of them. A residual draw that
        lands on a draft counts: its subtree goes on.

    Examples
    --------
    >>> Verdict(7, 0).accepted, Verdict(7, -1).accepted
    (True, False)
    """

    token: int
    accepted_index: int

    @property
    def accepted(self) -> bool:
        """True if the emitted token is one of the drafts."""
        return self.accepted_index >= 0


@dataclass(frozen=True, eq=False)
class Node:
    """The distributions of one node, with its drafts split into fixed and sampled ones.

    Attributes
    ----------
    p, q : ndarray of float64, shape [V]
        Target and draft distribution, checked.
    scheme : Scheme
        The law of the drafts.
    fixed : tuple of int
        The fixed set T: tokens that are always drafted, for which there is nothing to judge.
    w : ndarray of float64, shape [V]
        Weights of the sampled drafts, 0 on T, on a scale of their own; the law of a draft is ``w / total`` (with what
        has been drawn before taken away, for laws without replacement).
    total : float
        The sum of w; 0 if nothing is sampled.
    sampled : int
        How many drafts are sampled.
    """

    p: NDArray[np.float64]
    q: NDArray[np.float64]
    scheme: Scheme
    fixed: tuple[int, ...]
    w: NDArray[np.float64]
    total: float
    sampled: int

    @classmethod
    def of(cls, p: NDArray[np.float64], q: NDArray[np.float64], scheme: Scheme) -> "Node":
        """Split a checked pair, in O(V)."""
        fixed, w = scheme.split(q)
        w = w * _LIFT
        return cls(p, q, scheme, tuple(fixed.tolist()), w, float(w.sum()), scheme.sampled_from(w))

    @property
    def fixed_mass(self) -> float:
        """``p(T)``: the target's probability of the fixed set."""
        return float(self.p[list(self.fixed)].sum())

    def rows(self, drafts: ArrayLike) -> tuple[list[int], list[int]]:
        """The drafts without padding, and the sampled ones among them, in the order drawn.

        Costs O(n) for a possible draw; for any other the scheme raises its error.
        """
        array = np.asarray(drafts)
        if array.dtype.kind in "iu" and array.ndim == 1:
            row: list[int] = array.tolist()
            count = len(self.fixed) + self.sampled
            if len(row) == self.scheme.drafts and row[count:] == [NO_DRAFT] * (len(row) - count):
                row = row[:count]
                sampled = [x for x in row if x not in self.fixed] if self.fixed else row
                if (
                    len(sampled) == self.sampled
                    and (len(set(row)) == count or not self.scheme.distinct)
                    and all(0 <= x < self.w.size and self.w[x] > 0.0 for x in sampled)
                    and set(self.fixed) <= set(row)
                ):
                    return row, sampled
        row = self.scheme.check_drafts(self.q, drafts).tolist()
        return row, [x for x in row if x not in self.fixed]

    def emit(self, token: int, row: list[int]) -> Verdict:
        """The verdict on a token: it counts as accepted if it is any of the drafts."""
        return Verdict(token, row.index(token) if token in row else -1)

    def draw_from(self, weights: NDArray[np.float64], judged: list[int], rng: UniformSource) -> int:
        """A token drawn by the weights of a residual, after these drafts were judged and rejected.

        If the residual is empty, its mass was lost to rounding: in exact arithmetic the last draft was accepted with
        certainty, and it is the token. Should the target give it nothing, the token is drawn from the target, with
        one more uniform.
        """
        token = int(draw(weights, rng.random()))
        if token < 0:
            token = judged[-1] if self.p[judged[-1]] > 0.0 else int(draw(self.p, rng.random()))
        return token

    def law_of_draw(self, weights: NDArray[np.float64], judged: list[int]) -> NDArray[np.float64]:
        """The law of :meth:`draw_from`."""
        total = weights.sum()
        if total > 0.0:
            return weights / total
        law = np.zeros_like(self.p)
        if self.p[judged[-1]] == 0.0:
            return law + self.p
        law[judged[-1]] = 1.0
        return law
