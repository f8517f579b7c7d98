r"""The only place where an acceptance number is defined.

Papers use one word, "acceptance rate", and one letter, alpha, for different numbers. Here each has a name, a formula
and a worked example. A *round* is one target pass over a draft tree; it *accepts* the drafts on the accepted path,
counted by the rule, before any cut, and *emits* tokens, counted after the cut at the end-of-sequence token or the
length limit. A node is *visited* if it is on the accepted path (the root always is) and drafts were drawn at it.

The worked example that all docstrings share: three rounds on a binary tree of depth 2 (6 drafts each) accept 0, 1 and 2
drafts and emit 1, 2 and 2 tokens (the last one was cut).

>>> rounds = [
...     RoundRecord(0, 6, (Visit(1, 2, -1),), 0, 1),
...     RoundRecord(0, 6, (Visit(1, 2, 0), Visit(2, 2, -1)), 1, 2),
...     RoundRecord(0, 6, (Visit(1, 2, 1), Visit(2, 2, 0)), 2, 2),
... ]
>>> m = Metrics(tuple(rounds), gamma=2, target_calls=3, draft_calls=6)
>>> m.accepted_per_round, m.block_efficiency, round(m.emitted_per_round, 4)
(1.0, 2.0, 1.6667)
>>> round(m.accepted_per_draft, 4), m.alpha_mcsd, m.alpha_node
(0.1667, 0.5, 0.6)
>>> m.acceptance_by_depth, m.accepted_by_depth
((0.6666666666666666, 0.5), (0.6666666666666666, 0.3333333333333333))
>>> m.acceptance_by_rank
(0.4, 0.2)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Visit:
    """One decision: drafts at a node that the accepted path reached.

    Attributes
    ----------
    depth : int
        The depth of the drafts, 1 for those at the root.
    drafts : int
        How many were drawn, repetitions included.
    accepted_index : int
        The (lowest) index of the accepted draft, -1 if none was accepted.

    Examples
    --------
    >>> Visit(depth=1, drafts=4, accepted_index=-1).drafts
    4
    """

    depth: int
    drafts: int
    accepted_index: int


@dataclass(frozen=True)
class RoundRecord:
    """One round of one request.

    Attributes
    ----------
    request : int
        Which prompt.
    drawn : int
        Drafts drawn in the whole tree, repetitions included.
    visits : tuple of Visit
        From the root down.
    accepted : int
        Drafts accepted by the rule.
    emitted : int
        Tokens emitted after cuts.

    Examples
    --------
    >>> RoundRecord(request=0, drawn=4, visits=(Visit(1, 4, 2),), accepted=1, emitted=2).accepted
    1
    """

    request: int
    drawn: int
    visits: tuple[Visit, ...]
    accepted: int
    emitted: int


@dataclass
class Times:
    """Seconds spent by kind of work.

    >>> Times(draft=1.0, target=2.0).total
    3.0
    """

    draft: float = 0.0
    scheme: float = 0.0
    target: float = 0.0
    verify: float = 0.0
    cache: float = 0.0

    @property
    def total(self) -> float:
        """The sum."""
        return self.draft + self.scheme + self.target + self.verify + self.cache


def _ratio(a: float, b: float) -> float:
    return a / b if b else math.nan


@dataclass(frozen=True)
class Metrics:
    """Numbers of a run; nan where nothing was counted.

    Parameters
    ----------
    rounds : tuple of RoundRecord
        All rounds of all requests.
    gamma : int
        The depth of the draft tree.
    target_calls : int
        Target passes that scored a tree; a batch counts once.
    draft_calls : int
        Passes of the draft model (for other drafters: proposals asked for).
    prefill_calls : int
        Further passes over long prompts, target and draft.
    times : Times
        Seconds by kind of work.

    Examples
    --------
    >>> one = RoundRecord(0, 6, (Visit(1, 2, 0), Visit(2, 2, -1)), 1, 2)
    >>> run = Metrics((one,), gamma=2, target_calls=1, draft_calls=2)
    >>> run.block_efficiency, run.accepted_by_depth
    (2.0, (1.0, 0.0))
    """

    rounds: tuple[RoundRecord, ...]
    gamma: int
    target_calls: int
    draft_calls: int
    prefill_calls: int = 0
    times: Times = field(default_factory=Times)

    @property
    def accepted(self) -> int:
        """Drafts accepted by the rule, before any cut."""
        return sum(r.accepted for r in self.rounds)

    @property
    def emitted(self) -> int:
        """Tokens emitted, after cuts."""
        return sum(r.emitted for r in self.rounds)

    @property
    def drawn(self) -> int:
        """Drafts drawn, repetitions included."""
        return sum(r.drawn for r in self.rounds)

    @property
    def accepted_per_round(self) -> float:
        """Accepted / rounds: the mean accepted length. Example: (0 + 1 + 2) / 3 = 1."""
        return _ratio(self.accepted, len(self.rounds))

    @property
    def block_efficiency(self) -> float:
        """1 + accepted per round: tokens per target call and request before cuts. Example: 2."""
        return 1.0 + self.accepted_per_round

    @property
    def emitted_per_round(self) -> float:
        """Emitted / rounds: what the user gets per target call, cuts taken off. Example: 5 / 3."""
        return _ratio(self.emitted, len(self.rounds))

    @property
    def accepted_per_draft(self) -> float:
        """Accepted / drawn: the share of all drafts that was of use. Example: 3 / 18."""
        return _ratio(self.accepted, self.drawn)

    @property
    def alpha_mcsd(self) -> float:
        """Accepted / (rounds x gamma): the "acceptance rate" of Yang et al. (arXiv 2401.06706). Example: 3 / (3 x 2).

        It depends on the depth of the tree: a perfect draft has 1, and deeper trees have less.
        """
        return _ratio(self.accepted, len(self.rounds) * self.gamma)

    @property
    def alpha_node(self) -> float:
        """Accepting visits / visits: the "acceptance rate" alpha of Hu et al. (arXiv 2502.18779). Example: 3 / 5.

        The probability that one step of n drafts yields a draft, averaged over the visited nodes; what the optimal rate
        bounds node by node.
        """
        visits = [v for r in self.rounds for v in r.visits]
        return _ratio(sum(v.accepted_index >= 0 for v in visits), len(visits))

    def _visits(self, depth: int) -> list[Visit]:
        return [v for r in self.rounds for v in r.visits if v.depth == depth]

    @property
    def acceptance_by_depth(self) -> tuple[float, ...]:
        """By depth d: accepted at d / visited with drafts at d, that is, given that depth d was reached.

        Example: (2/3, 1/2).
        """
        rows = [self._visits(d) for d in range(1, self.gamma + 1)]
        return tuple(_ratio(sum(v.accepted_index >= 0 for v in row), len(row)) for row in rows)

    @property
    def accepted_by_depth(self) -> tuple[float, ...]:
        """By depth d: accepted at d / all rounds. Their sum is accepted per round. Example: (2/3, 1/3)."""
        rows = [self._visits(d) for d in range(1, self.gamma + 1)]
        return tuple(_ratio(sum(v.accepted_index >= 0 for v in row), len(self.rounds)) for row in rows)

    @property
    def acceptance_by_rank(self) -> tuple[float, ...]:
        """By place j in the order drawn: accepted draft j / visits with at least j + 1 drafts. Example: (2/5, 1/5)."""
        visits = [v for r in self.rounds for v in r.visits]
        most = max((v.drafts for v in visits), default=0)
        return tuple(
            _ratio(sum(v.accepted_index == j for v in visits), sum(v.drafts > j for v in visits)) for j in range(most)
        )

    def of_request(self, request: int) -> tuple[RoundRecord, ...]:
        """The rounds of one request."""
        return tuple(r for r in self.rounds if r.request == request)

    def summary(self) -> dict[str, Any]:
        """All numbers as a JSON-ready dictionary (nan becomes None)."""
        numbers: dict[str, Any] = {name: _plain(getattr(self, name)) for name in _SUMMARY}
        numbers["rounds"] = len(self.rounds)
        numbers["seconds"] = {**vars(self.times), "total": self.times.total}
        return numbers


_SUMMARY = (
    "block_efficiency",
    "accepted_per_round",
    "emitted_per_round",
    "accepted_per_draft",
    "alpha_mcsd",
    "alpha_node",
    "acceptance_by_depth",
    "accepted_by_depth",
    "acceptance_by_rank",
    "accepted",
    "emitted",
    "drawn",
    "gamma",
    "target_calls",
    "draft_calls",
    "prefill_calls",
)


def _plain(value: Any) -> Any:
    if isinstance(value, Sequence):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value
