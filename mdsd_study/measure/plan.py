"""What a sweep measures: its grid, its cells, its units of work, and which rules it applies at one context."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from mdsd_core.distributions import SamplingParams
from mdsd_core.models.prompts import HubSet, Prompt, load_prompts
from mdsd_core.schemes import Scheme
from mdsd_core.schemes.base import check_count
from mdsd_core.schemes.names import scheme_of
from mdsd_core.verifiers import verifier
from mdsd_study.measure.pairs import Pair
from mdsd_study.measure.texts import MAX_NEW_TOKENS, PROMPTS_PER_SET

#: The name under which the optimal acceptance rate of a scheme stands among the verifiers.
BOUND = "bound"

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
class Cell:
    """One pair on one prompt set at one temperature: what a row of a results table is an average over.

    `text_temperature` is that of the texts; where it differs from `temperature` the texts are *fixed*.

    >>> from mdsd_study.measure.pairs import find_pair
    >>> Cell(find_pair("tiny-random"), "mt_bench", 0.7, 0.7, 0.7).slug
    'tiny-random--mt_bench--T0.7-D0.7-X0.7'
    """

    pair: Pair
    prompt_set: str
    temperature: float
    draft_temperature: float
    text_temperature: float

    @property
    def slug(self) -> str:
        """A name for files and random streams, different for different cells."""
        temperatures = f"T{self.temperature!r}-D{self.draft_temperature!r}-X{self.text_temperature!r}"
        return f"{quote(self.pair.name, safe='')}--{quote(self.prompt_set, safe='')}--{temperatures}"


@dataclass(frozen=True)
class Unit:
    """One text with all cells that are measured on it: what one worker does in one go, with one pass a model."""

    target: str
    target_revision: str | None
    prompt_set: str
    key: str
    text_temperature: float
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class SweepPlan:
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
        Scheme (see :mod:`mdsd_core.schemes.names`) and verifier. The optimal rate of each scheme comes along.
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
        Measure every stride-th position of a text.
    seed : int
        Of the texts and of sampled histories.
    histories : int
        How many histories are sampled for a context where recursive rejection without replacement has no exact value.
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
    >>> plan = SweepPlan((find_pair("tiny-random"),), ("mt_bench",), counts=(2, 3), rules=(("spechub", "spechub"),))
    >>> [(name, rule, n) for name, rule, n, _ in plan.entries()]
    [('spechub', 'bound', 2), ('spechub', 'spechub', 2)]
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
        for name in ("max_new_tokens", "stride"):
            check_count(name, getattr(self, name))
        check_count("seed", self.seed, 0)
        check_count("histories", self.histories, 64)
        for name in ("prompts", "longest_prompt"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        for n in self.counts:
            check_count("counts", n)
        fixed = () if self.text_temperature is None else (self.text_temperature,)
        for temperature in (*self.temperatures, *self.draft_temperatures, *fixed):
            self.sampling(temperature)
        self._check_rules()

    def _check_rules(self) -> None:
        for name, rule in self.rules:
            chosen = verifier(rule)
            schemes = [scheme for n in self.counts if (scheme := scheme_of(name, n)) is not None]
            if not schemes:
                raise ValueError(f"scheme {name!r} has none of the numbers of drafts {list(self.counts)}")
            for scheme in schemes:
                if not chosen.supports(scheme):
                    raise ValueError(f"verifier {rule!r} is not lossless for drafts of {scheme!r}")

    def sampling(self, temperature: float) -> SamplingParams:
        """How logits become probabilities at that temperature."""
        return SamplingParams(temperature, self.top_k, self.top_p, self.min_p)

    def entries(self) -> Iterator[tuple[str, str, int, Scheme]]:
        """(scheme name, verifier or ``bound``, n, scheme) of the rows of one context, in their order."""
        for n in self.counts:
            for name in dict.fromkeys(name for name, _ in self.rules):
                scheme = scheme_of(name, n)
                if scheme is not None:
                    yield name, BOUND, n, scheme
                    yield from ((name, rule, n, scheme) for other, rule in self.rules if other == name)

    def cells(self) -> Iterator[Cell]:
        """All cells, in the order of the table."""
        for pair in self.pairs:
            for prompt_set in self.prompt_sets:
                for temperature in self.temperatures:
                    text = temperature if self.text_temperature is None else self.text_temperature
                    for draft in self.draft_temperatures or (temperature,):
                        yield Cell(pair, prompt_set, float(temperature), float(draft), float(text))

    def read_prompts(self, prompt_set: str) -> list[Prompt]:
        """The prompts of one set that are measured, evenly spaced over it."""
        count = PROMPTS_PER_SET[self.profile] if self.prompts is None else self.prompts
        own = self.own_sets.get(prompt_set)
        if own is None and self.longest_prompt is None:
            found = load_prompts(prompt_set, limit=max(count, PROMPTS_PER_SET[self.profile]))
        else:
            found = load_prompts(prompt_set if own is None else own)
        if own is not None:
            found = [dataclasses.replace(prompt, set=prompt_set) for prompt in found]
        if self.longest_prompt is not None:
            found = [prompt for prompt in found if len(prompt.text) <= self.longest_prompt]
            if not found:
                raise ValueError(f"{prompt_set} has no prompt of at most {self.longest_prompt} characters")
        return found if count >= len(found) else [found[i * len(found) // count] for i in range(count)]

    def settings(self) -> dict[str, Any]:
        """All that a sweep's numbers depend on, ready for JSON."""
        settings = dataclasses.asdict(self)
        for pair in settings["pairs"]:
            del pair["about"]
        return _plain(settings)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
