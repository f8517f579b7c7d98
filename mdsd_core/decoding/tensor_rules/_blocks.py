"""Sums over blocks of a vocabulary, and what they make cheap: a draw, and the mass without a few tokens.

All work on rows of tensors [B, V] at once and never ask the device for a value, so nothing waits for it.
"""

from collections.abc import Callable

import torch
from torch import Tensor

#: Tokens in a block, as in the verifiers: a draw scans the sums of the blocks and then one block.
BLOCK = 512


def by_blocks(x: Tensor, reduce: Callable[[Tensor], Tensor]) -> Tensor:
    """Reduce the blocks of every row, [B, V] -> [B, blocks]; the last block may be shorter. No copy of `x`."""
    whole = x.shape[1] // BLOCK
    parts = []
    if whole:
        parts.append(reduce(x[:, : whole * BLOCK].unflatten(1, (whole, BLOCK))))
    if x.shape[1] % BLOCK:
        parts.append(reduce(x[:, whole * BLOCK :].unsqueeze(1)))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def block_sums(x: Tensor) -> Tensor:
    """Sums of the blocks of every row, [B, blocks]."""
    return by_blocks(x, lambda part: part.sum(dim=-1))


def pick(x: Tensor, column: Tensor) -> Tensor:
    """``x[i, column[i]]`` for every row i, [B]."""
    return x.gather(1, column[:, None])[:, 0]


def entries(x: Tensor, blocks: Tensor) -> tuple[Tensor, Tensor]:
    """The token ids and the values, both [B, J, BLOCK], in blocks [B, J]; values beyond the vocabulary are 0."""
    ids = blocks[:, :, None] * BLOCK + torch.arange(min(BLOCK, x.shape[1]), device=x.device)
    inside = ids < x.shape[1]
    values = x.gather(1, ids.clamp(max=x.shape[1] - 1).flatten(1)).view(ids.shape)
    return ids, torch.where(inside, values, 0.0)


def without(x: Tensor, sums: Tensor, tokens: Tensor) -> Tensor:
    """The sums of the blocks of `x` without the given tokens ([B, J], -1 stands for none).

    The blocks that lose a token are summed anew: what is left may be a tiny part of the whole. O(J^2 BLOCK) a row.
    """
    blocks = tokens.clamp(min=0) // BLOCK
    ids, values = entries(x, blocks)
    gone = (ids[:, :, :, None] == tokens[:, None, None, :]).any(dim=-1)
    return sums.scatter(1, blocks, values.masked_fill(gone, 0.0).sum(dim=-1))


def draw(x: Tensor, sums: Tensor, u: Tensor, gone: Tensor | None = None) -> Tensor:
    """The token at ``u`` times the sum of each row of weights `x` >= 0, [B]; -1 where they are all 0 (or not numbers).

    `sums` are the block sums of the row, without the tokens `gone` ([B, J]) if there are any. A token of weight 0 is
    never drawn: the running sum must *exceed* the point sought, and if rounding leaves the point beyond the end, the
    last token of positive weight is taken.
    """
    running = sums.cumsum(dim=1)
    total = running[:, -1]
    sought = (u * total)[:, None]
    block = _first_or_last(running > sought, sums > 0.0)
    below = pick(running, (block - 1).clamp(min=0)) * (block > 0)
    ids, values = entries(x, block[:, None])
    ids, values = ids[:, 0], values[:, 0]
    if gone is not None:
        values = values.masked_fill((ids[:, :, None] == gone[:, None, :]).any(dim=-1), 0.0)
    reached = torch.cat((values[:, :1] + below[:, None], values[:, 1:]), dim=1).cumsum(dim=1)
    positive = values > 0.0
    token = pick(ids, _first_or_last((reached > sought) & positive, positive))
    return torch.where(total > 0.0, token, -1)


def _first_or_last(hit: Tensor, possible: Tensor) -> Tensor:
    """The first column with a hit; where there is none, the last possible one."""
    last = hit.shape[1] - 1 - possible.flip(1).to(torch.uint8).argmax(dim=1)
    return torch.where(hit.any(dim=1), hit.to(torch.uint8).argmax(dim=1), last)


def top_tokens(q: Tensor, count: Tensor, most: int) -> Tensor:
    """The `count` ([B], at most `most`) most probable tokens of each row, [B, most], -1 where there is none.

    Most probable first, lowest id first among ties, none of probability 0: :func:`mdsd_core.schemes.top_tokens`. One
    pass over `q` for the largest entry of each block, then O(blocks + BLOCK) a token.
    """
    largest = by_blocks(q, lambda part: part.amax(dim=-1))
    top = torch.full((q.shape[0], most), -1, dtype=torch.int64, device=q.device)
    for j in range(most):
        block = largest.argmax(dim=1, keepdim=True)  # the first among equals, so the lowest ids
        ids, values = entries(q, block)
        ids, values = ids[:, 0], values[:, 0]
        taken = (ids[:, :, None] == top[:, None, :]).any(dim=-1)
        values = values.masked_fill(taken, 0.0)
        place = values.argmax(dim=1)
        found = (pick(values, place) > 0.0) & (j < count)
        top[:, j] = torch.where(found, pick(ids, place), -1)
        rest = values.scatter(1, place[:, None], 0.0).amax(dim=1, keepdim=True)
        largest = largest.scatter(1, block, rest)
    return top
