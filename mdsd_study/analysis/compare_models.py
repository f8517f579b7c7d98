"""What settings are compared on, if it is a pair of models: contexts of their texts, and what their passes cost."""

import statistics
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mdsd_core.decoding.scoring import Block, CachedModel
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import ModelPair
from mdsd_core.models.prompts import Prompt
from mdsd_core.schemes.base import check_count
from mdsd_core.trees.shape import DraftTree
from mdsd_study.analysis.compare_settings import Contexts, RoundCost
from mdsd_study.measure.teacher_forcing import positions
from mdsd_study.measure.texts import draw_continuations

#: How often a pass of a model is timed.
_PASSES = 3


def contexts_of_pair(
    pair: ModelPair,
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    draft_sampling: SamplingParams | None = None,
    *,
    tokens: int = 32,
    stride: int = 8,
    depth: int = 1,
    seed: int = 0,
) -> Contexts:
    """Contexts from texts that the target draws for these prompts.

    Parameters
    ----------
    pair : ModelPair
        Target and draft model.
    prompts : sequence of Prompt
        Their texts are drawn anew.
    sampling, draft_sampling : SamplingParams
        From logits to p and to q; the drafts' default to the target's.
    tokens : int
        The longest text.
    stride : int
        A round begins at every stride-th position.
    depth : int
        How many positions in a row belong to a round.
    seed : int
        Of the texts.

    Returns
    -------
    Contexts

    Raises
    ------
    ValueError
        If no text is as long as `depth`.

    Examples
    --------
    >>> from mdsd_core.models import load_pair
    >>> pair = load_pair("tiny-random", "tiny-random-draft")
    >>> prompt = Prompt("mine", "1", "ab", chat=False, licence="my own", printable=True)
    >>> contexts = contexts_of_pair(pair, [prompt], SamplingParams(), tokens=4, stride=2)
    >>> len(contexts.pairs) == len(contexts.prompts) > 0
    True
    """
    for name, value in (("tokens", tokens), ("stride", stride), ("depth", depth)):
        check_count(name, value)
    texts = draw_continuations(pair.target, prompts, sampling, seed=seed, max_new_tokens=tokens)
    pairs: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    of_prompt: list[str] = []
    windows: list[list[int]] = []
    for text in texts:
        starts = range(0, len(text.tokens) - depth + 1, stride)
        wanted = {start + i for start in starts for i in range(depth)}
        place = {}
        for position in positions(pair.target, {"draft": pair.draft}, [text], sampling, draft_sampling):
            if position.index in wanted:
                place[position.index] = len(pairs)
                pairs.append((position.p, position.q["draft"]))
                of_prompt.append(text.key)
        windows += [[place[start + i] for i in range(depth)] for start in starts]
    if not windows:
        raise ValueError(f"no text has {depth} tokens: ask for a smaller depth, or for other prompts")
    return Contexts(pairs, of_prompt, np.array(windows))


def round_cost(pair: ModelPair, prompt: Sequence[int], n: int, depth: int = 1) -> RoundCost:
    """Time the models' passes of one round with a tree of n drafts at every node.

    Equal drafts count as nodes of their own, so for drafts with replacement this is the most it can cost.

    Parameters
    ----------
    pair : ModelPair
        Target and draft model, on any device.
    prompt : sequence of int
        What stands before the tree.
    n, depth : int
        The tree: n children at every node, `depth` levels.

    Examples
    --------
    >>> from mdsd_core.models import load_pair
    >>> cost = round_cost(load_pair("tiny-random", "tiny-random-draft"), [97, 98], n=2, depth=2)
    >>> cost.nodes, cost.inner, cost.target > 0.0
    (6, 3, True)
    """
    tree = DraftTree.from_branching((n,) * depth)
    target, draft = (CachedModel(model.model, pair.vocab_size) for model in (pair.target, pair.draft))
    for scorer in (target, draft):
        scorer.feed([Block.chain(prompt[:-1], 1)])
        scorer.commit([range(len(prompt) - 1)])
    root, token = prompt[-1], prompt[0]
    whole = Block([root, *[token] * tree.size], list(tree.parents), tree.size + 1)
    levels = [Block([root], [-1], 1)]
    first = 1
    for count in tree.nodes_per_depth[:-1]:
        levels.append(Block([token] * count, list(tree.parents[first : first + count]), count))
        first += count
    return RoundCost(
        tree.size,
        sum(len(block.tokens) for block in levels),
        _pass_ms(target, [Block([root], [-1], 1)]),
        _pass_ms(target, [whole]),
        _pass_ms(draft, levels),
    )


def _pass_ms(scorer: CachedModel, blocks: Sequence[Block]) -> float:
    spent = []
    for _ in range(_PASSES + 1):
        started = time.perf_counter()
        for block in blocks:
            logits = scorer.feed([block])
        logits[0][0, 0].item()  # waits for the device
        spent.append(time.perf_counter() - started)
        scorer.forget()
    return 1e3 * statistics.median(spent[1:])
