"""Tree rules, node by node and by path: what of a drafted tree is accepted, and the token that follows.

A tree rule gets the target's and the draft's distributions at all nodes and returns the accepted path and one more
token, such that the tokens of a round have the target's law. Two rules:

``node``
    walks from the root, a verifier deciding at each node; it goes on while the emitted token is a draft.
``path``
    selects one path by the optimal plan of the scheme and block-verifies it. It accepts every node at least as often as
    ``node`` with the optimal verifier. On a chain it is block verification (Sun et al., arXiv 2403.10444).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from mdsd_core.randomness import Choices
from mdsd_core.schemes import Scheme
from mdsd_core.trees.drafted_tree import DraftedTree
from mdsd_core.trees.selection import OptimalSelection, selects
from mdsd_core.verifiers import verifiers_for
from mdsd_core.verifiers.interface import UnsupportedScheme, Verifier


class Rows(Protocol):
    """A distribution a node: ``rows[node]``, float64, shape [V]. Rules look only where they go, so rows may be lazy.

    >>> rows: Rows = {0: np.array([0.5, 0.5])}
    >>> rows[0].size
    2
    """

    def __getitem__(self, node: int) -> NDArray[np.float64]:
        """The distribution after the path that ends at `node`."""
        ...


@dataclass(frozen=True)
class Walk:
    """What a round accepts.

    Attributes
    ----------
    path : tuple of int
        The accepted nodes of the drafted tree, from depth 1 down; empty if nothing was accepted.
    token : int
        The token after them: the *bonus* token if the path ends where nothing was drafted, else a *resampled* one.

    Examples
    --------
    >>> Walk((2, 5), 7).last, Walk((), 7).last
    (5, 0)
    """

    path: tuple[int, ...]
    token: int

    @property
    def last(self) -> int:
        """The node the token follows: the end of the path, or the root."""
        return self.path[-1] if self.path else 0


class TreeRule(ABC):
    """A lossless rule for drafted trees.

    Parameters
    ----------
    verifier : Verifier
        The rule's verifier.

    Examples
    --------
    >>> from mdsd_core.verifiers import verifier
    >>> isinstance(tree_rule("node", verifier("rrs")), TreeRule)
    True
    """

    name: ClassVar[str]

    def __init__(self, verifier: Verifier) -> None:
        self.verifier = verifier

    @abstractmethod
    def supports(self, scheme: Scheme) -> bool:
        """True if the rule is lossless for children drawn by `scheme`."""

    def check(self, scheme: Scheme) -> None:
        """Raise :class:`UnsupportedScheme` for a scheme the rule is not lossless for."""
        if not self.supports(scheme):
            raise UnsupportedScheme(
                f"tree rule {self.name!r} with verifier {self.verifier.name!r} is not lossless for drafts of {scheme}; "
                f"with tree rule 'node' these verifiers are: {', '.join(verifiers_for(scheme))}"
            )

    @abstractmethod
    def walk(self, tree: DraftedTree, p: Rows, q: Rows, choices: Choices) -> Walk:
        """Accept a path of `tree` and draw the token after it.

        Parameters
        ----------
        tree : DraftedTree
            The drafts.
        p, q : Rows
            Target and draft distributions by node; `q` is needed only where drafts were drawn.
        choices : Choices
            Makes every random choice.
        """


class NodeRule(TreeRule):
    """Node by node: a verifier emits a token at each node; the walk goes on below it if it is a draft.

    >>> from mdsd_core.schemes import WithReplacement
    >>> from mdsd_core.verifiers import verifier
    >>> [NodeRule(verifier(name)).supports(WithReplacement(2)) for name in ("rrs", "greedy")]
    [True, False]
    """

    name = "node"

    def supports(self, scheme: Scheme) -> bool:
        """Whatever the verifier supports."""
        return self.verifier.supports(scheme)

    def walk(self, tree: DraftedTree, p: Rows, q: Rows, choices: Choices) -> Walk:
        """See :meth:`TreeRule.walk`. One ``prepare`` and one verdict for each node on the way."""
        path: list[int] = []
        node = 0
        while tree.drafts[node].size:
            scheme = tree.schemes[node]
            assert scheme is not None
            drafts = tree.drafts[node]
            verdict = choices.verdict(self.verifier.prepare(p[node], q[node], scheme), drafts)
            if not verdict.accepted:
                return Walk(tuple(path), verdict.token)
            node = tree.child(node, verdict.token)
            path.append(node)
        return Walk(tuple(path), choices.token(p[node]))


class PathRule(TreeRule):
    """Select one path by the optimal plan of the scheme, then block-verify it.

    With ``V(s, w)`` the request to accept "s or something below it" with probability w: at a node s with the plan's
    marginal r, select a child y and call ``V(y, min(1, w p_y / r_y))``; if that rejects, accept s itself with
    probability ``(w - m) / (1 - m)``, ``m = sum min(r, w p)``, and draw the token after it from ``(w p - r)_+``; else
    report the rejection to the parent. At a leaf r = 0. A token that lands on a draft y goes on with ``V(y, 1)``.

    Raises
    ------
    ValueError
        For a verifier without a plan that selects one draft: the rule needs the plan, not just verdicts.

    Notes
    -----
    New here; a chain gives block verification (Sun et al., arXiv 2403.10444), other plans traversal verification
    (arXiv 2505.12398).

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> from mdsd_core.verifiers import verifier
    >>> PathRule(verifier("optimal")).supports(WithReplacement(2))
    True
    """

    name = "path"

    def __init__(self, verifier: Verifier) -> None:
        if verifier.tolerance is None:
            raise ValueError(
                f"tree rule 'path' takes a verifier that selects one draft by the optimal plan, such as 'optimal', "
                f"got {verifier.name!r}"
            )
        super().__init__(verifier)
        self.tolerance = verifier.tolerance

    def supports(self, scheme: Scheme) -> bool:
        """True where an optimal selection plan is known."""
        return selects(scheme)

    def walk(self, tree: DraftedTree, p: Rows, q: Rows, choices: Choices) -> Walk:
        """See :meth:`TreeRule.walk`. One selection plan for each node of the selected path."""
        walk = self._call(tree, p, q, choices, 0, 1.0)
        assert walk is not None  # a call with w = 1 never rejects
        return walk

    def _call(self, tree: DraftedTree, p: Rows, q: Rows, choices: Choices, node: int, w: float) -> Walk | None:
        """Accept `node` or a node below it with probability `w`: the walk from the root, or None for "rejected"."""
        drafts, scheme = tree.drafts[node], tree.schemes[node]
        if not drafts.size:
            if w < 1 and not choices.accept(w):
                return None
            return Walk(tuple(tree.path(node)), choices.token(p[node]))
        assert scheme is not None
        plan = OptimalSelection(p[node], q[node], scheme, self.tolerance)
        r = plan.marginal
        wanted = w * p[node]
        rest = np.maximum(wanted - r, 0.0)
        left = float(rest.sum())  # w - m
        y = int(drafts[choices.selected(plan, drafts)])
        scale = min(1.0, wanted[y] / r[y]) if r[y] > 0 else float(wanted[y] > 0)
        if scale > 0:
            walk = self._call(tree, p, q, choices, tree.child(node, y), scale)
            if walk is not None:
                return walk
        if w < 1 and not choices.accept(left / (1.0 - w + left)):  # 1 - m = (1 - w) + (w - m)
            return None
        # w = 1 with nothing left means p = r up to rounding: then p is as good a law as any for this one event in 1e16.
        token = choices.token(rest if left > 0 else p[node])
        if token in drafts:  # not the selected one, whose scale was 1: its subtree has not been looked at
            return self._call(tree, p, q, choices, tree.child(node, token), 1.0)
        return Walk(tuple(tree.path(node)), token)


def tree_rule(name: str, verifier: Verifier) -> TreeRule:
    """The tree rule of that name (``"node"`` or ``"path"``) with a verifier. Raises ValueError for another name.

    >>> from mdsd_core.verifiers import verifier
    >>> tree_rule("path", verifier("optimal")).name
    'path'
    """
    rules: dict[str, type[TreeRule]] = {rule.name: rule for rule in (NodeRule, PathRule)}
    if name not in rules:
        raise ValueError(f"tree_rule must be one of {', '.join(rules)}, got {name!r}")
    return rules[name](verifier)
