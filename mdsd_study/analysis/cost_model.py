"""What a round costs, and so which tree pays: a model with measured parts.

A tree pays if the tokens that it adds are worth the time that it takes. Both sides are known before anything is
decoded: the expected tokens a round from :mod:`mdsd_study.analysis.rounds`, and the seconds from the cost of each part,
measured once on the machine in question: a target pass by its number of tokens, a draft pass likewise, drawing the
drafts of a node, the verifier's decision at a node, keeping the accepted path. Runs then check the prediction.

Devices: a GPU is waited for before the clock is read, so the same code measures there. Clocks: on a machine that others
use as well, the processor time of this process (``time.process_time``) says what a run with one thread would take if it
were alone; with several threads, or a GPU, only the wall-clock means something.
"""

import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats

from mdsd_core.decoding.drafters.base import Drafter
from mdsd_core.decoding.loop import LazyRows
from mdsd_core.decoding.scoring import Block, Scorer
from mdsd_core.distributions import SamplingParams, probabilities
from mdsd_core.randomness import RandomChoices
from mdsd_core.schemes import Deterministic, Scheme
from mdsd_core.trees.drafted_tree import DraftedTree
from mdsd_core.trees.rules import TreeRule
from mdsd_core.trees.shape import DraftTree
from mdsd_core.verifiers import Verifier
from mdsd_study.analysis.drawn_rounds import RecordedRound

#: Branching of a tree by depth.
Branching = tuple[int, ...]

#: Seconds since some moment.
Clock = Callable[[], float]


