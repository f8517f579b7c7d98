"""Shapes, drafted trees and masks, as properties over random trees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdsd_core.schemes import NO_DRAFT, WithReplacement
from mdsd_core.trees.drafted_tree import DraftedTree
from mdsd_core.trees.shape import EAGLE, DraftTree
from tests.core.trees.shapes import random_tree

trees = st.integers(0, 10**6).map(lambda seed: random_tree(np.random.default_rng(seed), most=30))


@given(trees)
def test_paths_depths_and_children_agree(tree):
    assert tree.size == len(tree.paths) - 1 == sum(tree.nodes_per_depth)
    assert len(set(tree.paths)) == len(tree.paths)
    for node, path in enumerate(tree.paths):
        assert tree.depths[node] == len(path)
        walked = 0
        for rank in path:
            walked = tree.children[walked][rank]
        assert walked == node
    children = {path: len(row) for path, row in zip(tree.paths, tree.children) if row}
    assert DraftTree.from_children(children) == tree


@given(trees, st.integers(0, 6))
def test_truncation_keeps_exactly_the_shallow_part(tree, depth):
    cut = tree.truncated(depth)
    assert set(cut.paths) == {path for path in tree.paths if len(path) <= depth}


@pytest.mark.parametrize("branching", [(), (1,), (5,), (1, 1, 1, 1), (4, 2, 2), (2, 3, 1)])
def test_branching(branching):
    tree = DraftTree.from_branching(branching)
    assert tree.nodes_per_depth == tuple(np.cumprod(branching).astype(int).tolist())
    assert tree.depth == len(branching)


def test_eagle_tree_has_the_published_shape():
    assert EAGLE.size == 25
    assert EAGLE.nodes_per_depth == (4, 8, 8, 3, 2)
    assert [len(EAGLE.children[i]) for i in range(5)] == [4, 3, 2, 2, 1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DraftTree(()), "start with -1"),
        (lambda: DraftTree((0,)), "start with -1"),
        (lambda: DraftTree((-1, 1)), "earlier"),
        (lambda: DraftTree((-1, 0, 1, 0)), "breadth first"),
        (lambda: DraftTree.from_branching((2, 0)), ">= 1"),
        (lambda: DraftTree.from_children({(): 1, (1,): 2}), "not in the tree"),
        (lambda: DraftTree.chain(-1), "gamma"),
        (lambda: DraftTree.chain(2).truncated(-1), "depth"),
        (lambda: DraftTree.parse("chain:x"), "chain:x"),
    ],
)
def test_bad_shapes_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_equal_siblings_share_a_node_and_keep_their_multiplicity():
    tree = DraftedTree(DraftTree.from_children({(): 3, (0,): 1, (2,): 2}), root=9)
    assert tree.add_drafts(0, [4, 4, 7], WithReplacement(3)) == [1, 2]
    assert tree.drafts[0].tolist() == [4, 4, 7]
    assert tree.width(1) == 1  # the place of the first 4
    assert tree.width(2) == 2
    assert tree.drawn == 3
    assert tree.add_drafts(2, [1, 1], WithReplacement(2)) == [3]
    assert tree.path(3) == [2, 3]
    assert tree.path_tokens(3) == [7, 1]
    assert tree.child(0, 7) == 2


def test_padding_makes_no_node_and_too_many_drafts_are_refused():
    tree = DraftedTree(DraftTree.from_branching((3,)), root=9)
    with pytest.raises(ValueError, match="3 places"):
        tree.add_drafts(0, [1, 2, 3, 4], WithReplacement(4))
    assert tree.add_drafts(0, [5, NO_DRAFT, NO_DRAFT], WithReplacement(3)) == [1]
    with pytest.raises(ValueError, match="already"):
        tree.add_drafts(0, [1], WithReplacement(1))
