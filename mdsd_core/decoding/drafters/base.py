"""Drafters: where the draft distributions of a round come from.

A drafter answers with *logits* at the nodes it is asked about. The loop makes q of them with the draft's own sampling
parameters and draws the children from this q by the scheme, so the verifier always sees the distribution that the
drafts came from.

Each drafter states its kind of proposal. ``sampled``: logits are those of a distribution q that drafts may be sampled
from. ``deterministic``: the drafter only names tokens, in order of preference; no q exists, and only the scheme
``Deterministic`` (with a verifier that is lossless for it) may be used.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from mdsd_core.decoding.scoring import Block, Scorer, prefill
from mdsd_core.trees.drafted_tree import DraftedTree


class Drafter(ABC):
    """What the loop needs of a drafter. Rows are the requests in flight.

    Attributes
    ----------
    proposal : {"sampled", "deterministic"}
        The kind of proposal.
    vocab_size : int
        V, the width of its answers.
    context_limit, window : int or None
        As of a model: the most tokens it can see at all, and the attention window.
    prefill_calls : int
        Passes over long prompts so far.

    Notes
    -----
    Only :meth:`propose` must be written. The loop calls the others to say what goes on; they do nothing unless a
    drafter keeps a state of its own.

    Examples
    --------
    >>> from mdsd_core.decoding.drafters.lookup import PromptLookup
    >>> issubclass(PromptLookup, Drafter), PromptLookup.proposal, ModelDrafter.proposal
    (True, 'deterministic', 'sampled')
    """

    proposal: ClassVar[Literal["sampled", "deterministic"]] = "sampled"
    vocab_size: int
    context_limit: int | None = None
    window: int | None = None
    prefill_calls: int = 0

    def start(self, batch: int) -> None:  # noqa: B027
        """Begin a batch of rows."""

    def begin(self, committed: Sequence[Sequence[int] | None]) -> None:  # noqa: B027
        """Begin a round: the committed tokens of each row, None for a row that drafts nothing in this round."""

    @abstractmethod
    def propose(self, trees: Sequence[DraftedTree], nodes: Sequence[Sequence[int]]) -> list[list[Any]]:
        """Logits at nodes of one depth, row by row.

        Parameters
        ----------
        trees : sequence of DraftedTree
            The tree of each row so far.
        nodes : sequence of sequence of int
            The nodes of each row at which drafts are wanted; the first call of a round asks about roots, the next about
            depth 1, and so on.

        Returns
        -------
        list of list
            One array or tensor of shape [V] for each node, None where the drafter has nothing to propose.
        """

    def commit(self, paths: Sequence[Sequence[int]]) -> None:  # noqa: B027
        """End a round: the accepted path of each row."""

    def forget(self) -> None:  # noqa: B027
        """Give up a round that was begun."""

    def select_rows(self, rows: Sequence[int]) -> None:  # noqa: B027
        """Go on with these rows only."""


class ModelDrafter(Drafter):
    """A draft model, the layer-skipping self-draft included, with a cache of its own.

    Parameters
    ----------
    scorer : Scorer
        The model, such as :class:`~mdsd_core.decoding.scoring.CachedModel`. Not the target's own object: a model that
        drafts for itself needs two caches.

    Notes
    -----
    One pass a depth. A round starts by feeding all committed tokens the cache lacks, so that nothing is lost after full
    acceptance (when the last draft was never fed) or after a round without drafts.

    Examples
    --------
    >>> from mdsd_core.decoding.scoring import CachedModel
    >>> from mdsd_core.models import load_model
    >>> ModelDrafter(CachedModel(load_model("tiny-random-draft").model)).vocab_size
    257
    """

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self.vocab_size = scorer.vocab_size
        self.context_limit, self.window = scorer.context_limit, scorer.window

    def start(self, batch: int) -> None:
        """See :meth:`Drafter.start`."""
        self.prefill_calls = 0
        self.scorer.start(batch)

    def begin(self, committed: Sequence[Sequence[int] | None]) -> None:
        """See :meth:`Drafter.begin`."""
        self._committed = committed
        self._pending = [0] * len(committed)  # committed tokens fed in this round, the root last
        self._places: list[dict[int, int]] = [{} for _ in committed]  # node -> its place in the tail

    def propose(self, trees: Sequence[DraftedTree], nodes: Sequence[Sequence[int]]) -> list[list[Any]]:
        """See :meth:`Drafter.propose`."""
        roots = any(0 in row for row in nodes)
        blocks = self._root_blocks(nodes) if roots else self._level_blocks(trees, nodes)
        return [list(row) for row in self.scorer.feed(blocks)]

    def _root_blocks(self, nodes: Sequence[Sequence[int]]) -> list[Block]:
        drafting = [tokens if row else None for tokens, row in zip(self._committed, nodes, strict=True)]
        self.prefill_calls += prefill(self.scorer, drafting)
        blocks = []
        for row, tokens in enumerate(drafting):
            if tokens is None:
                blocks.append(Block())
                continue
            blocks.append(Block.chain(tokens[self.scorer.cached(row) :], scored=1))
            self._pending[row] = len(blocks[row].tokens)
            self._places[row][0] = self._pending[row] - 1
        return blocks

    def _level_blocks(self, trees: Sequence[DraftedTree], nodes: Sequence[Sequence[int]]) -> list[Block]:
        blocks = []
        for tree, row, places, pending in zip(trees, nodes, self._places, self._pending, strict=True):
            fed = pending + len(places) - 1
            for i, node in enumerate(row):
                places[node] = fed + i
            parents = [places[tree.parents[node]] for node in row]
            blocks.append(Block([tree.tokens[node] for node in row], parents, len(row)))
        return blocks

    def commit(self, paths: Sequence[Sequence[int]]) -> None:
        """See :meth:`Drafter.commit`: keeps what was fed of each path, which is a prefix of it."""
        rows = zip(paths, self._places, self._pending, strict=True)
        self.scorer.commit(
            [[*range(pending), *(places[n] for n in path if n in places)] for path, places, pending in rows]
        )

    def forget(self) -> None:
        """See :meth:`Drafter.forget`."""
        self.scorer.forget()

    def select_rows(self, rows: Sequence[int]) -> None:
        """See :meth:`Drafter.select_rows`."""
        self.scorer.select_rows(rows)


class NoDrafter(Drafter):
    """Proposes nothing: plain decoding, one token a round.

    Parameters
    ----------
    vocab_size : int
        V of the target.
    """

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def propose(self, trees: Sequence[DraftedTree], nodes: Sequence[Sequence[int]]) -> list[list[Any]]:
        """None everywhere."""
        return [[None] * len(row) for row in nodes]
