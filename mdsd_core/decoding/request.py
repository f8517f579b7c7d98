"""One prompt on its way: what it has so far, and what a round gives it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mdsd_core.randomness import Choices

#: How a token came about: an accepted draft; the target's own token where nothing was drafted; after a rejection.
TokenKind = Literal["draft", "bonus", "resampled"]

#: Why a request ended: end-of-sequence token; `max_new_tokens`; the models see no more; the user interrupted.
FinishReason = Literal["eos", "length", "context", "interrupted"]


@dataclass(frozen=True)
class StreamEvent:
    """Tokens that a round committed to one request.

    Attributes
    ----------
    request : int
        Which prompt.
    tokens, kinds, logprobs : tuple
        The new tokens, how each came about, and its log-probability under the target's distribution.
    finish_reason : str or None
        Set in the last event of a request.

    Examples
    --------
    >>> StreamEvent(0, (7, 8), ("draft", "bonus"), (-0.1, -0.7), None).tokens
    (7, 8)
    """

    request: int
    tokens: tuple[int, ...]
    kinds: tuple[TokenKind, ...]
    logprobs: tuple[float, ...]
    finish_reason: FinishReason | None


@dataclass
class Request:
    """One prompt in flight."""

    index: int
    tokens: list[int]
    prompt_length: int
    max_new_tokens: int
    choices: Choices
    kinds: list[TokenKind] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish_reason: FinishReason | None = None

    @property
    def new_tokens(self) -> list[int]:
        """What was generated so far."""
        return self.tokens[self.prompt_length :]

    def cut(
        self, tokens: Sequence[int], eos: Collection[int], context_limit: int | None
    ) -> tuple[int, FinishReason | None]:
        """How many of the tokens of a round to emit, and whether that ends the request."""
        for count, token in enumerate(tokens, start=1):
            if token in eos:
                return count, "eos"
            if len(self.new_tokens) + count >= self.max_new_tokens:
                return count, "length"
            if context_limit is not None and len(self.tokens) + count >= context_limit:
                return count, "context"
        return len(tokens), None
