"""What every verifier is: one protocol, one verdict, one registry by name."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.schemes import Scheme


class UniformSource(Protocol):
    """What a verifier draws from: ``random()`` -> float in [0, 1). A ``numpy.random.Generator`` is one."""

    def random(self) -> float:
        """The next uniform."""
        ...


class UnsupportedScheme(ValueError):
    """A verifier was asked to verify drafts of a law it is not lossless for."""


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
    """

    token: int
    accepted_index: int

    @property
    def accepted(self) -> bool:
        """True if the emitted token is one of the drafts."""
        return self.accepted_index >= 0


@dataclass(frozen=True)
class Estimate:
    """A number that is not exact: a value inside ``[low, high]``.

    `level` is the coverage of the interval: 1.0 for a rigorous bracket, 0.99 for a Monte Carlo interval, say. `method`
    says which in words.
    """

    value: float
    low: float
    high: float
    level: float
    method: str


class VerificationPlan(ABC):
    """A verifier prepared for one node: fixed `p`, `q` and scheme, ready for any drafts of that scheme."""

    @abstractmethod
    def verify(self, drafts: ArrayLike, rng: UniformSource) -> Verdict:
        """Emit a token for these drafts (shape [n], in the order drawn, -1 pads); draws only ``rng.random()``."""

    @abstractmethod
    def output_law(self, drafts: ArrayLike) -> NDArray[np.float64]:
        """The exact law, shape [V], of the token that :meth:`verify` emits for these drafts."""


class Verifier(ABC):
    """A rule that turns drafts into one token with law `p`, whatever `q`, for the schemes it supports."""

    #: The name in the registry, such as "rrs".
    name: ClassVar[str]

    @abstractmethod
    def supports(self, scheme: Scheme) -> bool:
        """True if the rule is lossless for drafts of this scheme."""

    @abstractmethod
    def prepare(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> VerificationPlan:
        """All work that does not depend on the drafts. Raises :class:`UnsupportedScheme` for any other scheme."""

    @abstractmethod
    def acceptance(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float | Estimate:
        """P(the emitted token is among the drafts), over drafts and verification: exact, or with an interval."""
