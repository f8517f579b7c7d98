"""The grid of a sweep: its slices, the rows that each position gets, and the jobs that workers are given."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar
from urllib.parse import quote

from mdsd_core.distributions import SamplingParams
from mdsd_core.models.prompts import Prompt
from mdsd_core.schemes import Scheme
from mdsd_core.schemes.names import scheme_of
from mdsd_study.measure.pairs import Pair
from mdsd_study.measure.settings import SweepSettings

#: The name under which the optimal acceptance rate of a scheme stands among the verifiers.
BOUND = "bound"

#: Prompts that are continued in one batch. Fixed, so that the number of workers changes no text.
TEXTS_AT_A_TIME = 8

T = TypeVar("T")


class Entry(NamedTuple):
    """What one row of the table measures at a position: a verifier, or the bound, with n drafts of a scheme.

    >>> from mdsd_core.schemes import WithReplacement
    >>> Entry("with_replacement", "rrs", 2, WithReplacement(2)).verifier
    'rrs'
    """

    scheme_name: str
    verifier: str
    n: int
    scheme: Scheme


@dataclass(frozen=True)
class Slice:
    """A part of a sweep: one pair on one prompt set at one temperature, with all rules and numbers of drafts.

    `text_sampling` is how the texts were drawn; where it differs from `sampling` the texts are *fixed*.

    >>> from mdsd_study.measure.pairs import find_pair
    >>> one = SamplingParams(0.7)
    >>> Slice(find_pair("tiny-random"), "mt_bench", one, one, one).slug
    'tiny-random--mt_bench--T0.7-D0.7-X0.7'
    """

    pair: Pair
    prompt_set: str
    sampling: SamplingParams
    draft_sampling: SamplingParams
    text_sampling: SamplingParams

    @property
    def target(self) -> tuple[str, str | None]:
        """The target and its revision."""
        return self.pair.target, self.pair.target_revision

    @property
    def slug(self) -> str:
        """A name for files and random streams, different for different slices of a sweep."""
        target, draft, text = (s.temperature for s in (self.sampling, self.draft_sampling, self.text_sampling))
        temperatures = f"T{target!r}-D{draft!r}-X{text!r}"
        return f"{quote(self.pair.name, safe='')}--{quote(self.prompt_set, safe='')}--{temperatures}"


@dataclass(frozen=True)
class TextJob:
    """One text, by the key of its prompt, with all slices that are measured on it: one pass a model serves them all."""

    key: str
    slices: tuple[Slice, ...]

    @property
    def slice(self) -> Slice:
        """One of them: they have the target and the text in common."""
        return self.slices[0]


@dataclass(frozen=True)
class DrawJob:
    """A batch of texts to draw: some prompts of the set of a slice, from its target. `number` counts the batches."""

    slice: Slice
    number: int
    prompts: tuple[Prompt, ...]


def entries_of(settings: SweepSettings) -> Iterator[Entry]:
    """The rows of one position, in their order.

    >>> from mdsd_study.measure.pairs import find_pair
    >>> rules = (("spechub", "spechub"),)
    >>> settings = SweepSettings((find_pair("tiny-random"),), ("mt_bench",), counts=(2, 3), rules=rules)
    >>> [(entry.scheme_name, entry.verifier, entry.n) for entry in entries_of(settings)]
    [('spechub', 'bound', 2), ('spechub', 'spechub', 2)]
    """
    for n in settings.counts:
        for name in dict.fromkeys(name for name, _ in settings.rules):
            scheme = scheme_of(name, n)
            if scheme is not None:
                yield Entry(name, BOUND, n, scheme)
                yield from (Entry(name, rule, n, scheme) for other, rule in settings.rules if other == name)


def slices_of(settings: SweepSettings) -> Iterator[Slice]:
    """All slices, in the order of the table."""
    for pair in settings.pairs:
        for prompt_set in settings.prompt_sets:
            for temperature in settings.temperatures:
                text = temperature if settings.text_temperature is None else settings.text_temperature
                for draft in settings.draft_temperatures or (temperature,):
                    yield Slice(pair, prompt_set, *map(settings.sampling, (temperature, draft, text)))


def text_jobs(
    slices: Sequence[Slice], prompts: Mapping[str, Sequence[Prompt]], missing: Container[tuple[Slice, str]]
) -> list[TextJob]:
    """The texts of one target that some of its slices lack, in the order of sets, temperatures and prompts."""
    jobs = []
    for own in _by_text(slices, lambda one: one):
        for prompt in prompts[own[0].prompt_set]:
            left = tuple(one for one in own if (one, prompt.key) in missing)
            if left:
                jobs.append(TextJob(prompt.key, left))
    return jobs


def draw_jobs(jobs: Sequence[TextJob], prompts: Mapping[str, Sequence[Prompt]]) -> Iterator[DrawJob]:
    """The batches that the texts of these jobs are drawn in."""
    for own in _by_text(jobs, lambda job: job.slice):
        keys, every = {job.key for job in own}, prompts[own[0].slice.prompt_set]
        for number, start in enumerate(range(0, len(every), TEXTS_AT_A_TIME)):
            batch = tuple(every[start : start + TEXTS_AT_A_TIME])
            if not keys.isdisjoint(prompt.key for prompt in batch):
                yield DrawJob(own[0].slice, number, batch)


def _by_text(items: Sequence[T], slice_of: Callable[[T], Slice]) -> list[list[T]]:
    """Items that share prompt set and way of drawing the text, together."""
    groups: dict[tuple[str, SamplingParams], list[T]] = {}
    for item in items:
        one = slice_of(item)
        groups.setdefault((one.prompt_set, one.text_sampling), []).append(item)
    return list(groups.values())
