"""What every verifier is: one protocol, one verdict, one registry by name."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import check_pair
from mdsd_core.randomness import UniformSource
from mdsd_core.schemes import Scheme
from mdsd_core.verifiers.node import Node, Verdict


class UnsupportedScheme(ValueError):
    """A verifier was asked to verify drafts of a law it is not lossless for.

    >>> from mdsd_core.schemes import WithReplacement
    >>> verifier("rrs_without").prepare([0.5, 0.5], [0.5, 0.5], WithReplacement(2))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    UnsupportedScheme: verifier 'rrs_without' is not lossless for drafts of WithReplacement(n=2)
    """


@dataclass(frozen=True)
class Estimate:
    """A number that is not exact: a value inside ``[low, high]``.

    `level` is the coverage of the interval: 1.0 for a rigorous bracket, 0.99 for a Monte Carlo interval, say. `method`
    says which in words.

    >>> Estimate(0.5, 0.4, 0.6, level=0.99, method="Monte Carlo").high
    0.6
    """

    value: float
    low: float
    high: float
    level: float
    method: str


class VerificationPlan(ABC):
    """A verifier prepared for one node: fixed `p`, `q` and scheme, ready for any drafts of that scheme.

    >>> from mdsd_core.schemes import WithReplacement
    >>> plan = verifier("rrs").prepare([0.6, 0.4], [0.2, 0.8], WithReplacement(2))
    >>> plan.output_law([1, 1]).tolist(), plan.verify([0, 1], np.random.default_rng(0))
    ([0.5, 0.5], Verdict(token=0, accepted_index=0))
    """

    @abstractmethod
    def verify(self, drafts: ArrayLike, rng: UniformSource) -> Verdict:
        """Emit a token for these drafts (shape [n], in the order drawn, -1 pads); draws only ``rng.random()``."""

    @abstractmethod
    def output_law(self, drafts: ArrayLike) -> NDArray[np.float64]:
        """The exact law, shape [V], of the token that :meth:`verify` emits for these drafts."""


#: Where histories of rejections are drawn from, if at all.
Source = np.random.Generator | None


class Verifier(ABC):
    """A rule that turns drafts into one token with law `p`, whatever `q`, for the schemes it supports.

    >>> from mdsd_core.schemes import WithReplacement
    >>> rule = verifier("kseq")
    >>> rule.supports(WithReplacement(2)), round(rule.acceptance([0.6, 0.4], [0.2, 0.8], WithReplacement(1)), 12)
    (True, 0.6)
    """

    #: The name in the registry, such as "rrs".
    name: str

    @property
    def tolerance(self) -> float | None:
        """How far a plan that selects one draft may fall short of the optimum; None if the rule does not select.

        Only a rule that selects can be used by the tree rule "path".
        """
        return None

    @property
    def rule(self) -> str:
        """The name of the rule itself: an entry of the registry may be another one's rule under a name of its own.

        >>> verifier("greedy").rule
        'rrs'
        """
        return type(self).name

    @abstractmethod
    def supports(self, scheme: Scheme) -> bool:
        """True if the rule is lossless for drafts of this scheme."""

    @abstractmethod
    def prepare(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> VerificationPlan:
        """All work that does not depend on the drafts. Raises :class:`UnsupportedScheme` for any other scheme."""

    @abstractmethod
    def acceptance(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float | Estimate:
        """P(the emitted token is among the drafts), over drafts and verification: exact, or with an interval."""

    def accepted_share(self, node: Node, token: int, rng: Source = None, histories: int = 8) -> float:
        """P(the rule emits `token`, and it is one of the drafts) / p(token), for a token off T that p gives.

        Here by enumeration of all drafts, which a rule replaces by its formula. It may exceed 1 by rounding or where
        the formula is to be cut there; `rng` and `histories` are for rules that sample histories of rejections.
        """
        plan, tuples, weights = self.prepare(node.p, node.q, node.scheme), *node.scheme.enumerate(node.q)
        laws = (weight * plan.output_law(row)[token] for row, weight in zip(tuples, weights) if token in row)
        return float(sum(laws) / node.p[token])

    def checked(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """`p` and `q` as checked float64 arrays, if the rule is lossless for the scheme, else an error."""
        if not self.supports(scheme):
            able = ", ".join(verifiers_for(scheme)) or "none"
            raise UnsupportedScheme(
                f"verifier {self.name!r} is not lossless for drafts of {scheme!r}; verifiers that are: {able}"
            )
        return check_pair(p, q)


_REGISTRY: dict[str, Verifier] = {}

V = TypeVar("V", bound=type[Verifier])


def register(rule: V) -> V:
    """Class decorator: put one instance of a rule into the registry under its name.

    A module may be loaded again and replaces its own rule; another rule of the same name is an error.
    """
    put(rule())
    return rule


def put(rule: Verifier) -> None:
    """Put a rule into the registry under its name; see :func:`register`."""
    own = type(rule)
    known = type(_REGISTRY.get(rule.name, rule))
    if (known.__module__, known.__qualname__) != (own.__module__, own.__qualname__):
        raise ValueError(f"two verifiers are named {rule.name!r}: {known.__qualname__} and {own.__qualname__}")
    _REGISTRY[rule.name] = rule


def verifier(name: str) -> Verifier:
    """The verifier of that name.

    Raises
    ------
    KeyError
        If there is none; the message lists the names there are.

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> verifier("rrs").acceptance([0.5, 0.5], [1.0, 0.0], WithReplacement(2))
    0.5
    """
    try:
        return _REGISTRY[name]
    except KeyError:
        raise KeyError(f"no verifier is named {name!r}; there are {', '.join(sorted(_REGISTRY))}") from None


def verifiers_for(scheme: Scheme) -> list[str]:
    """The names of all verifiers that are lossless for drafts of this scheme, in alphabetical order.

    >>> from mdsd_core.schemes import WithReplacement
    >>> "rrs" in verifiers_for(WithReplacement(3))
    True
    """
    return sorted(name for name, rule in _REGISTRY.items() if rule.supports(scheme))
