"""Uniforms, the drawing of an index, and every random choice of the decoding loop.

The loop never draws a number itself: it states the law of each choice and asks. :class:`RandomChoices` answers from one
``numpy.random.Generator`` a request, so that neither the order nor the size of a batch changes what a request draws. A
test can put an oracle in its place that walks through all answers with their probabilities, and so add up the exact law
of the loop's output.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import draw_token

VerdictT = TypeVar("VerdictT", covariant=True)
T = TypeVar("T")


class UniformSource(Protocol):
    """What a verifier draws from: ``random()`` -> float in [0, 1). A ``numpy.random.Generator`` is one.

    >>> source: UniformSource = np.random.default_rng(0)
    >>> 0.0 <= source.random() < 1.0
    True
    """

    def random(self) -> float:
        """The next uniform."""
        ...


class Sampler(Protocol):
    """Draws drafts: a scheme."""

    def sample(self, q: ArrayLike, rng: np.random.Generator, /) -> NDArray[np.int64]:
        """Drafts at a node with draft distribution `q`, shape [n]."""
        ...


class Judge(Protocol[VerdictT]):
    """Judges drafts: a verifier's plan for one node."""

    def verify(self, drafts: ArrayLike, rng: UniformSource, /) -> VerdictT:
        """The verdict; draws only ``rng.random()``."""
        ...


class Selector(Protocol):
    """Selects one of the drafts at a node."""

    def select(self, drafts: NDArray[np.int64], rng: UniformSource) -> int:
        """The index of the selected draft; draws only ``rng.random()``."""
        ...

    def selection_law(self, drafts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The exact law of that index, shape [n]."""
        ...


class Choices(ABC):
    """The random choices of one request."""

    @abstractmethod
    def drafts(self, scheme: Sampler, q: NDArray[np.float64]) -> NDArray[np.int64]:
        """Drafts of `scheme` at a node with draft distribution `q`, shape [n]."""

    @abstractmethod
    def verdict(self, plan: Judge[T], drafts: NDArray[np.int64]) -> T:
        """The verdict of a verifier's plan on these drafts."""

    @abstractmethod
    def selected(self, selector: Selector, drafts: NDArray[np.int64]) -> int:
        """The index of the draft that `selector` selects."""

    @abstractmethod
    def accept(self, probability: float) -> bool:
        """True with this probability."""

    @abstractmethod
    def token(self, weights: NDArray[np.float64]) -> int:
        """An index with probability proportional to its weight; never one of weight 0."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Take back every choice made inside, if the block raises (here: nothing to take back)."""
        yield


class RandomChoices(Choices):
    """Choices drawn from one generator.

    Parameters
    ----------
    rng : numpy.random.Generator
        Owned by this object from now on.

    Examples
    --------
    >>> choices = RandomChoices(np.random.default_rng(0))
    >>> choices.token(np.array([0.0, 2.0, 0.0])), choices.accept(0.0), choices.accept(1.0)
    (1, False, True)
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def drafts(self, scheme: Sampler, q: NDArray[np.float64]) -> NDArray[np.int64]:
        """See :meth:`Choices.drafts`."""
        return scheme.sample(q, self._rng)

    def verdict(self, plan: Judge[T], drafts: NDArray[np.int64]) -> T:
        """See :meth:`Choices.verdict`."""
        return plan.verify(drafts, self._rng)

    def selected(self, selector: Selector, drafts: NDArray[np.int64]) -> int:
        """See :meth:`Choices.selected`."""
        return selector.select(drafts, self._rng)

    def accept(self, probability: float) -> bool:
        """See :meth:`Choices.accept`; one uniform, whatever the probability."""
        return bool(self._rng.random() < probability)

    def token(self, weights: NDArray[np.float64]) -> int:
        """See :meth:`Choices.token`; one uniform, by the inverse of the distribution function over the support."""
        return draw_index(weights, self._rng)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Take back every draw made inside, if the block raises."""
        state = self._rng.bit_generator.state
        try:
            yield
        except BaseException:
            self._rng.bit_generator.state = state
            raise


def draw_index(weights: NDArray[np.float64], rng: UniformSource) -> int:
    """Draw an index with probability proportional to its weight.

    Raises ValueError if a weight is negative or not finite, or all are 0. O(V), one uniform.

    >>> draw_index(np.array([0.0, 1.0, 0.0]), np.random.default_rng(1))
    1
    """
    if not (weights.size and weights.min() >= 0.0 and 0.0 < weights.sum() < np.inf):
        raise ValueError("weights must be finite and >= 0 with a positive sum")
    return draw_token(weights, rng.random())
