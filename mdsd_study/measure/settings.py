"""What a sweep measures, in one frozen object."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mdsd_core.distributions import SamplingParams
from mdsd_core.models.prompts import HubSet
from mdsd_core.schemes.base import check_count
from mdsd_core.schemes.names import scheme_of
from mdsd_core.verifiers import verifier
from mdsd_study.measure.pairs import Pair
from mdsd_study.measure.texts import MAX_NEW_TOKENS, PROMPTS_PER_SET

#: (scheme, verifier) pairs that a sweep measures unless told otherwise.
DEFAULT_RULES = (
    ("with_replacement", "rrs"),
    ("with_replacement", "kseq"),
    ("with_replacement", "token_matching"),
    ("without_replacement", "rrs_without"),
    ("without_replacement", "token_matching"),
    ("greedy", "greedy"),
    ("greedy", "token_matching"),
)


@dataclass(frozen=True)
class SweepSettings:
    """A sweep: pair x prompt set x temperature x number of drafts x scheme x verifier.

    Attributes
    ----------
    pairs : tuple of Pair
        See :func:`mdsd_study.measure.pairs.find_pair`.
    prompt_sets : tuple of str
        Names that :func:`mdsd_core.models.prompts.load_prompts` knows, or keys of `own_sets`.
    temperatures : tuple of float
        Of the target.
    counts : tuple of int
        Numbers of drafts n.
    rules : tuple of (str, str)
        Scheme (see :mod:`mdsd_core.schemes.names`) and verifier. The optimal rate of each scheme is measured too.
    draft_temperatures : tuple of float
        Of the draft; empty: that of the target.
    text_temperature : float or None
        None: every text is drawn at the temperature it is measured at. A number: one text for all temperatures.
    top_k, top_p, min_p
        Filters of both models, as in :class:`~mdsd_core.distributions.SamplingParams`.
    profile : str
        Says how many prompts, and where texts may be stored.
    prompts : int or None
        Prompts of each set; None: by profile. Fewer than the profile's are chosen among these.
    longest_prompt : int or None
        Leave out prompts of more characters.
    max_new_tokens : int
        Length of the texts; shorter where they end by themselves.
    stride : int
        Positions from one that is measured to the next; 1: all are measured.
    seed : int
        Of the texts and of sampled histories.
    histories : int
        How many histories are sampled at a position where recursive rejection without replacement has no exact value.
    dtype : str or None
        Precision of the models, such as ``"bfloat16"``; None: see :func:`mdsd_core.models.load_model`.
    own_sets : mapping of str to HubSet
        Prompt sets of the user's own.

    Raises
    ------
    ValueError, KeyError
        If an entry is out of range or unknown, or a verifier is not lossless for its scheme.

    Examples
    --------
    >>> from mdsd_study.measure.pairs import find_pair
    >>> SweepSettings((find_pair("tiny-random"),), ("mt_bench",), rules=(("greedy", "rrs_without"),), counts=(0,))
    Traceback (most recent call last):
        ...
    ValueError: counts must be an integer >= 1, got 0
    """

    pairs: tuple[Pair, ...]
    prompt_sets: tuple[str, ...]
    temperatures: tuple[float, ...] = (0.7,)
    counts: tuple[int, ...] = (3,)
    rules: tuple[tuple[str, str], ...] = DEFAULT_RULES
    draft_temperatures: tuple[float, ...] = ()
    text_temperature: float | None = None
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    profile: str = "quick"
    prompts: int | None = None
    longest_prompt: int | None = None
    max_new_tokens: int = MAX_NEW_TOKENS
    stride: int = 1
    seed: int = 0
    histories: int = 2048
    dtype: str | None = None
    own_sets: Mapping[str, HubSet] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("pairs", "prompt_sets", "temperatures", "counts", "rules"):
            values = getattr(self, name)
            if not isinstance(values, tuple) or not values or len(set(values)) != len(values):
                raise ValueError(f"{name} must be a tuple of different entries, at least one, got {values!r}")
        if len({pair.name for pair in self.pairs}) != len(self.pairs):
            raise ValueError(f"pairs must have different names, got {', '.join(pair.name for pair in self.pairs)}")
        if self.profile not in PROMPTS_PER_SET:
            raise ValueError(f"profile must be one of {', '.join(PROMPTS_PER_SET)}, got {self.profile!r}")
        least = {"max_new_tokens": 1, "stride": 1, "seed": 0, "histories": 64, "prompts": 1, "longest_prompt": 1}
        for name, minimum in least.items():
            if name not in ("prompts", "longest_prompt") or getattr(self, name) is not None:
                check_count(name, getattr(self, name), minimum)
        for n in self.counts:
            check_count("counts", n)
        fixed = () if self.text_temperature is None else (self.text_temperature,)
        for temperature in (*self.temperatures, *self.draft_temperatures, *fixed):
            self.sampling(temperature)
        for name, rule in self.rules:
            schemes = [scheme for n in self.counts if (scheme := scheme_of(name, n)) is not None]
            if not schemes:
                raise ValueError(f"scheme {name!r} has none of the numbers of drafts {list(self.counts)}")
            for scheme in schemes:
                if not verifier(rule).supports(scheme):
                    raise ValueError(f"verifier {rule!r} is not lossless for drafts of {scheme!r}")

    def sampling(self, temperature: float) -> SamplingParams:
        """The filters with a temperature: how logits become probabilities."""
        checked = SamplingParams(temperature, self.top_k, self.top_p, self.min_p)
        return dataclasses.replace(checked, temperature=float(temperature))

    def for_json(self) -> dict[str, Any]:
        """All that a sweep's numbers depend on."""
        settings = dataclasses.asdict(self)
        for pair in settings["pairs"]:
            del pair["about"]
        return settings
