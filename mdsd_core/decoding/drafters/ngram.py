"""A trigram language model over token ids as a drafter: no neural network, full distributions, compact storage."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mdsd_core.decoding.drafters.base import Drafter
from mdsd_core.trees.drafted_tree import DraftedTree


@dataclass(frozen=True, eq=False)
class Followers:
    """Which tokens followed each context, and how often; contexts sorted, rows one behind the other.

    Attributes
    ----------
    context : ndarray of int64, shape (C,)
        The contexts seen, ascending.
    start : ndarray of int64, shape (C + 1,)
        Context i owns the entries ``start[i]:start[i + 1]``.
    token : ndarray of int32, shape (M,)
        The followers, ascending in each row.
    count : ndarray of int32, shape (M,)
        How often each followed, >= 1.
    """

    context: NDArray[np.int64]
    start: NDArray[np.int64]
    token: NDArray[np.int32]
    count: NDArray[np.int32]

    @classmethod
    def of(cls, context: NDArray[np.int64], token: NDArray[np.int64], vocab_size: int) -> "Followers":
        """Count pairs (context, token), in O(N log N) for N of them."""
        pairs, count = np.unique(context * vocab_size + token, return_counts=True)
        contexts, first = np.unique(pairs // vocab_size, return_index=True)
        return cls(
            contexts.astype(np.int64),
            np.append(first, pairs.size).astype(np.int64),
            (pairs % vocab_size).astype(np.int32),
            count.astype(np.int32),
        )

    def row(self, context: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The followers of a context and their counts; empty if it was never seen."""
        place = int(np.searchsorted(self.context, context))
        if place == self.context.size or self.context[place] != context:
            return self.token[:0], self.count[:0]
        own = slice(self.start[place], self.start[place + 1])
        return self.token[own], self.count[own]


