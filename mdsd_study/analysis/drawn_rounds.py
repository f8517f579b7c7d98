"""One round of the decoding loop, recorded and drawn step by step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mdsd_core.decoding.drafters.base import Drafter
from mdsd_core.decoding.generate import streams
from mdsd_core.decoding.loop import DecodingLoop, Request
from mdsd_core.decoding.scoring import Scorer
from mdsd_core.decoding.settings import LoopSettings
from mdsd_core.distributions import SamplingParams
from mdsd_core.randomness import Choices
from mdsd_core.schemes import Scheme
from mdsd_core.schemes.names import scheme_family
from mdsd_core.trees.drafted_tree import DraftedTree
from mdsd_core.trees.rules import Rows, TreeRule, Walk, tree_rule
from mdsd_core.trees.shape import DraftTree
from mdsd_core.verifiers import verifier
from mdsd_study.analysis.rounds import RoundRule
from mdsd_study.report.figures import MARKERS, PALETTE

_ACCEPTED, _REJECTED, _UNSEEN, _FINAL = PALETTE[2], PALETTE[1], "#8a8a8a", PALETTE[0]


#: Colour and marker by rule; the scheme is told by filling and line, see `rule_style`.
_RULES = (("rrs", "node"), ("kseq", "node"), ("optimal", "node"), ("optimal", "path"), ("greedy", "node"))


def rule_style(rule: RoundRule) -> dict[str, Any]:
    """How a rule is drawn wherever rules are compared on trees, as arguments of ``Axes.plot``.

    The rule gives colour and marker; drafts without replacement have hollow markers and dashed lines.

    Raises ValueError for a rule that has no place in these figures.

    Examples
    --------
    >>> both = [rule_style(RoundRule("optimal", scheme)) for scheme in ("with_replacement", "without_replacement")]
    >>> [style["linestyle"] for style in both], both[0]["color"] == both[1]["color"]
    (['-', '--'], True)
    """
    key = (rule.verifier.removesuffix("_without"), rule.tree_rule)
    if key not in _RULES:
        raise ValueError(f"rule must be one of {_RULES} by verifier and tree rule, got {rule}")
    i, hollow = _RULES.index(key), rule.scheme == "without_replacement"
    return {
        "color": PALETTE[i],
        "marker": MARKERS[i],
        "markerfacecolor": "white" if hollow else PALETTE[i],
        "linestyle": "--" if hollow else "-",
    }


@dataclass(frozen=True, eq=False)
class RecordedRound:
    """What happened in one round.

    Attributes
    ----------
    tree : DraftedTree
        The drafts.
    walk : Walk
        The accepted path and the token after it.
    p, q : dict of int to ndarray
        By node: the target's distribution at every node, the draft's where drafts were drawn.

    Examples
    --------
    >>> from mdsd_core.decoding import ModelDrafter
    >>> from mdsd_core.decoding.generate import as_scorer
    >>> from mdsd_core.models import tiny_random_pair
    >>> pair = tiny_random_pair(5, noise=0.0)
    >>> rounds = record_rounds(
    ...     as_scorer(pair.target), ModelDrafter(as_scorer(pair.draft)), [1, 2], DraftTree.chain(2),
    ...     "with_replacement", "rrs", SamplingParams(), rounds=3,
    ... )  # fmt: skip
    >>> 0 <= rounds[0].accepted <= 2
    True
    """

    tree: DraftedTree
    walk: Walk
    p: dict[int, NDArray[np.float64]]
    q: dict[int, NDArray[np.float64]]

    @property
    def accepted(self) -> int:
        """How many drafts were accepted."""
        return len(self.walk.path)

    @property
    def resampled(self) -> bool:
        """True if the last token came after a rejection, False if it is a bonus after a complete path."""
        return bool(self.tree.drafts[self.walk.last].size)


class RecordingRule(TreeRule):
    """A tree rule that does what another one does, and keeps what it saw.

    Parameters
    ----------
    rule : TreeRule
        The rule that decides.

    Examples
    --------
    >>> rule = RecordingRule(tree_rule("node", verifier("rrs")))
    >>> rule.rounds, rule.verifier.name
    ([], 'rrs')
    """

    name = "recording"

    def __init__(self, rule: TreeRule) -> None:
        super().__init__(rule.verifier)
        self.rule = rule
        self.rounds: list[RecordedRound] = []

    def supports(self, scheme: Scheme) -> bool:
        """Whatever the rule supports."""
        return self.rule.supports(scheme)

    def walk(self, tree: DraftedTree, p: Rows, q: Rows, choices: Choices) -> Walk:
        """See :meth:`TreeRule.walk`."""
        walk = self.rule.walk(tree, p, q, choices)
        drafted = {node: q[node] for node in range(len(tree)) if tree.drafts[node].size}
        self.rounds.append(RecordedRound(tree, walk, {node: p[node] for node in range(len(tree))}, drafted))
        return walk


def record_rounds(
    target: Scorer,
    drafter: Drafter,
    prompt: Sequence[int],
    tree: DraftTree,
    scheme: str,
    verifier_name: str,
    sampling: SamplingParams,
    *,
    rounds: int = 8,
    seed: int = 0,
) -> list[RecordedRound]:
    """Decode some rounds and keep everything that was seen in them.

    Parameters
    ----------
    target, drafter, tree, scheme, sampling
        As for :func:`mdsd_core.decoding.generate.generate`.
    prompt : sequence of int
        One prompt.
    verifier_name : str
        The verifier, which judges node by node.
    rounds : int
        How many rounds.
    seed : int
        Of all random choices.

    Examples
    --------
    >>> from mdsd_core.decoding import ModelDrafter
    >>> from mdsd_core.decoding.generate import as_scorer
    >>> from mdsd_core.models import tiny_random_pair
    >>> pair = tiny_random_pair(5, noise=0.0)
    >>> rounds = record_rounds(
    ...     as_scorer(pair.target), ModelDrafter(as_scorer(pair.draft)), [1, 2], DraftTree.chain(2),
    ...     "with_replacement", "rrs", SamplingParams(), rounds=3,
    ... )  # fmt: skip
    >>> len(rounds)
    3
    """
    rule = RecordingRule(tree_rule("node", verifier(verifier_name)))
    request = Request(0, list(prompt), len(prompt), 1 + rounds * (tree.depth + 1), streams(seed, 1)[0])
    settings = LoopSettings(tree, scheme_family(scheme), rule, sampling)
    loop = DecodingLoop(target, drafter, [request], settings)
    for _ in range(rounds):
        loop.step()
    return rule.rounds


def telling_round(rounds: Sequence[RecordedRound]) -> RecordedRound:
    """The first round in which something was accepted and then something rejected, else the one that accepted most.

    Raises ValueError if there is no round.

    Examples
    --------
    >>> tree = DraftedTree(DraftTree.chain(1), root=0)
    >>> one = RecordedRound(tree, Walk((), 1), {}, {})
    >>> telling_round([one]).accepted
    0
    """
    if not rounds:
        raise ValueError("rounds must hold at least one round")
    for one in rounds:
        if one.accepted and one.resampled:
            return one
    return max(rounds, key=lambda one: one.accepted)


def layout(parents: Sequence[int]) -> NDArray[np.float64]:
    """Where the nodes of a tree stand: x is the depth, y such that leaves are evenly spaced and parents central.

    Parameters
    ----------
    parents : sequence of int, length N
        ``parents[i] < i`` is the parent of node i, -1 for the root.

    Returns
    -------
    ndarray, shape (N, 2)
        Leaves have y = 0, -1, -2, ... in the order in which a walk through the tree meets them.

    Examples
    --------
    >>> layout([-1, 0, 0, 1, 1])
    array([[ 0.  , -1.25],
           [ 1.  , -0.5 ],
           [ 1.  , -2.  ],
           [ 2.  ,  0.  ],
           [ 2.  , -1.  ]])
    """
    children: list[list[int]] = [[] for _ in parents]
    depth = [0] * len(parents)
    for node, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(node)
            depth[node] = depth[parent] + 1
    place = np.zeros((len(parents), 2))
    place[:, 0] = depth
    leaves = 0

    def settle(node: int) -> None:
        nonlocal leaves
        for child in children[node]:
            settle(child)
        if children[node]:
            place[node, 1] = np.mean([place[child, 1] for child in children[node]])
        else:
            place[node, 1] = -leaves
            leaves += 1

    settle(0)
    return place


def shown(text: str, longest: int = 12) -> str:
    r"""A token as a label: spaces, line ends and empty strings visible, long ones cut.

    >>> shown(" the"), shown("\n"), shown("")
    ('␣the', '↵', '∅')
    """
    text = text.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥").replace("$", r"\$") or "∅"
    return text if len(text) <= longest else text[: longest - 1] + "…"


def draw_round(record: RecordedRound, decode: Callable[[int], str]) -> Figure:
    """Three steps of a round, one below the other: drafted, scored, verified.

    Parameters
    ----------
    record : RecordedRound
        The round.
    decode : callable
        Token id -> text.

    Returns
    -------
    Figure
        Above: the tree with the draft's probabilities. Middle: the same nodes with the target's. Below: what became of
        them (accepted, a sibling not accepted, below such a one and never looked at), and the token after the path.

    Examples
    --------
    >>> from mdsd_core.decoding import ModelDrafter
    >>> from mdsd_core.decoding.generate import as_scorer
    >>> from mdsd_core.models import tiny_random_pair
    >>> pair = tiny_random_pair(5, noise=0.0)
    >>> rounds = record_rounds(
    ...     as_scorer(pair.target), ModelDrafter(as_scorer(pair.draft)), [1, 2], DraftTree.chain(2),
    ...     "with_replacement", "rrs", SamplingParams(), rounds=3,
    ... )  # fmt: skip
    >>> len(draw_round(rounds[0], str).axes)
    3
    """
    place = layout(record.tree.parents)
    leaves = 1 - place[:, 1].min()
    fig = Figure(figsize=(7.0, max(5.5, 0.85 * leaves + 2.6)), layout="constrained")
    steps = {
        "1. drafted: probabilities under the draft": record.q,
        "2. scored in one pass: probabilities under the target": record.p,
        "3. verified": None,
    }
    for ax, (title, rows) in zip(fig.subplots(3, 1), steps.items(), strict=True):
        _draw_tree(ax, record, place, decode, rows)
        ax.set_title(title, loc="left")
    handles = [
        fig.axes[2].plot([], [], "s", color=color, markersize=9, label=text)[0]
        for color, text in (
            (_ACCEPTED, "accepted"),
            (_REJECTED, "not accepted"),
            (_UNSEEN, "never looked at"),
            (_FINAL, "resampled" if record.resampled else "bonus"),
        )
    ]
    fig.legend(handles=handles, loc="outside lower center", ncols=4)
    return fig


def _colour(record: RecordedRound, node: int) -> str:
    tree, path = record.tree, record.walk.path
    if node == 0 or node in path:
        return _ACCEPTED
    return _REJECTED if tree.parents[node] in (0, *path) else _UNSEEN


def _draw_tree(
    ax: Axes,
    record: RecordedRound,
    place: NDArray[np.float64],
    decode: Callable[[int], str],
    rows: dict[int, NDArray[np.float64]] | None,
) -> None:
    """The tree with the probabilities of its tokens in `rows`, or with what became of them."""
    tree, final = record.tree, rows is None
    for node in range(1, len(tree)):
        both = place[[tree.parents[node], node]]
        colour = _colour(record, node) if final else _UNSEEN
        ax.plot(both[:, 0], both[:, 1], color=colour, linewidth=2.2 if final and colour == _ACCEPTED else 1.0, zorder=1)
    for node in range(len(tree)):
        text = shown(decode(tree.tokens[node]))
        parent = tree.parents[node]
        times = int(np.count_nonzero(tree.drafts[parent] == tree.tokens[node])) if node else 1
        text += f" ×{times}" if times > 1 else ""
        if rows is not None and node:
            text += f"  {rows[parent][tree.tokens[node]]:.2f}"
        _label(ax, place[node], text, _colour(record, node) if final else "#404040")
    if final:
        last = place[record.walk.last]
        below = place[:, 1].min() - 1.0
        at = np.array([last[0] + 1.0, below])
        ax.plot([last[0], at[0]], [last[1], at[1]], color=_FINAL, linestyle="--", linewidth=1.6, zorder=1)
        _label(ax, at, shown(decode(record.walk.token)), _FINAL)
    ax.set_xlim(-0.35, place[:, 0].max() + (1.45 if final and record.accepted == place[:, 0].max() else 0.55))
    ax.set_ylim(place[:, 1].min() - (1.7 if final else 0.7), 0.7)
    ax.set_axis_off()


def _label(ax: Axes, at: NDArray[np.float64], text: str, colour: str) -> None:
    box: dict[str, Any] = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": colour, "linewidth": 1.4}
    ax.text(at[0], at[1], text, ha="center", va="center", fontsize=9.5, color=colour, bbox=box, zorder=2)


def draw_residual(record: RecordedRound, decode: Callable[[int], str], tokens: int = 8) -> Figure:
    """Where the last token came from: p, q and what p leaves over, at the node after which it was drawn.

    Parameters
    ----------
    record : RecordedRound
        A round whose last token was resampled.
    decode : callable
        Token id -> text.
    tokens : int
        How many tokens are shown, by the larger of p and q; the emitted one and the drafts are always among them.

    Raises
    ------
    ValueError
        If the path was complete: then the token is drawn from p itself.

    Examples
    --------
    >>> from mdsd_core.decoding import ModelDrafter
    >>> from mdsd_core.decoding.generate import as_scorer
    >>> from mdsd_core.models import tiny_random_pair
    >>> pair = tiny_random_pair(5, noise=0.0)
    >>> rounds = record_rounds(
    ...     as_scorer(pair.target), ModelDrafter(as_scorer(pair.draft)), [1, 2], DraftTree.chain(2),
    ...     "with_replacement", "rrs", SamplingParams(), rounds=3,
    ... )  # fmt: skip
    >>> rejected = [one for one in rounds if one.resampled]
    >>> [len(draw_residual(one, str).axes) for one in rejected[:1]] in ([], [1])
    True
    """
    node = record.walk.last
    if not record.resampled:
        raise ValueError("record must end with a resampled token; after a complete path the token is drawn from p")
    p, q = record.p[node], record.q[node]
    wanted = dict.fromkeys([*record.tree.drafts[node].tolist(), record.walk.token])
    wanted |= dict.fromkeys(np.argsort(-np.maximum(p, q), kind="stable")[:tokens].tolist())
    ids = sorted(list(wanted)[:tokens], key=lambda x: -float(p[x]))
    fig = Figure(figsize=(7.0, 3.6), layout="constrained")
    ax = fig.subplots()
    x = np.arange(len(ids))
    ax.bar(x - 0.27, p[ids], 0.26, color=PALETTE[0], label="target p")
    ax.bar(x, q[ids], 0.26, color=PALETTE[5], label="draft q")
    left = np.maximum(p - q, 0.0)[ids]
    ax.bar(x + 0.27, left, 0.26, color=PALETTE[2], hatch="//", edgecolor="white", label=r"$(p - q)_+$")
    drafted = set(record.tree.drafts[node].tolist())
    names = [
        shown(decode(i)) + ("\nresampled" if i == record.walk.token else "\nrejected" if i in drafted else "")
        for i in ids
    ]
    ax.set_xticks(x, names, fontsize=9)
    ax.set_ylabel("probability")
    ax.legend()
    return fig
