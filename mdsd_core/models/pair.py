"""A language model with its tokenizer, and a pair of them, checked to share one vocabulary."""

import inspect
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A causal language model, its tokenizer, and what a decoder must know of them.

    Attributes
    ----------
    name : str
        What it was asked for by.
    model : PreTrainedModel
        In evaluation mode.
    tokenizer : PreTrainedTokenizerBase or None
        None for tiny random models that only ever see ids.
    vocab_size : int
        The number V of ids that exist. Logits may be wider (a padded embedding); pass V to
        :func:`mdsd_core.distributions.probabilities`, which leaves the padding out.
    eos_ids : tuple of int
        The ids that end a text, from the model's own generation settings; may be several, may be none.

    Examples
    --------
    >>> from mdsd_core.models import load_model
    >>> model = load_model("tiny-random")
    >>> model.vocab_size, model.decode(model.encode("Grüße"))
    (257, 'Grüße')
    """

    name: str
    model: PreTrainedModel
    tokenizer: Any
    vocab_size: int
    eos_ids: tuple[int, ...]

    @classmethod
    def of(cls, name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> "LanguageModel":
        """Read vocabulary size and end-of-text ids off a model and its tokenizer.

        Raises
        ------
        ValueError
            If the tokenizer knows ids that the model has no logit for.
        """
        width = logits_width(model)
        size = width if tokenizer is None else 1 + max(tokenizer.get_vocab().values())
        if size > width:
            raise ValueError(f"the tokenizer of {name} has ids up to {size - 1}, but the model only {width} logits")
        eos = model.generation_config.eos_token_id if model.generation_config is not None else None
        if eos is None and tokenizer is not None:
            eos = tokenizer.eos_token_id
        ids = () if eos is None else (eos,) if isinstance(eos, int) else tuple(eos)
        return cls(name, model, tokenizer, size, tuple(int(i) for i in ids))

    @property
    def parameters(self) -> int:
        """The number of parameters, shared ones counted once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def device(self) -> torch.device:
        """Where input ids must be."""
        return input_device(self.model)

    @property
    def context_limit(self) -> int | None:
        """The number of positions the model was made for, if its configuration says."""
        return getattr(self.model.config.get_text_config(), "max_position_embeddings", None)

    def encode(self, text: str, *, chat: bool = False) -> list[int]:
        """Token ids of a prompt.

        Parameters
        ----------
        text : str
            The prompt as a person writes it.
        chat : bool
            Wrap `text` as the user's turn in the tokenizer's chat template, up to where the assistant's answer
            begins. Ignored by tokenizers without a template: their models were never taught one.

        Returns
        -------
        list of int
            With the leading token that the tokenizer itself asks for (Llama's ``<s>``, say), and no other.
        """
        if self.tokenizer is None:
            raise ValueError(f"{self.name} has no tokenizer: pass token ids")
        if chat and self.tokenizer.chat_template:
            turns = [{"role": "user", "content": text}]
            whole = self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            return list(self.tokenizer(whole, add_special_tokens=False)["input_ids"])  # the template has its own
        return list(self.tokenizer(text)["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, nothing left out and nothing tidied."""
        if self.tokenizer is None:
            raise ValueError(f"{self.name} has no tokenizer: it only knows token ids")
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))


class ModelPair:
    """A target and a draft model over one vocabulary.

    Parameters
    ----------
    target, draft : LanguageModel

    Raises
    ------
    ValueError
        If some id means different tokens to the two; the message says which.

    Warns
    -----
    UserWarning
        If the draft has more parameters than the target: the two are probably swapped.

    Examples
    --------
    >>> from mdsd_core.models import load_model
    >>> ModelPair(load_model("tiny-random"), load_model("tiny-random-draft")).vocab_size
    257
    """

    def __init__(self, target: LanguageModel, draft: LanguageModel) -> None:
        differences = vocabulary_differences(target, draft)
        if differences:
            shown = "; ".join(differences[:5])
            more = f"; and {len(differences) - 5} more" if len(differences) > 5 else ""
            raise ValueError(
                f"{target.name} and {draft.name} must have one vocabulary, "
                f"but {len(differences)} ids differ: {shown}{more}"
            )
        if draft.parameters > target.parameters:
            warnings.warn(
                f"the draft {draft.name} has {draft.parameters:,} parameters, more than the {target.parameters:,} of "
                f"the target {target.name}: are the two swapped?",
                stacklevel=2,
            )
        self.target = target
        self.draft = draft

    def __repr__(self) -> str:
        return f"ModelPair(target={self.target.name!r}, draft={self.draft.name!r}, vocab_size={self.vocab_size})"

    @property
    def vocab_size(self) -> int:
        """The number V of ids, common to both."""
        return self.target.vocab_size

    @property
    def tokenizer(self) -> Any:
        """The target's tokenizer."""
        return self.target.tokenizer

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """The ids that end a text: the target's."""
        return self.target.eos_ids


