"""What the laws of sampled drafts have in common: each is a scheme, and the inner law of schemes with a fixed set."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mdsd_core.schemes.base import Kind, Scheme, check_count


class InnerLaw(Scheme):
    """A law by which all n drafts are sampled: a scheme without a fixed set, and the inner law of those with one.

    Examples
    --------
    >>> from mdsd_core.schemes import TopThenSampled, WithReplacement
    >>> law = WithReplacement(2)
    >>> isinstance(law, InnerLaw), law.inner is law, TopThenSampled(1, 2, replacement=True).inner == law
    (True, True, True)
    """

    n: int

    #: How the drafts are drawn.
    kind: ClassVar[Kind]

    #: Whether a token's weight is its probability.
    of_q: bool = True

    def __post_init__(self) -> None:
        check_count("n", self.n)

    @property
    def inner(self) -> "InnerLaw":
        """The law itself."""
        return self

    @property
    def uniforms(self) -> int:
        """One for each draft."""
        return self.n

    def weigh(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights of the draws from q, or from q off a fixed set (then its sum is below 1)."""
        return q

    @abstractmethod
    def inclusion(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(x is among the drafts) for every x, by weights that are not all 0; see :meth:`Scheme.inclusion`."""

    @abstractmethod
    def prefix_steps(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """See :meth:`Scheme.prefix_steps`."""

    def prefix_runs(
        self, w: NDArray[np.float64], p: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.float64]]:
        """Every token is a run of its own; see :meth:`Scheme.prefix_runs`."""
        return None, self.prefix_steps(w)

    @abstractmethod
    def enumerate_by(self, w: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """All tuples drawn by weights that are not all 0, [N, at most n], and their probabilities."""

    @abstractmethod
    def draw_by(self, w: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.int64]:
        """Drafts drawn by weights that are not all 0: a row for each row of u, [N, n], padded."""
