"""Random shapes of trees."""

from mdsd_core.trees.shape import DraftTree


def random_tree(rng, most=9):
    """A random shape, single nodes, stars and chains among them."""
    kind = rng.integers(6)
    if kind == 0:
        return DraftTree.chain(int(rng.integers(1, 6)))
    if kind == 1:
        return DraftTree.from_branching((int(rng.integers(1, 8)),))
    parents = [-1]
    for node in range(1, int(rng.integers(2, most))):
        parents.append(int(rng.integers(parents[-1] if parents[-1] > 0 else 0, node)))
    return DraftTree(tuple(parents))
