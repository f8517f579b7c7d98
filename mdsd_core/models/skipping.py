"""Self-drafting by skipping layers: a draft model that shares every weight with its target."""

import copy
from collections.abc import Sequence
from itertools import chain

import torch
from transformers import PreTrainedModel


def decoder_layers(model: PreTrainedModel) -> tuple[torch.nn.Module, str, torch.nn.ModuleList]:
    """The list of decoder layers of a causal language model, whatever its family calls it.

    Returns
    -------
    owner, name, layers
        ``getattr(owner, name) is layers``, a ModuleList with one entry a layer.
    """
    count = model.config.get_text_config().num_hidden_layers
    found = [
        (owner, name, child)
        for owner in model.modules()
        for name, child in owner.named_children()
        if isinstance(child, torch.nn.ModuleList) and len(child) == count
    ]
    if len(found) != 1:
        raise ValueError(f"{type(model).__name__} must have one list of {count} layers, found {len(found)}")
    return found[0]


def skip_layers(model: PreTrainedModel, skipped: Sequence[int]) -> PreTrainedModel:
    """A copy of `model` without some of its layers; all weights are shared with `model`, none is copied.

    The copy is a model of its own: own configuration, own numbering of the layers in the key/value cache, so that it
    and `model` may run in turn, each on its own cache.

    Parameters
    ----------
    model : PreTrainedModel
        Unchanged.
    skipped : sequence of int
        The layers to leave out, counted from 0; all different, at least one layer must remain.

    Raises
    ------
    ValueError
        If a layer does not exist or is named twice, or none remains.

    Examples
    --------
    >>> from mdsd_core.models import tiny_random_pair
    >>> target = tiny_random_pair().target.model
    >>> draft = skip_layers(target, [1])
    >>> target.config.num_hidden_layers, draft.config.num_hidden_layers
    (3, 2)
    >>> draft.get_input_embeddings().weight is target.get_input_embeddings().weight
    True
    """
    count = len(decoder_layers(model)[2])
    chosen = {int(i) for i in skipped}
    if len(chosen) != len(skipped) or not all(0 <= i < count for i in chosen) or len(chosen) >= count:
        raise ValueError(f"skipped must name different layers of 0..{count - 1} and leave one, got {list(skipped)}")
    shared = {id(tensor): tensor for tensor in chain(model.parameters(), model.buffers())}
    draft = copy.deepcopy(model, shared)  # deepcopy takes what it finds in its memo as already copied
    owner, name, layers = decoder_layers(draft)
    kept = [i for i in range(count) if i not in chosen]
    setattr(owner, name, torch.nn.ModuleList(layers[i] for i in kept))
    for index, layer in enumerate(getattr(owner, name)):
        for module in layer.modules():
            if hasattr(module, "layer_idx"):
                module.layer_idx = index
    config = draft.config.get_text_config()
    config.num_hidden_layers = len(kept)
    if getattr(config, "layer_types", None) is not None:
        config.layer_types = [config.layer_types[i] for i in kept]
    return draft
