"""What settings are compared on, if it is a pair of models: contexts of their texts, and what their passes cost."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mdsd_core.decoding.generate import as_scorer
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import ModelPair
from mdsd_core.models.prompts import Prompt
from mdsd_core.schemes.base import check_count
from mdsd_core.trees.shape import DraftTree
from mdsd_study.analysis.compare_settings import Contexts
from mdsd_study.analysis.cost_model import RoundCost, measure_pass
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
        Positions between the beginnings of two rounds.
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


def measure_passes(pair: ModelPair, prompt: Sequence[int], drafts: Sequence[int], depth: int = 1) -> RoundCost:
    """Time the models' passes in rounds with trees of n drafts at every node; the other parts of the cost are 0.

    Equal drafts count as nodes of their own, so for drafts with replacement this is the most it can cost.

    Parameters
    ----------
    pair : ModelPair
        Target and draft model, on any device.
    prompt : sequence of int
        What stands before the tree, at least two tokens.
    drafts : sequence of int
        The numbers n of drafts that are timed.
    depth : int
        Levels of the tree.

    Examples
    --------
    >>> from mdsd_core.models import load_pair
    >>> passes = measure_passes(load_pair("tiny-random", "tiny-random-draft"), [97, 98], drafts=[2, 3], depth=2)
    >>> passes.target.tokens, passes.draft.tokens
    ((1, 7, 13), (1, 2, 3))
    """
    trees = [DraftTree.from_branching((n,) * depth) for n in drafts]
    whole = [1, *(tree.size + 1 for tree in trees)]
    levels = [1, *(nodes for tree in trees for nodes in tree.nodes_per_depth[:-1])]
    target = measure_pass(as_scorer(pair.target), prompt, whole, repeats=_PASSES)
    draft = measure_pass(as_scorer(pair.draft), prompt, levels, repeats=_PASSES)
    return RoundCost(target, draft, draw=0.0, verdict=0.0, keep=0.0)
