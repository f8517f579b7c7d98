"""Teacher forcing: p and q at every position of a text whose tokens are given."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from mdsd_core.distributions import SamplingParams, probabilities
from mdsd_core.models import LanguageModel
from mdsd_study.measure.texts import Continuation


@dataclass(frozen=True, eq=False)
class Position:
    """One position of a text: what the target and the drafts say of the next token, and which token came.

    Attributes
    ----------
    key : str
        ``set/id`` of the prompt.
    index : int
        Place in the continuation, from 0.
    token : int
        The token that stands there.
    p : ndarray, float64, shape (V,)
        The target's distribution.
    q : dict of str to ndarray, float64, shape (V,)
        The distribution of each draft, by name.

    Examples
    --------
    >>> Position("mine/1", 0, 2, np.array([0.0, 0.0, 1.0]), {}).p.size
    3
    """

    key: str
    index: int
    token: int
    p: NDArray[np.float64]
    q: dict[str, NDArray[np.float64]]


@torch.inference_mode()
def forced_logits(model: LanguageModel, text: Continuation) -> NDArray[np.float32]:
    """The logits of `model` for each token of a continuation, given all tokens before it, by one forward pass.

    Returns
    -------
    ndarray, shape (len(text.tokens), W)
        Row i belongs to ``text.tokens[i]``; float32, or float64 for a model in that precision. Padding of the
        vocabulary is still in it.

    Examples
    --------
    >>> from mdsd_core.models import load_model
    >>> from mdsd_study.measure.texts import Continuation
    >>> forced_logits(load_model("tiny-random"), Continuation("mine/1", (97, 98), (99, 100, 101))).shape
    (3, 257)
    """
    whole = [*text.prompt, *text.tokens[:-1]]  # the last token predicts nothing that is asked for
    ids = torch.tensor([whole], device=model.device)
    logits = model.model(input_ids=ids, use_cache=False, logits_to_keep=len(text.tokens)).logits[0]
    return (logits if logits.dtype == torch.float64 else logits.float()).cpu().numpy()


def positions(
    target: LanguageModel,
    drafts: Mapping[str, LanguageModel],
    texts: Iterable[Continuation],
    params: SamplingParams,
    draft_params: SamplingParams | None = None,
) -> Iterator[Position]:
    """Go through all positions of the texts, one text after the other.

    One forward pass a text for the target and for each draft; the logits of one text at a time are in memory.

    Parameters
    ----------
    target : LanguageModel
        Gives p.
    drafts : mapping of str to LanguageModel
        Give q; each must share the target's vocabulary, as the two sides of a ``ModelPair`` do.
    texts : iterable of Continuation
        For example :func:`mdsd_study.measure.stored_texts.load_texts`.
    params, draft_params : SamplingParams
        Of the target and of the drafts; the drafts' default to the target's.

    Yields
    ------
    Position

    Examples
    --------
    >>> from mdsd_core.models import tiny_random_pair
    >>> pair = tiny_random_pair(5)
    >>> text = Continuation("toy/0", prompt=(1, 2), tokens=(3, 4, 0))
    >>> for position in positions(pair.target, {"tiny": pair.draft}, [text], SamplingParams(0.7)):
    ...     print(position.index, position.token, position.p.shape, position.q["tiny"].shape)
    0 3 (5,) (5,)
    1 4 (5,) (5,)
    2 0 (5,) (5,)
    """
    draft_params = params if draft_params is None else draft_params
    size = target.vocab_size
    for text in texts:
        of_target = forced_logits(target, text)
        of_drafts = {name: forced_logits(draft, text) for name, draft in drafts.items()}
        for index, token in enumerate(text.tokens):
            yield Position(
                text.key,
                index,
                token,
                probabilities(of_target[index], params, vocab_size=size, name="target logits"),
                {
                    name: probabilities(rows[index], draft_params, vocab_size=size, name=f"logits of {name}")
                    for name, rows in of_drafts.items()
                },
            )
