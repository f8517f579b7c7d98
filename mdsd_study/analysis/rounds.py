r"""How long rounds are on a draft tree, exactly, from a text that the target drew: nothing is decoded or sampled.

Whatever the tree rule, a lossless round that starts before the tokens ``x_1, x_2, ...`` of a target-drawn text accepts
at least d of them with probability ``rho_d = a(x_1..x_d) / p(x_1..x_d)``, a the masses of a round (``eq-masses`` in the
book's chapter "From a node to a path"): *given the text*, where rounds begin and end is a Markov chain whose steps are
known. So one pass over a stored text gives the expected number of rounds and of accepted drafts for every rule, scheme
and branching. That is the block efficiency of a decoding run with the run's own randomness integrated out: what is left
is the choice of texts, rules can be compared on the same ones, and another machine finds the same numbers.

Two numbers a position are all that is needed, both for the token y that the text has there:

* the *accepted share* ``P(the verifier emits y, and y is drafted) / p_y``: node by node, rho is their product;
* the *selected share* ``r_y / p_y``, r the law of the draft that the optimal plan selects. The path rule has
  ``rho_d = min(kappa_{d-1} r_y/p_y, rho_{d-1})`` with ``kappa_d = kappa_{d-1} r_y/p_y``.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.decoding.drafters.base import Drafter
from mdsd_core.distributions import SamplingParams, probabilities
from mdsd_core.models import LanguageModel
from mdsd_core.schemes.names import scheme_family
from mdsd_core.trees.drafted_tree import DraftedTree
from mdsd_core.trees.rules import tree_rule
from mdsd_core.trees.shape import DraftTree
from mdsd_core.verifiers import verifier
from mdsd_study.analysis.acceptance_given_token import accepted_share, selected_share
from mdsd_study.measure.teacher_forcing import Position, forced_logits, positions
from mdsd_study.measure.texts import Continuation, prompt_stream
from mdsd_study.statistics import Interval, bootstrap_ratio, bootstrap_ratio_difference


@dataclass(frozen=True)
class RoundRule:
    """A tree rule on a tree that branches alike everywhere at one depth.

    Attributes
    ----------
    verifier : str
        The verifier; for the path rule one that selects a draft by the optimal plan.
    scheme : str
        A name in :data:`~mdsd_core.schemes.names.FAMILIES`.
    tree_rule : {"node", "path"}
        How the tree is verified.

    Examples
    --------
    >>> RoundRule("optimal", "with_replacement", "path").tree_rule
    'path'
    """

    verifier: str
    scheme: str
    tree_rule: Literal["node", "path"] = "node"

    def __post_init__(self) -> None:
        tree_rule(self.tree_rule, verifier(self.verifier))  # raises an error unless they go together

    def share(self, position: Position, draft: str, n: int, rng: np.random.Generator | None = None) -> float:
        """The accepted share (node) or the selected share (path) of a position's own token, with n drafts."""
        if draft not in position.q:  # the drafter had nothing to propose
            return 0.0
        p, q, scheme = position.p, position.q[draft], scheme_family(self.scheme)(n)
        if self.tree_rule == "path":
            return selected_share(p, q, scheme, position.token)
        return accepted_share(self.verifier, p, q, scheme, position.token, rng=rng)


@dataclass(frozen=True)
class Rounds:
    """What is expected of the rounds over one text.

    Attributes
    ----------
    started : float
        The expected number of rounds that start where the text shows all they may accept.
    reached : tuple of float
        By depth d = 1, 2, ...: the expected number of them that accept at least d drafts.

    Examples
    --------
    >>> round(Rounds(2.0, (1.5, 0.5)).accepted, 6)
    2.0
    """

    started: float
    reached: tuple[float, ...]

    @property
    def accepted(self) -> float:
        """The expected number of accepted drafts."""
        return float(sum(self.reached))

    @property
    def decisions(self) -> float:
        """The expected number of nodes at which a rule that goes node by node decides.

        One for each visited node, the root included, but for leaves: there the bonus token is drawn without a decision.

        >>> Rounds(2.0, (1.5, 0.5)).decisions
        3.5
        """
        return float(self.started + sum(self.reached[:-1]))


def tails(shares: Sequence[ArrayLike], tree_rule: str = "node") -> NDArray[np.float64]:
    """``rho``: the probability that a round which starts before token t accepts at least d tokens, given the text.

    Parameters
    ----------
    shares : sequence of array_like, each shape (T,)
        For each depth of the tree the shares of the T tokens with that depth's number of drafts.
    tree_rule : {"node", "path"}
        Accepted shares with "node", selected shares with "path".

    Returns
    -------
    ndarray, shape (T, D + 1)
        Column 0 is 1; what lies beyond the end of the text is 0.

    Examples
    --------
    The chain of the book's example: p = (3/4, 1/4), q = (1/2, 1/2). After the text 1 0 a round of two drafts accepts
    both with probability 1 by the path rule, with 2/3 node by node.

    >>> selected = [2.0, 2 / 3]
    >>> tails([selected, selected], "path")[0].round(4), tails([[1.0, 2 / 3], [1.0, 2 / 3]])[0].round(4)
    (array([1., 1., 1.]), array([1.    , 1.    , 0.6667]))
    """
    rows = np.array([np.asarray(row, dtype=np.float64) for row in shares])
    depth, size = rows.shape
    rho, kappa = np.ones((size, depth + 1)), np.ones(size)
    for d in range(1, depth + 1):
        share = np.zeros(size)
        share[: max(size - d + 1, 0)] = rows[d - 1, d - 1 :]
        kappa *= share
        rho[:, d] = np.minimum(kappa, rho[:, d - 1]) if tree_rule == "path" else rho[:, d - 1] * share
    return rho