def input_device(model: PreTrainedModel) -> torch.device:
    """Where a model takes its input ids, also if accelerate keeps its weights elsewhere until they are needed.

    >>> from mdsd_core.models import load_model
    >>> input_device(load_model("tiny-random").model)
    device(type='cpu')
    """
    embedding = model.get_input_embeddings()
    device = torch.device(embedding.weight.device)  # type: ignore[arg-type]
    hook = getattr(embedding, "_hf_hook", None)
    for one in (hook, *getattr(hook, "hooks", ())):
        place = getattr(one, "execution_device", None)
        if device.type == "meta" and place is not None:
            device = torch.device(place)
    return device


def cache_name(model: PreTrainedModel) -> str:
    """What the model calls its cache of keys and values: ``cache``, or as it was once ``past_key_values``.

    >>> from mdsd_core.models import load_model
    >>> cache_name(load_model("tiny-random").model) in ("cache", "past_key_values")
    True
    """
    return "cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values"


def logits_width(model: PreTrainedModel) -> int:
    """The number of logits a model gives, padding included."""
    head = model.get_output_embeddings()
    return int(head.weight.shape[0]) if head is not None else int(model.config.get_text_config().vocab_size)


def vocabulary_differences(target: LanguageModel, draft: LanguageModel) -> list[str]:
    """What each id means where the two models disagree, in order of ids; empty if they can work together.

    Padding of either embedding is no difference. Without tokenizers only the sizes can be compared.

    >>> from mdsd_core.models import tiny_random_pair
    >>> vocabulary_differences(tiny_random_pair(5).target, tiny_random_pair(5, seed=1).draft)
    []
    >>> vocabulary_differences(tiny_random_pair(5).target, tiny_random_pair(7).draft)
    ['id 5: only draft', 'id 6: only draft']
    """
    sides = []
    for side in (target, draft):
        if side.tokenizer is None or target.tokenizer is None or draft.tokenizer is None:
            sides.append({i: "" for i in range(side.vocab_size)})
        else:
            sides.append({i: token for token, i in side.tokenizer.get_vocab().items()})
    ours, theirs = sides
    result = []
    for i in sorted(ours.keys() | theirs.keys()):
        if i not in ours:
            result.append(f"id {i}: only draft{f' ({theirs[i]!r})' if theirs[i] else ''}")
        elif i not in theirs:
            result.append(f"id {i}: only target{f' ({ours[i]!r})' if ours[i] else ''}")
        elif ours[i] != theirs[i]:
            result.append(f"id {i}: target {ours[i]!r}, draft {theirs[i]!r}")
    return result


#: Spaces, digits, code, several scripts, a combining accent and emoji with joiners.
MIXED_TEXT = "Hello,  world!\n\tdef f(x): return x+12345\r\nGrüße, 世界 — naïve e\u0301 👩‍👩‍👧 don't . , 0.5%"


def tokenizer_problems(tokenizer: Any, width: int) -> list[str]:
    """What is wrong with a tokenizer, in words; empty if nothing is.

    Checked: no token is put in front of a text unless the tokenizer's own settings ask for it, a mixed text survives
    the round trip, and there are as many ids as logits.

    >>> from mdsd_core.models import byte_tokenizer
    >>> tokenizer_problems(byte_tokenizer(), 257)
    []
    >>> tokenizer_problems(byte_tokenizer(), 300)
    ['257 ids for 300 logits']
    """
    problems = []
    plain, default = tokenizer(MIXED_TEXT, add_special_tokens=False)["input_ids"], tokenizer(MIXED_TEXT)["input_ids"]
    asked = [tokenizer.bos_token_id] if getattr(tokenizer, "add_bos_token", None) else []
    if default[: len(default) - len(plain)] != asked or default[len(default) - len(plain) :] != plain:
        problems.append(f"adds {default[: len(default) - len(plain)]} to a text, its settings ask for {asked}")
    back = tokenizer.decode(plain, clean_up_tokenization_spaces=False)
    if back != MIXED_TEXT:
        problems.append(f"a text does not survive the round trip: {MIXED_TEXT!r} became {back!r}")
    size = 1 + max(tokenizer.get_vocab().values())
    if size != width:
        problems.append(f"{size} ids for {width} logits")
    return problems
