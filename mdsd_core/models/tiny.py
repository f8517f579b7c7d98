"""Tiny random models: for tests, examples and trying a command without any download."""

import copy
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedModel, PreTrainedTokenizerFast

from mdsd_core.models.pair import LanguageModel, ModelPair
from mdsd_core.models.skipping import skip_layers

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

#: Ids of :func:`byte_tokenizer`: one a byte, and the end of text.
BYTE_VOCABULARY = 257


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer with one id a byte (0..255) and ``<eos>`` = 256: every text survives the round trip.

    >>> tokenizer = byte_tokenizer()
    >>> tokenizer("aé")["input_ids"], tokenizer.decode([97, 195, 169])
    ([97, 195, 169], 'aé')
    """
    # The 256 printable stand-ins of byte-level BPE, in byte order.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    symbols = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    tokenizer = Tokenizer(models.BPE(vocab={symbols[byte]: byte for byte in range(256)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>", clean_up_tokenization_spaces=False)


def random_model(
    config: "PreTrainedConfig", *, seed: int, dtype: torch.dtype = torch.float64, sharpness: float = 2.0
) -> PreTrainedModel:
    """A model of any transformers family with random weights, in evaluation mode on the CPU.

    Parameters
    ----------
    config : PreTrainedConfig
        Of a causal language model; keep it tiny.
    seed : int
        Of the weights. The global random state of torch is left as it was.
    dtype : torch.dtype
        float64 by default: tests compare to 1e-10.
    sharpness : float
        The weights of the output layer are scaled so that logits vary by about this much: 0 gives uniform rows. Without
        effect where the output layer is the embedding itself.

    Examples
    --------
    >>> sizes = dict(vocab_size=5, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> config = LlamaConfig(**sizes)
    >>> random_model(config, seed=0).dtype
    torch.float64
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
        for parameter in model.parameters():  # larger than the usual initialisation, so that contexts matter
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
        if not config.tie_word_embeddings:
            with torch.no_grad():
                model.get_output_embeddings().weight.mul_(sharpness)
    return model.requires_grad_(False)


def tiny_random_pair(
    vocab_size: int = BYTE_VOCABULARY,
    *,
    seed: int = 0,
    noise: float = 0.3,
    dtype: torch.dtype = torch.float64,
    **changes: Any,
) -> ModelPair:
    """A tiny random Llama and a draft of one layer less: its weights are the target's plus noise, nothing is shared.

    Parameters
    ----------
    vocab_size : int
        With the default, 257, the pair has the tokenizer of :func:`byte_tokenizer`; otherwise none.
    seed : int
        Of all weights.
    noise : float
        Size of the draft's deviations, relative to each weight matrix; 0 leaves only the missing layer.
    dtype : torch.dtype
        Of both models.
    **changes
        Other entries of ``LlamaConfig``, such as ``max_position_embeddings=16``.

    Examples
    --------
    >>> pair = tiny_random_pair(5)
    >>> pair.vocab_size, pair.target.parameters > pair.draft.parameters
    (5, True)
    """
    settings: dict[str, Any] = {
        "vocab_size": vocab_size,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": BYTE_VOCABULARY - 1 if vocab_size == BYTE_VOCABULARY else None,
        "pad_token_id": None,
    }
    target = random_model(LlamaConfig(**settings | changes), seed=seed, dtype=dtype)
    draft = copy.deepcopy(skip_layers(target, [1]))
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in draft.parameters():
            if parameter.ndim > 1:
                wiggle = torch.randn(parameter.shape, generator=generator, dtype=dtype)
                parameter.add_(wiggle * noise * parameter.std())
    tokenizer = byte_tokenizer() if vocab_size == BYTE_VOCABULARY else None
    return ModelPair(
        LanguageModel.of("tiny-random", target, tokenizer), LanguageModel.of("tiny-random-draft", draft, tokenizer)
    )