def expected_rounds(shares: Sequence[ArrayLike], tree_rule: str = "node", *, ended: bool = False) -> Rounds:
    """Expected rounds over one text that the target drew, the first starting at its beginning.

    Parameters
    ----------
    shares, tree_rule
        As for :func:`tails`.
    ended : bool
        True if the text ends with the end-of-sequence token: drafts beyond it do not exist. Otherwise rounds that start
        within the last D - 1 tokens are left out, since the text does not show what they may accept.

    Notes
    -----
    A round from t accepts exactly L tokens with probability ``rho_L - rho_{L+1}``, and the next one starts at
    ``t + L + 1``. O(T D).

    Examples
    --------
    A draft that is always accepted, one a round: rounds start at every second token.

    >>> expected_rounds([[1.0] * 6])
    Rounds(started=3.0, reached=(3.0,))
    """
    rho = tails(shares, tree_rule)
    size, depth = rho.shape[0], rho.shape[1] - 1
    stops = rho - np.concatenate((rho[:, 1:], np.zeros((size, 1))), axis=1)
    starts = np.zeros(size + depth + 2)
    starts[0] = 1.0
    last = size if ended else max(size - depth + 1, 0)
    for t in range(last):
        starts[t + 1 : t + depth + 2] += starts[t] * stops[t]
    counted = starts[:last]
    return Rounds(float(counted.sum()), tuple(float(x) for x in counted @ rho[:last, 1:]))


class ShareTable:
    """The shares of the tokens of some texts, for all rules and numbers of drafts that are asked for.

    Parameters
    ----------
    cells : iterable of (RoundRule, sequence of int)
        Rules and branchings that are to be evaluated; what they share is computed once.
    draft : str
        The key of the draft in ``Position.q``.

    Examples
    --------
    >>> rule, p = RoundRule("rrs", "with_replacement"), np.array([0.5, 0.5])
    >>> table = ShareTable([(rule, (1,))], "draft")
    >>> for index in range(4):
    ...     table.add(Position("t/0", index, 0, p, {"draft": p}))
    >>> table.rounds("t/0", rule, (1,))
    Rounds(started=2.0, reached=(2.0,))
    """

    def __init__(self, cells: Iterable[tuple[RoundRule, Sequence[int]]], draft: str) -> None:
        self.draft = draft
        self._wanted = sorted({(rule, n) for rule, branching in cells for n in branching}, key=repr)
        self._shares: dict[str, dict[tuple[RoundRule, int], list[float]]] = {}
        self._ended: set[str] = set()

    def add(self, position: Position, rng: np.random.Generator | None = None, *, ends: bool = False) -> None:
        """Add the next position of a text; `ends` if its token is an end-of-sequence token."""
        rows = self._shares.setdefault(position.key, {key: [] for key in self._wanted})
        if ends:
            self._ended.add(position.key)
        for rule, n in self._wanted:
            rows[rule, n].append(rule.share(position, self.draft, n, rng))

    @property
    def keys(self) -> list[str]:
        """The texts seen."""
        return list(self._shares)

    def rounds(self, key: str, rule: RoundRule, branching: Sequence[int]) -> Rounds:
        """The expected rounds over one text; see :func:`expected_rounds`."""
        rows = self._shares[key]
        shares = [rows[rule, n] for n in branching]
        return expected_rounds(shares, rule.tree_rule, ended=key in self._ended)

    def block_efficiency(self, rule: RoundRule, branching: Sequence[int]) -> Interval:
        """1 + accepted drafts a round, expected over the texts, with its interval over prompts."""
        rows = [self.rounds(key, rule, branching) for key in self.keys]
        return bootstrap_ratio([r.accepted + r.started for r in rows], [r.started for r in rows], self.keys, seed=0)

    def gain(self, better: RoundRule, other: RoundRule, branching: Sequence[int]) -> Interval:
        """The difference of two block efficiencies on the same texts, paired by prompt."""
        a, b = ([self.rounds(key, rule, branching) for key in self.keys] for rule in (better, other))
        return bootstrap_ratio_difference(
            ([r.accepted for r in a], [r.started for r in a]),
            ([r.accepted for r in b], [r.started for r in b]),
            self.keys,
            seed=0,
        )

    def decisions(self, rule: RoundRule, branching: Sequence[int]) -> float:
        """Decisions a round of a rule that goes node by node; see :attr:`Rounds.decisions`."""
        if rule.tree_rule != "node":
            raise ValueError(f"rule must go node by node: what a rule visits is not what it accepts, got {rule}")
        rows = [self.rounds(key, rule, branching) for key in self.keys]
        return sum(r.decisions for r in rows) / sum(r.started for r in rows)

    def acceptance_by_depth(self, rule: RoundRule, branching: Sequence[int]) -> list[float]:
        """By depth: the share of rounds that accept a draft there among those that got there."""
        rows = [self.rounds(key, rule, branching) for key in self.keys]
        reached = [sum(r.started for r in rows)]
        reached += [sum(r.reached[d] for r in rows) for d in range(len(branching))]
        return [b / a for a, b in itertools.pairwise(reached)]