@dataclass(frozen=True)
class PassCost:
    """Seconds of one model pass against the number of tokens in it, linear between the sizes measured and beyond.

    Attributes
    ----------
    tokens : tuple of int
        The sizes measured, ascending, at least one.
    seconds : tuple of float
        What they took.

    Examples
    --------
    >>> cost = PassCost((1, 9), (0.04, 0.08))
    >>> round(cost.of(1), 6), round(cost.of(5), 6), round(cost.of(17), 6)
    (0.04, 0.06, 0.12)
    """

    tokens: tuple[int, ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.tokens or len(self.tokens) != len(self.seconds):
            raise ValueError(f"tokens and seconds must be as many, at least one, got {self.tokens} and {self.seconds}")
        if any(b <= a for a, b in itertools.pairwise(self.tokens)):
            raise ValueError(f"tokens must be ascending, got {self.tokens}")

    def of(self, tokens: float) -> float:
        """The seconds of a pass over this many tokens."""
        x, y = self.tokens, self.seconds
        if len(x) > 1 and tokens > x[-1]:
            return y[-1] + (y[-1] - y[-2]) / (x[-1] - x[-2]) * (tokens - x[-1])
        return float(np.interp(tokens, x, y))


@dataclass(frozen=True)
class RoundCost:
    """The parts of a round's time.

    Attributes
    ----------
    target : PassCost
        A pass of the target.
    draft : PassCost
        A pass of the draft model, or a proposal of a drafter without one, against the nodes asked about.
    draw : float
        Seconds to turn a node's draft logits into probabilities and to draw its drafts.
    verdict : float
        Seconds to turn a visited node's target logits into probabilities and to decide there.
    keep : float
        Seconds a round for the caches.
    """

    target: PassCost
    draft: PassCost
    draw: float
    verdict: float
    keep: float

    def parts(self, branching: Sequence[int], tokens_per_round: float) -> dict[str, float]:
        """The seconds of a round by kind of work.

        Parameters
        ----------
        branching : sequence of int
            Of the tree, by depth; empty for plain decoding.
        tokens_per_round : float
            The block efficiency: as many nodes are visited, leaves included. A leaf counts like a decision here,
            though only its row is turned into probabilities.

        Notes
        -----
        Siblings that were drawn twice are scored once, so this is an upper bound for independent drafts. The draft
        reads the last one or two committed tokens with the root; one is counted.

        Examples
        --------
        >>> one = PassCost((1,), (1.0,))
        >>> RoundCost(one, one, 0.1, 0.2, 0.0).parts((2, 2), 2.0)
        {'draft': 2.0, 'scheme': 0.30000000000000004, 'target': 1.0, 'verify': 0.4, 'cache': 0.0}
        """
        levels = [1, *np.cumprod(branching, dtype=np.int64).tolist()] if len(branching) else [1]
        inner = levels[:-1]
        return {
            "draft": sum(self.draft.of(nodes) for nodes in inner),
            "scheme": self.draw * sum(inner),
            "target": self.target.of(sum(levels)),
            "verify": self.verdict * tokens_per_round,
            "cache": self.keep,
        }

    def tokens_per_second(self, branching: Sequence[int], tokens_per_round: float) -> float:
        """Predicted speed, once the prompt has been read."""
        return tokens_per_round / sum(self.parts(branching, tokens_per_round).values())

    def speed_of_run(
        self, branching: Sequence[int], tokens_per_round: float, prompt: int, new_tokens: int, *, draft_reads: bool
    ) -> float:
        """Predicted tokens per second of a whole run, the prompt's passes included.

        Parameters
        ----------
        branching, tokens_per_round
            As for :meth:`parts`.
        prompt, new_tokens : int
            Lengths, in tokens.
        draft_reads : bool
            Whether the drafter is a model, which reads the prompt too.

        Examples
        --------
        >>> one = PassCost((1,), (1.0,))
        >>> RoundCost(one, one, 0.0, 0.0, 0.0).speed_of_run((), 1.0, 50, 4, draft_reads=False)
        0.8
        """
        reading = self.target.of(prompt) + (self.draft.of(prompt) if draft_reads else 0.0)
        return new_tokens / (reading + new_tokens / self.tokens_per_second(branching, tokens_per_round))


def branchings(most_nodes: int, *, widths: Sequence[int] = (1, 2, 3, 4), most_depth: int = 8) -> Iterator[Branching]:
    """All branchings of at most `most_nodes` drafts, each depth at most as wide as the one above it.

    >>> list(branchings(4, widths=(1, 2)))
    [(1,), (1, 1), (1, 1, 1), (1, 1, 1, 1), (2,), (2, 1)]
    """

    def below(prefix: Branching, level: int, nodes: int) -> Iterator[Branching]:
        for width in sorted(widths):
            if prefix and width > prefix[-1]:
                break
            total = nodes + level * width
            if total > most_nodes:
                break
            tree = (*prefix, width)
            yield tree
            if len(tree) < most_depth:
                yield from below(tree, level * width, total)

    yield from below((), 1, 0)


def best_tree(
    cost: RoundCost, tokens_per_round: Callable[[Branching], float], trees: Iterable[Branching]
) -> tuple[Branching, float]:
    """The tree with the highest predicted speed, and that speed; ``()`` is plain decoding, always tried.

    Examples
    --------
    A draft pass as dear as a target pass never pays; one that costs nothing does, until deeper tokens are rare:

    >>> one, free = PassCost((1,), (1.0,)), PassCost((1,), (0.0,))
    >>> chain = lambda tree: sum(0.5**d for d in range(len(tree) + 1))
    >>> best_tree(RoundCost(one, one, 0, 0, 0), chain, branchings(3, widths=(1,)))
    ((), 1.0)
    >>> best_tree(RoundCost(one, free, 0, 0, 0), chain, branchings(3, widths=(1,)))
    ((1, 1, 1), 1.875)
    """
    best: Branching = ()
    speed = cost.tokens_per_second((), 1.0)
    for tree in trees:
        found = cost.tokens_per_second(tree, tokens_per_round(tree))
        if found > speed:
            best, speed = tree, found
    return best, speed


def _wait() -> None:
    """Until all GPUs have done what they were given: models may lie on any of them, or on several."""
    if torch.cuda.is_initialized():
        for device in range(torch.cuda.device_count()):
            torch.cuda.synchronize(device)


def _median(work: Callable[[], Any], repeats: int, clock: Clock, prepare: Callable[[], Any] = lambda: None) -> float:
    """The seconds of the work, after once to warm up; what it begins with is prepared each time, and not timed."""
    spent = []
    for _ in range(1 + repeats):
        prepare()
        _wait()
        started = clock()
        work()
        _wait()
        spent.append(clock() - started)
    return statistics.median(spent[1:])


def measure_pass(
    scorer: Scorer, context: Sequence[int], sizes: Sequence[int], *, repeats: int = 5, clock: Clock = time.perf_counter
) -> PassCost:
    """Time passes over trees of these sizes behind a cached context: the median of some repeats, after one to warm up.

    Parameters
    ----------
    scorer : Scorer
        A model ready for draft trees; what it has cached is given up.
    context : sequence of int
        The tokens before the tree, at least two.
    sizes : sequence of int
        Numbers of tokens in a pass: a root and its children.
    repeats : int
        Passes of each size.
    clock : callable
        What time is read from.

    Examples
    --------
    >>> from mdsd_core.decoding.generate import as_scorer
    >>> from mdsd_core.models import tiny_random_pair
    >>> measure_pass(as_scorer(tiny_random_pair().target), [1, 2, 3], (1, 4), repeats=1).tokens
    (1, 4)
    """
    scorer.start(1)
    scorer.feed([Block.chain(list(context[:-1]), scored=0)])
    scorer.commit([range(len(context) - 1)])
    seconds = []
    for size in sorted(set(sizes)):
        tokens = [context[-1], *(context[i % len(context)] for i in range(size - 1))]
        block = Block(tokens, [-1, *([0] * (size - 1))], scored=size)

        def work(block: Block = block) -> None:
            scorer.feed([block])
            scorer.forget()

        seconds.append(_median(work, repeats, clock))
    return PassCost(tuple(sorted(set(sizes))), tuple(seconds))


def measure_proposal(
    drafter: Drafter, context: Sequence[int], nodes: int = 4, *, repeats: int = 5, clock: Clock = time.perf_counter
) -> PassCost:
    """Time the proposals of a drafter without a model: at one node, and at several nodes of one depth.

    Parameters
    ----------
    drafter : Drafter
        Such as the n-gram drafter or the prompt look-up.
    context : sequence of int
        The tokens before the tree; its first `nodes` different ones are the nodes, so at least as many must differ.
    nodes : int
        At least 2.
    repeats : int
        Proposals of each size.
    clock : callable
        What time is read from.

    Examples
    --------
    >>> from mdsd_core.decoding import PromptLookup
    >>> measure_proposal(PromptLookup(9), [1, 2, 3, 4], 2, repeats=1).tokens
    (1, 2)
    """
    tokens = list(dict.fromkeys(context))[:nodes]
    if len(tokens) < nodes:
        raise ValueError(f"context must hold at least {nodes} different tokens, got {len(tokens)}")
    tree = DraftedTree(DraftTree.from_branching((nodes, 1)), context[-1])
    children = tree.add_drafts(0, tokens, Deterministic(nodes))
    drafter.start(1)
    drafter.begin([context])
    one = _median(lambda: drafter.propose([tree], [[0]]), repeats, clock)
    more = _median(lambda: drafter.propose([tree], [children]), repeats, clock)
    drafter.forget()
    return PassCost((1, nodes), (one, more))


def measure_keep(
    scorer: Scorer, context: Sequence[int], nodes: int = 8, *, repeats: int = 5, clock: Clock = time.perf_counter
) -> float:
    """Seconds to keep a path of two tokens of a tree and to forget the rest; see :func:`measure_pass`.

    >>> from mdsd_core.decoding.generate import as_scorer
    >>> from mdsd_core.models import tiny_random_pair
    >>> 0 < measure_keep(as_scorer(tiny_random_pair().target), [1, 2, 3], repeats=1) < 10
    True
    """
    block = Block([context[-1], *([context[0]] * (nodes - 1))], [-1, *([0] * (nodes - 1))], scored=nodes)

    def prepare() -> None:
        scorer.start(1)
        scorer.feed([block])

    return _median(lambda: scorer.commit([[0, nodes - 1]]), repeats, clock, prepare)


def measure_draw(
    logits: Any,
    scheme: Scheme,
    sampling: SamplingParams,
    rng: np.random.Generator,
    *,
    repeats: int = 9,
    clock: Clock = time.perf_counter,
) -> float:
    """Seconds to turn draft logits into q and to draw a node's drafts.

    >>> from mdsd_core.schemes import WithReplacement
    >>> rng = np.random.default_rng(0)
    >>> 0 < measure_draw([0.0, 1.0], WithReplacement(2), SamplingParams(), rng, repeats=1) < 10
    True
    """
    return _median(lambda: scheme.sample(probabilities(logits, sampling), rng), repeats, clock)


def measure_verdict(
    target_logits: Any,
    draft_logits: Any,
    scheme: Scheme,
    rule: Verifier,
    sampling: SamplingParams,
    rng: np.random.Generator,
    *,
    repeats: int = 9,
    clock: Clock = time.perf_counter,
) -> float:
    """Seconds to turn target logits into p, to prepare the verifier and to judge a node's drafts.

    >>> from mdsd_core.schemes import WithReplacement
    >>> from mdsd_core.verifiers import verifier
    >>> rng, logits = np.random.default_rng(0), [0.0, 1.0]
    >>> seconds = measure_verdict(logits, logits, WithReplacement(2), verifier("rrs"), SamplingParams(), rng, repeats=1)
    >>> 0 < seconds < 10
    True
    """
    q = probabilities(draft_logits, sampling)
    drafts = scheme.sample(q, rng)

    def work() -> None:
        rule.prepare(probabilities(target_logits, sampling), q, scheme).verify(drafts, rng)

    return _median(work, repeats, clock)


def measure_walks(
    rule: TreeRule,
    rounds: Sequence[RecordedRound],
    rng: np.random.Generator,
    *,
    repeats: int = 3,
    clock: Clock = time.perf_counter,
) -> tuple[float, float]:
    """What a tree rule takes for a round: it walks recorded trees again.

    Parameters
    ----------
    rule : TreeRule
        Lossless for the drafts of the trees.
    rounds : sequence of RecordedRound
        Whose trees are walked; at least one.
    rng : numpy.random.Generator
        Makes the choices.
    repeats : int
        How often all trees are walked, after once to warm up.
    clock : callable
        What time is read from.

    Returns
    -------
    seconds, decisions : float
        Of a round: the median over the repeats, and the mean number of nodes with drafts that the rule looked at. The
        time holds the softmax of the target's row at every node looked at, as in the decoding loop.

    Examples
    --------
    A chain of two drafts of which all are accepted: two decisions.

    >>> from mdsd_core.decoding import ModelDrafter
    >>> from mdsd_core.decoding.generate import as_scorer
    >>> from mdsd_core.trees.rules import tree_rule
    >>> from mdsd_core.models import tiny_random_pair
    >>> from mdsd_study.analysis.drawn_rounds import record_rounds
    >>> from mdsd_core.verifiers import verifier
    >>> pair = tiny_random_pair(5, noise=0.0)
    >>> found = record_rounds(
    ...     as_scorer(pair.target), ModelDrafter(as_scorer(pair.target)), [1, 2], DraftTree.chain(2),
    ...     "with_replacement", "rrs", SamplingParams(), rounds=3,
    ... )  # fmt: skip
    >>> measure_walks(tree_rule("node", verifier("rrs")), found, np.random.default_rng(0), repeats=1)[1]
    2.0
    """
    if not rounds:
        raise ValueError("rounds must hold at least one round")
    with np.errstate(divide="ignore"):
        logits = [{node: np.log(p) for node, p in one.p.items()} for one in rounds]
    choices, sampling = RandomChoices(rng), SamplingParams()
    decided: list[int] = []

    def work() -> None:
        decided.append(0)
        for one, rows in zip(rounds, logits, strict=True):

            def warp(node: int, one: RecordedRound = one, rows: dict[int, Any] = rows) -> Any:
                decided[-1] += bool(one.tree.drafts[node].size)
                return probabilities(rows[node], sampling)

            rule.walk(one.tree, LazyRows(warp), one.q, choices)

    seconds = _median(work, repeats, clock)
    return seconds / len(rounds), sum(decided[1:]) / (repeats * len(rounds))


@dataclass(frozen=True)
class Check:
    """How well predicted speeds fit measured ones.

    Attributes
    ----------
    rank_correlation : float
        Spearman's, over all cells; nan where it is not defined.
    median_error : float
        The median of ``|predicted / measured - 1|``.
    regret : float
        What the tree predicted best loses against the tree measured best: ``1 - speed / best speed``.

    Examples
    --------
    >>> Check(rank_correlation=1.0, median_error=0.1, regret=0.0).regret
    0.0
    """

    rank_correlation: float
    median_error: float
    regret: float


def check_prediction(predicted: Sequence[float], measured: Sequence[float]) -> Check:
    """Compare predictions with measurements, cell by cell.

    Examples
    --------
    >>> check_prediction([10.0, 20.0, 30.0], [10.0, 25.0, 20.0])
    Check(rank_correlation=0.5, median_error=0.2, regret=0.2)
    """
    a, b = np.asarray(predicted, dtype=np.float64), np.asarray(measured, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or not a.size:
        raise ValueError(f"predicted and measured must be lists of one length, got shapes {a.shape} and {b.shape}")
    if not ((a > 0).all() and (b > 0).all()):
        raise ValueError("predicted and measured must be speeds > 0")
    varied = np.ptp(a) > 0 and np.ptp(b) > 0
    return Check(
        round(float(stats.spearmanr(a, b).statistic), 12) if varied else float("nan"),
        round(float(np.median(np.abs(a / b - 1))), 12),
        round(float(1 - b[int(np.argmax(a))] / b.max()), 12),
    )
