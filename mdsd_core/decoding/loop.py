"""The decoding loop, round by round.

A round: the drafter's distributions and the scheme fill a draft tree for every request; one target pass scores all
trees; the tree rule accepts a path and draws one more token; both caches keep the path. If drafting, scoring or
verifying raises, the random streams and the caches go back to where they were.

In the comments on shapes, V is the vocabulary, and "row" counts the requests that are not finished.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mdsd_core.decoding.drafters.base import Drafter
from mdsd_core.decoding.metrics import RoundRecord, Times, Visit
from mdsd_core.decoding.request import Request, StreamEvent, TokenKind
from mdsd_core.decoding.scoring import Block, Scorer, prefill
from mdsd_core.decoding.settings import LoopSettings
from mdsd_core.distributions import SamplingParams, probabilities
from mdsd_core.trees.drafted_tree import DraftedTree
from mdsd_core.trees.rules import Rows, Walk
from mdsd_core.trees.shape import DraftTree

#: Draft distributions of one tree: node -> q [V], for the nodes at which drafts were drawn.
DraftRows = dict[int, NDArray[np.float64]]


class LazyRows:
    """Distributions by node, made from logits when first looked at: a rule visits few of the nodes that were scored."""

    def __init__(self, warp: Callable[[int], NDArray[np.float64]]) -> None:
        self._warp = warp
        self._rows: dict[int, NDArray[np.float64]] = {}

    def __getitem__(self, node: int) -> NDArray[np.float64]:
        if node not in self._rows:
            self._rows[node] = self._warp(node)
        return self._rows[node]


class DecodingLoop:
    """All that one call of :func:`~mdsd_core.decoding.generate.generate` needs, ready for its first round.

    Parameters
    ----------
    target : Scorer
        The target model.
    drafter : Drafter
        Where drafts come from.
    requests : sequence of Request
        The prompts.
    settings : LoopSettings
        The tree, the schemes, the rule and the sampling.
    """

    def __init__(self, target: Scorer, drafter: Drafter, requests: Sequence[Request], settings: LoopSettings) -> None:
        self.target, self.drafter, self.settings = target, drafter, settings
        self.schemes = settings.schemes
        self.active = list(requests)
        self.times = Times()
        self.records: list[RoundRecord] = []
        self.target_calls = self.draft_calls = 0
        self._target_prefills = 0
        target.start(len(self.active))
        drafter.start(len(self.active))

    @property
    def prefill_calls(self) -> int:
        """Passes over long prompts so far, target and draft."""
        return self._target_prefills + self.drafter.prefill_calls

    def step(self) -> list[StreamEvent]:
        """Run one round for every request that is not finished; nothing if all are.

        Raises whatever a model, a verifier or an interrupt raises; random streams and caches are then as
        before the round (a prompt that was read stays read, and calls stay counted).
        """
        if not self.active:
            return []
        with ExitStack() as stack:
            for request in self.active:
                stack.enter_context(request.choices.transaction())
            try:
                trees, q = self._draft()
                p, fed = self._score(trees)
                with self._timed("verify"):
                    walks = [
                        self.settings.rule.walk(tree, p[row], q[row], request.choices)
                        for row, (request, tree) in enumerate(zip(self.active, trees, strict=True))
                    ]
            except BaseException:
                self.target.forget()
                self.drafter.forget()
                raise
        with self._timed("cache"):
            # of each row's tail: the committed tokens that were fed, and the accepted nodes behind them
            keep = [[*range(n), *(n - 1 + node for node in walk.path)] for n, walk in zip(fed, walks, strict=True)]
            self.target.commit(keep)
            self.drafter.commit([walk.path for walk in walks])
        events = [
            self._emit(request, tree, walk, rows)
            for request, tree, walk, rows in zip(self.active, trees, walks, p, strict=True)
        ]
        self._check_caches()
        self._drop_finished()
        return events

    def _shape(self, request: Request) -> DraftTree:
        """The tree, cut so that its deepest token still has a position in both models (and can still be emitted)."""
        depth = self.settings.tree.depth
        if self.settings.trim:  # the token after the path is one of those still wanted
            depth = min(depth, request.max_new_tokens - len(request.new_tokens) - 1)
        for limit in (self.target.context_limit, self.drafter.context_limit):
            if limit is not None:
                depth = min(depth, limit - len(request.tokens))
        return self.settings.tree.truncated(max(0, depth))

    def _draft(self) -> tuple[list[DraftedTree], list[DraftRows]]:
        """Fill a tree for every request, depth by depth; the trees and the q that their drafts came from."""
        trees = [DraftedTree(self._shape(request), request.tokens[-1]) for request in self.active]
        q: list[DraftRows] = [{} for _ in trees]
        with self._timed("draft"):
            pairs = zip(self.active, trees, strict=True)
            self.drafter.begin([request.tokens if tree.shape.depth else None for request, tree in pairs])
        for depth in range(max(tree.shape.depth for tree in trees)):
            nodes = [[n for n in tree.nodes_at(depth) if self._has_children(tree, n)] for tree in trees]  # [row][node]
            if not any(nodes):
                break
            with self._timed("draft"):
                self.draft_calls += 1
                logits = self.drafter.propose(trees, nodes)  # [row][node] -> [V], or None for no proposal
            with self._timed("scheme"):
                for row, request in enumerate(self.active):
                    for node, scores in zip(nodes[row], logits[row], strict=True):
                        if scores is not None:
                            self._add_drafts(request, trees[row], node, scores, q[row])
        return trees, q

    def _has_children(self, tree: DraftedTree, node: int) -> bool:
        return tree.width(node) > 0 and (node == 0 or tree.tokens[node] not in self.settings.eos)

    def _add_drafts(self, request: Request, tree: DraftedTree, node: int, scores: Any, q: DraftRows) -> None:
        scheme = self.schemes[tree.width(node)]
        q[node] = self._warp(scores, self.settings.draft_params, request, tree, node, "draft logits")  # [V]
        tree.add_drafts(node, request.choices.drafts(scheme, q[node]), scheme)

    def _score(self, trees: Sequence[DraftedTree]) -> tuple[list[LazyRows], list[int]]:
        """The target's p at all nodes of each tree, and how many committed tokens were fed, the root the last."""
        with self._timed("target"):
            self._target_prefills += prefill(self.target, [request.tokens for request in self.active])
            blocks, fed = [], []
            for row, (request, tree) in enumerate(zip(self.active, trees, strict=True)):
                tokens = request.tokens[self.target.cached(row) :]
                root = len(tokens) - 1
                parents = [*range(-1, root), *(root + parent for parent in tree.parents[1:])]
                blocks.append(Block([*tokens, *tree.tokens[1:]], parents, scored=len(tree)))
                fed.append(len(tokens))
            logits = self.target.feed(blocks)  # [row] -> [nodes, V]
            self.target_calls += 1
        p = [self._target_rows(*rows) for rows in zip(self.active, trees, logits, strict=True)]
        return p, fed

    def _target_rows(self, request: Request, tree: DraftedTree, logits: Any) -> LazyRows:
        sampling = self.settings.sampling
        return LazyRows(lambda node: self._warp(logits[node], sampling, request, tree, node, "target logits"))

    def _warp(
        self, scores: Any, sampling: SamplingParams, request: Request, tree: DraftedTree, node: int, name: str
    ) -> NDArray[np.float64]:
        """From the logits at a node, [V], to its distribution, [V]."""
        if self.settings.processors:
            ids = torch.tensor([[*request.tokens, *tree.path_tokens(node)]])  # [1, L]
            scores = torch.as_tensor(scores).detach().cpu()[None].clone()  # [1, V]
            for processor in self.settings.processors:
                scores = processor(ids, scores)
            scores = scores[0]
        return probabilities(scores, sampling, name=f"{name} (request {request.index})")

    def _emit(self, request: Request, tree: DraftedTree, walk: Walk, p: Rows) -> StreamEvent:
        """Append the round's tokens to the request, cut, and record the round."""
        tokens = [*(tree.tokens[node] for node in walk.path), walk.token]
        last: TokenKind = "resampled" if tree.drafts[walk.last].size else "bonus"
        kinds: list[TokenKind] = [*["draft"] * len(walk.path), last]  # type: ignore[list-item]
        logprobs = []
        for node, token in zip((0, *walk.path), tokens, strict=True):
            if not p[node][token] > 0:
                raise RuntimeError(f"token {token} was emitted although the target gives it probability 0")
            logprobs.append(math.log(p[node][token]))
        count, reason = request.cut(tokens, self.settings.eos, self.target.context_limit)
        request.tokens += tokens[:count]
        request.kinds += kinds[:count]
        request.logprobs += logprobs[:count]
        request.finish_reason = reason
        self.records.append(RoundRecord(request.index, tree.drawn, _visits(tree, walk), len(walk.path), count))
        return StreamEvent(request.index, tuple(tokens[:count]), tuple(kinds[:count]), tuple(logprobs[:count]), reason)

    def _check_caches(self) -> None:
        """After a round the target's cache holds all committed tokens but the last (fewer only where a cut fell)."""
        for row, request in enumerate(self.active):
            cached, wanted = self.target.cached(row), len(request.tokens) - 1
            if request.finish_reason is None and cached != wanted:
                raise RuntimeError(f"target cache of request {request.index} holds {cached} tokens, expected {wanted}")

    def _drop_finished(self) -> None:
        rows = [row for row, request in enumerate(self.active) if request.finish_reason is None]
        if len(rows) < len(self.active):
            with self._timed("cache"):
                self.active = [self.active[row] for row in rows]
                self.target.select_rows(rows)
                self.drafter.select_rows(rows)

    @contextmanager
    def _timed(self, kind: str) -> Iterator[None]:
        device = getattr(self.target, "device", None)
        on_gpu = device is not None and device.type == "cuda"
        if on_gpu:
            torch.cuda.synchronize()
        started = time.perf_counter()
        try:
            yield
        finally:
            if on_gpu:
                torch.cuda.synchronize()
            setattr(self.times, kind, getattr(self.times, kind) + time.perf_counter() - started)


def _visits(tree: DraftedTree, walk: Walk) -> tuple[Visit, ...]:
    """The decisions along the accepted path; at its end nothing was accepted."""
    visits = []
    for node, child in zip((0, *walk.path), (*walk.path, None), strict=True):
        drafts = tree.drafts[node]
        if drafts.size:
            index = -1 if child is None else int(np.argmax(drafts == tree.tokens[child]))
            visits.append(Visit(tree.depths[node] + 1, int(drafts.size), index))
    return tuple(visits)