def drafted_positions(
    target: LanguageModel,
    drafter: Drafter,
    texts: Iterable[Continuation],
    params: SamplingParams,
    draft_params: SamplingParams,
    *,
    most: int,
) -> Iterator[Position]:
    """As :func:`~mdsd_study.measure.teacher_forcing.positions`, for a drafter without a model: n-gram, prompt look-up.

    Parameters
    ----------
    target, texts, params, draft_params
        As there.
    drafter : Drafter
        Asked about the root of a tree at every position.
    most : int
        How many drafts are asked for (what a look-up searches).

    Yields
    ------
    Position
        With the drafter's distribution under the key "draft"; without it where the drafter has nothing to propose.

    Examples
    --------
    >>> from mdsd_core.decoding import PromptLookup
    >>> from mdsd_core.models import tiny_random_pair
    >>> text, plain = Continuation("toy/0", prompt=(1, 2, 1), tokens=(2, 1, 4)), SamplingParams()
    >>> found = drafted_positions(tiny_random_pair(5).target, PromptLookup(5), [text], plain, plain, most=1)
    >>> [int(position.q["draft"].argmax()) for position in found]
    [2, 1, 2]
    """
    shape = DraftTree.from_branching((most,))
    for text in texts:
        rows = forced_logits(target, text)
        drafter.start(1)
        for index, token in enumerate(text.tokens):
            past = [*text.prompt, *text.tokens[:index]]
            drafter.begin([past])
            logits = drafter.propose([DraftedTree(shape, past[-1])], [[0]])[0][0]
            drafter.forget()
            p = probabilities(rows[index], params, vocab_size=target.vocab_size, name="target logits")
            q = {} if logits is None else {"draft": probabilities(logits, draft_params, name="draft logits")}
            yield Position(text.key, index, token, p, q)


def shares_of_texts(
    target: LanguageModel,
    draft: LanguageModel | Drafter,
    texts: Iterable[Continuation],
    cells: Iterable[tuple[RoundRule, Sequence[int]]],
    params: SamplingParams,
    draft_params: SamplingParams | None = None,
    *,
    tokens: int | None = None,
    seed: int = 0,
) -> ShareTable:
    """Go through texts that the target drew, by teacher forcing, and keep what expected rounds need.

    Parameters
    ----------
    target : LanguageModel
        Gives p.
    draft : LanguageModel or Drafter
        Gives q: a model, or a drafter without one.
    texts : iterable of Continuation
        Drawn from the target with `params`: the expectations are those of runs with these settings only then.
    cells : iterable of (RoundRule, sequence of int)
        What is to be evaluated: rules, and the numbers of drafts by depth.
    params, draft_params : SamplingParams
        Of the target and of the draft; the draft's default to the target's (none, for deterministic proposals).
    tokens : int, optional
        Use this many tokens of each text.
    seed : int
        For rules whose shares are estimated; each text has a stream of its own.

    Returns
    -------
    ShareTable

    Examples
    --------
    >>> from mdsd_core.models import tiny_random_pair
    >>> pair = tiny_random_pair(5)
    >>> rule, text = RoundRule("rrs", "with_replacement"), Continuation("toy/0", prompt=(1, 2), tokens=(3, 4, 0, 2))
    >>> table = shares_of_texts(pair.target, pair.draft, [text], [(rule, (2, 1))], SamplingParams())
    >>> 1.0 < table.block_efficiency(rule, (2, 1)).mean < 3.0
    True
    """
    cells = list(cells)
    table = ShareTable(cells, "draft")
    if draft_params is None:
        plain = isinstance(draft, Drafter) and draft.proposal == "deterministic"
        draft_params = SamplingParams() if plain else params
    for whole in texts:
        text = Continuation(whole.key, whole.prompt, whole.tokens[:tokens])
        rng = prompt_stream(seed, text.key)
        if isinstance(draft, Drafter):
            most = max(n for _, branching in cells for n in branching)
            found = drafted_positions(target, draft, [text], params, draft_params, most=most)
        else:
            found = positions(target, {"draft": draft}, [text], params, draft_params)
        for position in found:
            table.add(position, rng, ends=position.token in target.eos_ids)
    return table