class WittenBellTrigram:
    """A trigram model with Witten-Bell smoothing down to the uniform distribution.

    With ``c(h, w)`` the count of w after h, ``c(h)`` their sum and ``t(h)`` the number of different followers,

    ``P(w | h) = [c(h, w) + t(h) P(w | h')] / [c(h) + t(h)]``,

    h' being h without its oldest token; below the unigram stands 1 / V. Contexts never seen pass h' through.

    Parameters
    ----------
    unigram : ndarray, shape (V,)
        Counts of single tokens.
    bigram, trigram : Followers
        Counts after one token x (context x) and after two, x y (context x V + y).

    Notes
    -----
    Storage: 8 bytes a different n-gram, 16 a context. A distribution costs O(V). Source: Witten and Bell, IEEE
    Transactions on Information Theory 37(4), 1991, method C.

    Examples
    --------
    >>> model = WittenBellTrigram.fit([[0, 1, 0, 1, 0, 2]], vocab_size=3)
    >>> model.distribution([0, 1]).round(4)
    array([0.9383, 0.037 , 0.0247])
    >>> round(float(model.distribution([]).sum()), 12)
    1.0
    """

    def __init__(self, unigram: NDArray[np.int64], bigram: Followers, trigram: Followers) -> None:
        self.unigram, self.bigram, self.trigram = unigram, bigram, trigram
        self.vocab_size = int(unigram.size)
        total, kinds = int(unigram.sum()), int(np.count_nonzero(unigram))
        uniform = 1.0 / self.vocab_size
        self._base = (unigram + kinds * uniform) / (total + kinds) if total else np.full(self.vocab_size, uniform)

    @classmethod
    def fit(cls, sequences: Iterable[Sequence[int]], vocab_size: int) -> "WittenBellTrigram":
        """Count the n-grams of texts; none spans two of them.

        Raises ValueError if an id lies outside [0, vocab_size). O(N log N) for N tokens.
        """
        if vocab_size < 1 or vocab_size**3 >= 2**63:
            raise ValueError(f"vocab_size must be at least 1 and at most 2,097,151, got {vocab_size}")
        texts = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
        for text in texts:
            if text.size and (text.min() < 0 or text.max() >= vocab_size):
                raise ValueError(f"sequences must hold ids in [0, {vocab_size}), got {text.min()}..{text.max()}")
        none = [np.empty(0, dtype=np.int64)]
        tokens = np.concatenate(none + texts)
        one = [np.concatenate(none + [text[:-1] for text in texts]), np.concatenate(none + [t[1:] for t in texts])]
        two = [
            np.concatenate(none + [text[:-2] * vocab_size + text[1:-1] for text in texts if text.size > 2]),
            np.concatenate(none + [text[2:] for text in texts if text.size > 2]),
        ]
        return cls(
            np.bincount(tokens, minlength=vocab_size).astype(np.int64),
            Followers.of(one[0], one[1], vocab_size),
            Followers.of(two[0], two[1], vocab_size),
        )

    def distribution(self, context: Sequence[int]) -> NDArray[np.float64]:
        """P(. | context), float64, shape (V,), every entry positive; only the last two tokens matter."""
        p = self._base.copy()
        if len(context) >= 1:
            self._mix(p, *self.bigram.row(int(context[-1])))
        if len(context) >= 2:
            self._mix(p, *self.trigram.row(int(context[-2]) * self.vocab_size + int(context[-1])))
        return p

    @staticmethod
    def _mix(p: NDArray[np.float64], token: NDArray[np.int32], count: NDArray[np.int32]) -> None:
        if token.size:
            total = float(count.sum()) + token.size
            p *= token.size / total
            p[token] += count / total

    def save(self, file: str | Path | IO[bytes]) -> None:
        """Write the counts to a compressed ``.npz`` file, by its path or opened for writing."""
        arrays: dict[str, Any] = {"unigram": self.unigram}
        for name, table in (("bigram", self.bigram), ("trigram", self.trigram)):
            arrays |= {f"{name}_{field}": array for field, array in vars(table).items()}
        np.savez_compressed(file, **arrays)

    @classmethod
    def of_file(cls, path: str | Path, encode: Callable[[str], Sequence[int]], vocab_size: int) -> "WittenBellTrigram":
        r"""The model that a file stands for: the counts of an ``.npz`` file, else the text of it, counted.

        Parameters
        ----------
        path : path
            An ``.npz`` file of :meth:`save`, or a UTF-8 text whose empty lines part it into texts.
        encode : callable
            From a text to token ids of the target.
        vocab_size : int
            Tokens of the target's vocabulary.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the counts are those of another vocabulary.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "text").write_text("ab\n\nabc")
        ...     trigram = WittenBellTrigram.of_file(Path(folder, "text"), lambda text: [ord(x) - 97 for x in text], 3)
        >>> trigram.unigram
        array([2, 2, 1])
        """
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"path: the text file {path} does not exist")
        if path.suffix == ".npz":
            found = cls.load(path)
            if found.vocab_size != vocab_size:
                raise ValueError(f"{path} was made for {found.vocab_size} tokens, but the target has {vocab_size}")
            return found
        return cls.fit(
            [encode(text) for text in path.read_text(encoding="utf-8").split("\n\n") if text.strip()], vocab_size
        )

    @classmethod
    def load(cls, path: str | Path) -> "WittenBellTrigram":
        """Read what :meth:`save` wrote (plain arrays; nothing is unpickled)."""
        with np.load(path, allow_pickle=False) as file:
            tables = [
                Followers(*(file[f"{name}_{field}"] for field in ("context", "start", "token", "count")))
                for name in ("bigram", "trigram")
            ]
            return cls(file["unigram"], *tables)


class NGramDrafter(Drafter):
    """Drafts from a trigram model of the target's tokens.

    Parameters
    ----------
    model : WittenBellTrigram
        Over the target's vocabulary.

    Examples
    --------
    >>> NGramDrafter(WittenBellTrigram.fit([[0, 1, 2, 0, 1]], 3)).vocab_size
    3
    """

    def __init__(self, model: WittenBellTrigram) -> None:
        self.model = model
        self.vocab_size = model.vocab_size

    def begin(self, committed: Sequence[Sequence[int] | None]) -> None:
        """See :meth:`Drafter.begin`."""
        self._committed = committed

    def propose(self, trees: Sequence[DraftedTree], nodes: Sequence[Sequence[int]]) -> list[list[Any]]:
        """See :meth:`Drafter.propose`: log-probabilities, so that temperature and filters apply as to a model's."""
        answer = []
        for tree, row, committed in zip(trees, nodes, self._committed, strict=True):
            past = [] if committed is None else list(committed[-2:])
            answer.append([np.log(self.model.distribution([*past, *tree.path_tokens(n)])) for n in row])
        return answer
