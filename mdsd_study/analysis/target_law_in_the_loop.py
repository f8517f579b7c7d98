r"""Does a verifier accept in the loop as often as its exact acceptance says? A test on real models, visit by visit.

At every node that a round visits, the chance that one of its drafts is accepted is known before the verifier decides:
given the drafts at hand it is the mass of ``output_law`` on them, before they were drawn it is ``acceptance(p, q)``.
Accepted minus expected, summed over the visited nodes, is a martingale whatever the loop makes of the outcome (which
nodes are visited next, where the text goes, where it stops), with variance at most the sum of ``a (1 - a)``. So its
z-score is about standard normal in a right loop, however dependent the visits are, while a cache that is off by one
row, a draft that is judged by another node's q, or a biased coin moves it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mdsd_core.decoding.drafters.base import Drafter
from mdsd_core.decoding.generate import streams
from mdsd_core.decoding.loop import DecodingLoop
from mdsd_core.decoding.request import Request
from mdsd_core.decoding.scoring import Scorer
from mdsd_core.decoding.settings import LoopSettings
from mdsd_core.distributions import SamplingParams
from mdsd_core.randomness import Choices
from mdsd_core.schemes.names import FAMILIES, scheme_family, scheme_of
from mdsd_core.trees.drafted_tree import DraftedTree
from mdsd_core.trees.rules import NodeRule, Rows, Walk
from mdsd_core.trees.shape import DraftTree
from mdsd_core.verifiers import Estimate, Verifier, verifier, verifiers_for
from mdsd_study.statistics import Interval, bootstrap_mean

#: A score whose variance is smaller than this says nothing: hardly a coin was tossed.
LEAST_VARIANCE = 0.5


@dataclass(frozen=True)
class Visited:
    """A node at which a verifier decided.

    Attributes
    ----------
    depth : int
        Of its drafts, from 1.
    accepted : bool
        Whether one of them was accepted.
    given_drafts : float
        The chance of that for the drafts at hand.
    given_nodes : float or None
        The chance before they were drawn, over drafts and verdict; None where only a Monte Carlo estimate of it exists.
    slack : float
        How wide the bracket of `given_nodes` is, 0 where it is exact.

    Examples
    --------
    >>> Visited(1, True, 0.9, None).slack
    0.0
    """

    depth: int
    accepted: bool
    given_drafts: float
    given_nodes: float | None
    slack: float = 0.0


class WatchedNodes(NodeRule):
    """Node by node as :class:`~mdsd_core.trees.rules.NodeRule`, keeping what was to be expected at each visit.

    Parameters
    ----------
    rule : Verifier
        The verifier.

    Examples
    --------
    >>> WatchedNodes(verifier("rrs")).visits
    []
    """

    def __init__(self, rule: Verifier) -> None:
        super().__init__(rule)
        self.visits: list[Visited] = []

    def walk(self, tree: DraftedTree, p: Rows, q: Rows, choices: Choices) -> Walk:
        """See :meth:`~mdsd_core.trees.rules.TreeRule.walk`."""
        walk = super().walk(tree, p, q, choices)
        for node, child in zip((0, *walk.path), (*walk.path, None), strict=True):
            drafts, scheme = tree.drafts[node], tree.schemes[node]
            if not drafts.size or scheme is None:
                continue
            law = self.verifier.prepare(p[node], q[node], scheme).output_law(drafts)
            exact = self.verifier.acceptance(p[node], q[node], scheme)
            given, slack = (exact.value, exact.high - exact.low) if isinstance(exact, Estimate) else (exact, 0.0)
            known = not isinstance(exact, Estimate) or exact.level == 1.0  # a proved bracket, not a sampled one
            self.visits.append(
                Visited(
                    tree.depths[node] + 1,
                    child is not None,
                    float(law[np.unique(drafts)].sum()),
                    float(given) if known else None,
                    float(slack) if known else 0.0,
                )
            )
        return walk


@dataclass(frozen=True)
class Score:
    """One z-score.

    Attributes
    ----------
    depth : int
        Of the drafts; 0 for all visits together.
    given : {"drafts", "nodes"}
        What the expectation is given: the drafts at hand, or p and q at the node only.
    visits, accepted : int
        How many, and how many of them accepted.
    expected : float
        The sum of the expectations.
    z : float
        ``(accepted - expected) / sqrt(sum a (1 - a))``, the difference taken towards 0 by the slack of the brackets.

    Examples
    --------
    >>> Score(0, "drafts", 100, 60, 50.0, 2.0).z
    2.0
    """

    depth: int
    given: str
    visits: int
    accepted: int
    expected: float
    z: float


def scores(visits: Iterable[Visited]) -> list[Score]:
    """z-scores over all visits and by depth, against both expectations; those with hardly any variance are left out.

    Parameters
    ----------
    visits : iterable of Visited
        At least one.

    Examples
    --------
    >>> found = scores([Visited(1, i < 8, 0.5, None) for i in range(16)])
    >>> [(one.depth, one.given, one.z) for one in found]
    [(0, 'drafts', 0.0), (1, 'drafts', 0.0)]
    """
    visits = list(visits)
    found = []
    for depth in (0, *sorted({one.depth for one in visits})):
        mine = [one for one in visits if depth in (0, one.depth)]
        for given in ("drafts", "nodes"):
            known = [one for one in mine if given == "drafts" or one.given_nodes is not None]
            chances = np.clip([one.given_drafts if given == "drafts" else one.given_nodes for one in known], 0.0, 1.0)
            variance = float((chances * (1 - chances)).sum())
            if variance < LEAST_VARIANCE:
                continue
            accepted, expected = sum(one.accepted for one in known), float(chances.sum())
            slack = sum(one.slack for one in known) if given == "nodes" else 0.0
            difference = accepted - expected
            apart = np.sign(difference) * max(abs(difference) - slack, 0.0)
            found.append(Score(depth, given, len(known), accepted, expected, float(apart / np.sqrt(variance))))
    return found


@dataclass(frozen=True)
class MartingaleRun:
    """What a watched run saw.

    Attributes
    ----------
    visits : list of Visited
        Of all prompts.
    block_efficiency : Interval
        Tokens a round before cuts, with its interval over prompts.

    Examples
    --------
    >>> MartingaleRun([Visited(1, True, 0.5, None)], Interval(2.0, 2.0, 2.0, 0.95, 1, 1)).largest
    nan
    """

    visits: list[Visited]
    block_efficiency: Interval

    @property
    def largest(self) -> float:
        """The largest of the absolute z-scores; nan if there is none."""
        return max((abs(one.z) for one in scores(self.visits)), default=float("nan"))


def watched_run(
    target: Scorer,
    drafter: Drafter,
    prompts: Sequence[Sequence[int]],
    scheme: str,
    rule: str | Verifier,
    branching: Sequence[int],
    sampling: SamplingParams,
    *,
    max_new_tokens: int,
    seed: int = 0,
    batch_size: int = 1,
) -> MartingaleRun:
    """Decode prompts node by node and keep what was to be expected at each visited node.

    Parameters
    ----------
    target, drafter, scheme, sampling
        As for :func:`mdsd_core.decoding.generate.generate`.
    prompts : sequence of sequence of int
        Token ids, each of its own random stream.
    rule : str or Verifier
        The verifier, by name or itself.
    branching : sequence of int
        Of the tree, by depth.
    max_new_tokens : int
        A text ends there; nothing else ends it.
    seed : int
        Of all random choices.
    batch_size : int
        Prompts that are decoded together: a matter of speed only.

    Examples
    --------
    >>> from mdsd_core.decoding import ModelDrafter
    >>> from mdsd_core.decoding.generate import as_scorer
    >>> from mdsd_core.models import tiny_random_pair
    >>> pair = tiny_random_pair(5)
    >>> run = watched_run(
    ...     as_scorer(pair.target), ModelDrafter(as_scorer(pair.draft)), [[1, 2], [3]], "with_replacement", "rrs",
    ...     (2, 2), SamplingParams(), max_new_tokens=30, batch_size=2,
    ... )  # fmt: skip
    >>> run.largest < 4, 1 < run.block_efficiency.mean < 3
    (True, True)
    """
    watched = WatchedNodes(verifier(rule) if isinstance(rule, str) else rule)
    choices = streams(seed, len(prompts))
    tokens: list[int] = []
    of_prompt: list[str] = []
    for first in range(0, len(prompts), batch_size):
        requests = [
            Request(i, list(prompts[i]), len(prompts[i]), max_new_tokens, choices[i])
            for i in range(first, min(first + batch_size, len(prompts)))
        ]
        tree = DraftTree.from_branching(branching)
        settings = LoopSettings(tree, scheme_family(scheme), watched, sampling)
        loop = DecodingLoop(target, drafter, requests, settings)
        while loop.active:
            loop.step()
        tokens += [record.accepted + 1 for record in loop.records]
        of_prompt += [str(record.request) for record in loop.records]
    return MartingaleRun(watched.visits, bootstrap_mean(tokens, of_prompt, seed=0))


def lossless_cells(branching: Sequence[int]) -> list[tuple[str, str]]:
    """(scheme, verifier) for every verifier that is lossless for the drafts of every node of a tree.

    >>> ("with_replacement", "rrs") in lossless_cells((4, 2)), ("spechub", "spechub") in lossless_cells((4, 2))
    (True, False)
    """
    found = []
    for name in FAMILIES:
        schemes = [scheme_of(name, n) for n in set(branching)]
        able = [set() if scheme is None else set(verifiers_for(scheme)) for scheme in schemes]
        found += [(name, rule) for rule in sorted(set.intersection(*able))]
    return found
