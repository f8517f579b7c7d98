"""Prompt look-up: drafts are what followed the same few tokens earlier in the text."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mdsd_core.decoding.drafters.base import Drafter
from mdsd_core.trees.drafted_tree import DraftedTree


def continuations(text: Sequence[int], longest: int, most: int) -> list[int]:
    """Different tokens that followed the end of `text` earlier in it, the best first.

    Parameters
    ----------
    text : sequence of int
        Prompt, answer so far and the draft path.
    longest : int
        The longest end of the text to look for, >= 1; longer matches come first, later ones before earlier ones.
    most : int
        How many tokens at most.

    Returns
    -------
    list of int
        At most `most` tokens; none if even the last token is new.

    Examples
    --------
    >>> continuations([5, 1, 2, 7, 2, 8, 1, 2], longest=2, most=3)  # "1 2" was followed by 7; "2" by 8, and 7 again
    [7, 8]
    """
    ids = np.asarray(text, dtype=np.int64)
    found: list[int] = []
    for size in range(min(longest, ids.size - 1), 0, -1):
        match = np.ones(ids.size - size, dtype=bool)
        for back in range(size):
            match &= ids[back : back + match.size] == ids[ids.size - size + back]
        for place in np.flatnonzero(match)[::-1]:
            token = int(ids[place + size])
            if token not in found:
                found.append(token)
                if len(found) == most:
                    return found
    return found


class PromptLookup(Drafter):
    """Proposes tokens by looking up the last few tokens earlier in the same text. No probabilities: deterministic.

    Parameters
    ----------
    vocab_size : int
        V of the target.
    longest : int
        The longest end of the text to look for.

    Notes
    -----
    Answers with made-up logits that only carry the order of preference, for the scheme ``Deterministic``: those tokens
    are the support, so that fewer drafts are drawn where fewer were found. A proposal costs O(longest x length).

    Examples
    --------
    >>> PromptLookup(257).proposal
    'deterministic'
    """

    proposal: ClassVar[Literal["sampled", "deterministic"]] = "deterministic"

    def __init__(self, vocab_size: int, longest: int = 3) -> None:
        if longest < 1:
            raise ValueError(f"longest must be >= 1, got {longest}")
        self.vocab_size, self.longest = int(vocab_size), int(longest)

    def begin(self, committed: Sequence[Sequence[int] | None]) -> None:
        """See :meth:`Drafter.begin`."""
        self._committed = committed

    def propose(self, trees: Sequence[DraftedTree], nodes: Sequence[Sequence[int]]) -> list[list[Any]]:
        """See :meth:`Drafter.propose`: None where nothing was found."""
        return [
            [self._preferences(committed, tree, node) for node in row]
            for tree, row, committed in zip(trees, nodes, self._committed, strict=True)
        ]

    def _preferences(self, committed: Sequence[int] | None, tree: DraftedTree, node: int) -> NDArray[np.float64] | None:
        text = [*(committed or ()), *tree.path_tokens(node)]
        found = continuations(text, self.longest, tree.width(node))
        if not found:
            return None
        logits = np.full(self.vocab_size, -np.inf)
        logits[found] = -np.log(np.arange(1.0, len(found) + 1))  # probabilities in proportion to 1, 1/2, 1/3, ...
        return logits
