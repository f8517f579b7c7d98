"""The decoding loop, round by round.

A round: the drafter's distributions and the scheme fill a draft tree for every request; one target pass scores all
trees; the tree rule accepts a path and draws one more token; both caches keep the path. A round is a transaction: if
anything in it raises, the random streams and the caches go back to where they were.
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
from mdsd_core.decoding.request import FinishReason, Request, StreamEvent, TokenKind
from mdsd_core.decoding.scoring import Block, Scorer, prefill
from mdsd_core.distributions import SamplingParams, probabilities
from mdsd_core.schemes import Scheme
from mdsd_core.trees.drafted_tree import DraftedTree
from mdsd_core.trees.rules import TreeRule, Walk
from mdsd_core.trees.shape import DraftTree

#: A logits processor as in transformers: (ids [1, L], scores [1, V]) -> scores.
Processor = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class LazyRows:
    """Distributions by node, warped when looked at and kept: a rule visits few of the nodes that were scored."""

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
    tree : DraftTree
        The shape to fill; cut where a model's context ends.
    scheme : callable
        Number of drafts at a node -> scheme.
    rule : TreeRule
        Lossless for these schemes.
    sampling, draft_sampling : SamplingParams
        From logits to p and to q.
    eos : frozenset of int
        End-of-sequence tokens.
    processors : sequence of callable
        Logits processors, applied before either sampling to each node's own path.
    trim : bool
        Draw no deeper than can still be emitted.
    """

    def __init__(
        self,
        target: Scorer,
        drafter: Drafter,
        requests: Sequence[Request],
        tree: DraftTree,
        scheme: Callable[[int], Scheme],
        rule: TreeRule,
        sampling: SamplingParams,
        draft_sampling: SamplingParams,
        eos: frozenset[int] = frozenset(),
        processors: Sequence[Processor] = (),
        trim: bool = False,
    ) -> None:
        self.target, self.drafter, self.tree, self.rule = target, drafter, tree, rule
        self.sampling, self.draft_sampling = sampling, draft_sampling
        self.eos, self.processors, self.trim = eos, tuple(processors), trim
        self.active = list(requests)
        self.schemes = {n: scheme(n) for n in {len(row) for row in tree.children if row}}
        self.times = Times()
        self.records: list[RoundRecord] = []
        self.target_calls = 0
        self._target_prefills = 0
        target.start(len(self.active))
        drafter.start(len(self.active))

    @property
    def prefill_calls(self) -> int:
        """Passes over long prompts so far, target and draft."""
        return self._target_prefills + self.drafter.prefill_calls

    def step(self) -> list[StreamEvent]:
        """Run one round for every request that is not finished; nothing if all are.

        Raises whatever a model, a verifier or an interrupt raises; the loop is then as it was before the round.
        """
        if not self.active:
            return []
        with ExitStack() as stack:
            for request in self.active:
                stack.enter_context(request.choices.transaction())
            try:
                trees, q = self._draft()
                logits, pending = self._score(trees)
                walks, p = self._verify(trees, q, logits)
            except BaseException:
                self.target.forget()
                self.drafter.forget()
                raise
        with self._timed("cache"):
            keep = [[*range(n), *(n - 1 + node for node in walk.path)] for n, walk in zip(pending, walks, strict=True)]
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
        depth = self.tree.depth
        if self.trim:  # the token after the path is one of those still wanted
            depth = min(depth, request.max_new_tokens - len(request.new_tokens) - 1)
        for limit in (self.target.context_limit, self.drafter.context_limit):
            if limit is not None:
                depth = min(depth, limit - len(request.tokens))
        return self.tree.truncated(max(0, depth))

    def _draft(self) -> tuple[list[DraftedTree], list[dict[int, NDArray[np.float64]]]]:
        trees = [DraftedTree(self._shape(request), request.tokens[-1]) for request in self.active]
        q: list[dict[int, NDArray[np.float64]]] = [{} for _ in trees]
        with self._timed("draft"):
            self.drafter.begin(
                [request.tokens if tree.shape.depth else None for request, tree in zip(self.active, trees, strict=True)]
            )
        for depth in range(max(tree.shape.depth for tree in trees)):
            nodes = [[n for n in tree.nodes_at(depth) if self._has_children(tree, n)] for tree in trees]
            if not any(nodes):
                break
            with self._timed("draft"):
                logits = self.drafter.propose(trees, nodes)
            with self._timed("scheme"):
                for row, request in enumerate(self.active):
                    for node, scores in zip(nodes[row], logits[row], strict=True):
                        if scores is not None:
                            self._add_drafts(request, trees[row], node, scores, q[row])
        return trees, q

    def _has_children(self, tree: DraftedTree, node: int) -> bool:
        return tree.width(node) > 0 and (node == 0 or tree.tokens[node] not in self.eos)

    def _add_drafts(
        self, request: Request, tree: DraftedTree, node: int, scores: Any, q: dict[int, NDArray[np.float64]]
    ) -> None:
        scheme = self.schemes[tree.width(node)]
        q[node] = self._warp(scores, self.draft_sampling, request, tree, node, "draft logits")
        tree.add_drafts(node, request.choices.drafts(scheme, q[node]), scheme)

    def _score(self, trees: Sequence[DraftedTree]) -> tuple[list[Any], list[int]]:
        """Target logits at all nodes of each tree, and how many committed tokens were fed before the first draft."""
        with self._timed("target"):
            self._target_prefills += prefill(self.target, [request.tokens for request in self.active])
            blocks, pending = [], []
            for row, (request, tree) in enumerate(zip(self.active, trees, strict=True)):
                tokens = request.tokens[self.target.cached(row) :]
                root = len(tokens) - 1
                parents = [*range(-1, root), *(root + parent for parent in tree.parents[1:])]
                blocks.append(Block([*tokens, *tree.tokens[1:]], parents, scored=len(tree)))
                pending.append(len(tokens))
            logits = self.target.feed(blocks)
            self.target_calls += 1
        return logits, pending

    def _verify(
        self, trees: Sequence[DraftedTree], q: Sequence[dict[int, NDArray[np.float64]]], logits: Sequence[Any]
    ) -> tuple[list[Walk], list[LazyRows]]:
        walks, p = [], []
        with self._timed("verify"):
            for row, (request, tree) in enumerate(zip(self.active, trees, strict=True)):
                rows = self._target_rows(request, tree, logits[row])
                walks.append(self.rule.walk(tree, rows, q[row], request.choices))
                p.append(rows)
        return walks, p

    def _target_rows(self, request: Request, tree: DraftedTree, logits: Any) -> LazyRows:
        return LazyRows(lambda node: self._warp(logits[node], self.sampling, request, tree, node, "target logits"))

    def _warp(
        self, scores: Any, sampling: SamplingParams, request: Request, tree: DraftedTree, node: int, name: str
    ) -> NDArray[np.float64]:
        if self.processors:
            ids = torch.tensor([[*request.tokens, *tree.path_tokens(node)]])
            scores = torch.as_tensor(scores).detach().cpu()[None].clone()
            for processor in self.processors:
                scores = processor(ids, scores)
            scores = scores[0]
        return probabilities(scores, sampling, name=f"{name} (request {request.index})")

    def _emit(self, request: Request, tree: DraftedTree, walk: Walk, p: LazyRows) -> StreamEvent:
        """Append the round's tokens to the request, cut, and record the round."""
        tokens = [*(tree.tokens[node] for node in walk.path), walk.token]
        last: TokenKind = "resampled" if tree.drafts[walk.last].size else "bonus"
        kinds: list[TokenKind] = [*["draft"] * len(walk.path), last]  # type: ignore[list-item]
        logprobs = []
        for node, token in zip((0, *walk.path), tokens, strict=True):
            if not p[node][token] > 0:
                raise RuntimeError(f"token {token} was emitted although the target gives it probability 0")
            logprobs.append(math.log(p[node][token]))
        count, reason = self._cut(request, tokens)
        request.tokens += tokens[:count]
        request.kinds += kinds[:count]
        request.logprobs += logprobs[:count]
        request.finish_reason = reason
        self.records.append(RoundRecord(request.index, tree.drawn, _visits(tree, walk), len(walk.path), count))
        return StreamEvent(request.index, tuple(tokens[:count]), tuple(kinds[:count]), tuple(logprobs[:count]), reason)

    def _cut(self, request: Request, tokens: Sequence[int]) -> tuple[int, FinishReason | None]:
        """How many of the tokens to emit, and whether that ends the request."""
        limit = self.target.context_limit
        for count, token in enumerate(tokens, start=1):
            if token in self.eos:
                return count, "eos"
            if len(request.new_tokens) + count >= request.max_new_tokens:
                return count, "length"
            if limit is not None and len(request.tokens) + count >= limit:
                return count, "context"
        return len(tokens), None

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
