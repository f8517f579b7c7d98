"""The tree of tokens that one round draws for one request."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.schemes import NO_DRAFT, Scheme
from mdsd_core.trees.shape import DraftTree


class DraftedTree:
    """Tokens drafted on a shape, node by node, from the root downwards.

    Nodes are numbered in the order they are made; node 0 is the root, the last committed token. A node that stands for
    several equal drafts has the place in the shape of the first of them.

    Parameters
    ----------
    shape : DraftTree
        How many drafts are drawn where.
    root : int
        The last committed token.

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> tree = DraftedTree(DraftTree.from_branching((3, 1)), root=7)
    >>> tree.add_drafts(0, [5, 4, 5], WithReplacement(3))  # 5 was drawn twice: one node, two drafts
    [1, 2]
    >>> tree.tokens, tree.drafts[0], tree.places
    ([7, 5, 4], array([5, 4, 5]), [0, 1, 2])
    """

    def __init__(self, shape: DraftTree, root: int) -> None:
        self.shape = shape
        self.tokens: list[int] = [int(root)]
        self.parents: list[int] = [-1]
        self.depths: list[int] = [0]
        self.places: list[int] = [0]
        self.drafts: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        self.schemes: list[Scheme | None] = [None]
        self._child: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def drawn(self) -> int:
        """The number of drafts drawn, equal siblings counted each."""
        return sum(d.size for d in self.drafts)

    def width(self, node: int) -> int:
        """How many drafts the shape asks for at `node`."""
        return len(self.shape.children[self.places[node]])

    def child(self, node: int, token: int) -> int:
        """The child of `node` that holds `token`. Raises KeyError if there is none."""
        return self._child[node, int(token)]

    def path(self, node: int) -> list[int]:
        """The nodes from the first draft down to `node`, the root left out."""
        path: list[int] = []
        while node > 0:
            path.append(node)
            node = self.parents[node]
        return path[::-1]

    def path_tokens(self, node: int) -> list[int]:
        """The drafted tokens on the way to `node`, its own included, the root's left out."""
        return [self.tokens[i] for i in self.path(node)]

    def add_drafts(self, node: int, drafts: ArrayLike, scheme: Scheme) -> list[int]:
        """Record the drafts drawn at `node` and make its children.

        Parameters
        ----------
        node : int
            A node without drafts.
        drafts : array_like of int, shape (n,)
            The drafts in the order drawn; :data:`~mdsd_core.schemes.NO_DRAFT` pads at the end are dropped.
        scheme : Scheme
            The law they were drawn from.

        Returns
        -------
        list of int
            The new nodes, in the order first drawn.

        Raises
        ------
        ValueError
            If `node` has drafts already, or more drafts come than the shape has places for.
        """
        row = np.asarray(drafts, dtype=np.int64)
        row = row[row != NO_DRAFT]
        if self.drafts[node].size:
            raise ValueError(f"node {node} has drafts already: {self.drafts[node].tolist()}")
        places = self.shape.children[self.places[node]]
        if row.size > len(places):
            raise ValueError(f"node {node} has {len(places)} places, got {row.size} drafts")
        self.drafts[node], self.schemes[node] = row, scheme
        new: list[int] = []
        for place, token in zip(places, row.tolist(), strict=False):
            if (node, token) in self._child:
                continue
            self._child[node, token] = len(self)
            new.append(len(self))
            self.tokens.append(token)
            self.parents.append(node)
            self.depths.append(self.depths[node] + 1)
            self.places.append(place)
            self.drafts.append(np.empty(0, dtype=np.int64))
            self.schemes.append(None)
        return new

    def nodes_at(self, depth: int) -> Sequence[int]:
        """The nodes at `depth`, in order."""
        return [i for i, d in enumerate(self.depths) if d == depth]
