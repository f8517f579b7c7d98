"""Draft trees: the shape that is asked for, and the tree of tokens that a round really draws.

A *shape* (:class:`DraftTree`) says how many drafts are drawn at each place; it knows no tokens. A round fills it and
makes a :class:`~mdsd_core.trees.drafted_tree.DraftedTree`, whose nodes are tokens: siblings that were drawn twice
(independent drafts may repeat) share one node, while the row of drafts at their parent keeps them all, because a
verifier needs the multiplicity.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class DraftTree:
    """The shape of a draft tree, in order of depth (breadth first).

    Attributes
    ----------
    parents : tuple of int
        ``parents[0] = -1`` is the root, the last committed token, which is not drafted. ``parents[i] < i`` otherwise,
        non-decreasing (breadth first), so that the children of a node are neighbours, in the order of their rank.

    Examples
    --------
    >>> tree = DraftTree.from_branching((4, 2, 2))
    >>> tree.size, tree.depth, tree.nodes_per_depth
    (28, 3, (4, 8, 16))
    >>> DraftTree.chain(3).paths
    ((), (0,), (0, 0), (0, 0, 0))
    """

    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.parents or self.parents[0] != -1:
            raise ValueError(f"parents must start with -1, the root, got {self.parents}")
        for node, parent in enumerate(self.parents[1:], start=1):
            if not 0 <= parent < node or parent < self.parents[node - 1]:
                raise ValueError(
                    f"parents must name earlier nodes, breadth first (non-decreasing), got parents[{node}] = {parent}"
                )

    @classmethod
    def from_branching(cls, branching: Sequence[int]) -> "DraftTree":
        """Every node at depth d has ``branching[d]`` children; ``()`` is the root alone.

        Raises ValueError if a number is below 1.
        """
        if any(int(n) != n or n < 1 for n in branching):
            raise ValueError(f"branching must hold whole numbers >= 1, got {tuple(branching)}")
        parents, level = [-1], [0]
        for n in branching:
            first = len(parents)
            parents += [node for node in level for _ in range(int(n))]
            level = list(range(first, len(parents)))
        return cls(tuple(parents))

    @classmethod
    def from_children(cls, children: Mapping[tuple[int, ...], int]) -> "DraftTree":
        """An explicit tree: path of ranks -> number of children; a path that is not named is a leaf.

        Parameters
        ----------
        children : mapping of tuple of int to int
            ``()`` is the root, ``(0, 1)`` the second child of its first child. Every number is >= 1.

        Raises
        ------
        ValueError
            If a path names a node that is not in the tree, or a number is below 1.

        Examples
        --------
        >>> DraftTree.from_children({(): 2, (0,): 1}).paths
        ((), (0,), (1,), (0, 0))
        """
        if any(int(n) != n or n < 1 for n in children.values()):
            raise ValueError(f"children must hold whole numbers >= 1, got {dict(children)}")
        parents, node = [-1], 0
        paths: list[tuple[int, ...]] = [()]
        while node < len(parents):
            n = int(children.get(paths[node], 0))
            parents += [node] * n
            paths += [(*paths[node], rank) for rank in range(n)]
            node += 1
        unknown = sorted(set(children) - set(paths))
        if unknown:
            raise ValueError(f"children names the path {unknown[0]}, which is not in the tree")
        return cls(tuple(parents))

    @classmethod
    def chain(cls, gamma: int) -> "DraftTree":
        """`gamma` drafts in a row: ordinary speculative decoding; 0 is the root alone."""
        if int(gamma) != gamma or gamma < 0:
            raise ValueError(f"gamma must be a whole number >= 0, got {gamma}")
        return cls.from_branching((1,) * int(gamma))

    @classmethod
    def parse(cls, text: str) -> "DraftTree":
        """Read ``"4,2,2"`` (branching), ``"chain:4"``, ``"eagle"`` or ``"none"`` (plain decoding).

        >>> DraftTree.parse("2,2").nodes_per_depth
        (2, 4)
        >>> DraftTree.parse("tree")
        Traceback (most recent call last):
            ...
        ValueError: tree must be like "4,2,2", "chain:4", "eagle" or "none", got 'tree'
        """
        word = text.strip().lower()
        if word in ("eagle", "none"):
            return EAGLE if word == "eagle" else cls.chain(0)
        try:
            if word.startswith("chain:"):
                return cls.chain(int(word[len("chain:") :]))
            return cls.from_branching([int(n) for n in word.replace("x", ",").split(",")])
        except ValueError:
            raise ValueError(f'tree must be like "4,2,2", "chain:4", "eagle" or "none", got {text!r}') from None

    @property
    def size(self) -> int:
        """How many drafts are drawn: all nodes but the root."""
        return len(self.parents) - 1

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each node, in the order of their rank."""
        rows: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents[1:], start=1):
            rows[parent].append(node)
        return tuple(tuple(row) for row in rows)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """The depth of each node; the root has depth 0."""
        depths = [0]
        for parent in self.parents[1:]:
            depths.append(depths[parent] + 1)
        return tuple(depths)

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """The path of ranks that leads to each node."""
        paths: list[tuple[int, ...]] = [()]
        for node, parent in enumerate(self.parents[1:], start=1):
            paths.append((*paths[parent], node - self.children[parent][0]))
        return tuple(paths)

    @property
    def depth(self) -> int:
        """The depth of the deepest node: the most drafts that one round can accept."""
        return self.depths[-1]

    @cached_property
    def nodes_per_depth(self) -> tuple[int, ...]:
        """How many nodes there are at depth 1, 2, ..."""
        return tuple(self.depths.count(d) for d in range(1, self.depth + 1))

    def truncated(self, depth: int) -> "DraftTree":
        """The part of the tree down to `depth` (itself, if it is not deeper)."""
        if depth < 0:
            raise ValueError(f"depth must be >= 0, got {depth}")
        if depth >= self.depth:
            return self
        return DraftTree(tuple(p for p, d in zip(self.parents, self.depths, strict=True) if d <= depth))


#: EAGLE's default sparse tree of 25 drafts, 4 + 8 + 8 + 3 + 2 by depth (Li et al., arXiv 2401.15077).
EAGLE = DraftTree.from_children(
    {
        (): 4,
        (0,): 3,
        (1,): 2,
        (2,): 2,
        (3,): 1,
        (0, 0): 3,
        (0, 1): 2,
        (0, 2): 2,
        (1, 0): 1,
        (0, 0, 0): 3,
        (0, 0, 0, 0): 2,
    }
)
