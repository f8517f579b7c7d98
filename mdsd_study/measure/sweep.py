"""A sweep from its settings to its table: texts, then all rates at their positions, prompt by prompt.

Start reading at :func:`measure`: it asks which prompts are not finished, has workers draw their texts and measure them
(:mod:`mdsd_study.measure.work` is what a worker does), and writes the rows of each prompt as soon as they are there.
"""

import contextlib
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mdsd_core.disk_cache import in_one_step
from mdsd_core.models.prompts import Prompt, evenly_spaced, load_prompts
from mdsd_study.measure.grid import DrawJob, Slice, TextJob, draw_jobs, slices_of, text_jobs
from mdsd_study.measure.model_cache import Placement
from mdsd_study.measure.settings import SweepSettings
from mdsd_study.measure.store import Store
from mdsd_study.measure.stored_texts import TextSettings, stored_texts
from mdsd_study.measure.table import summarize
from mdsd_study.measure.texts import PROMPTS_PER_SET, Continuation
from mdsd_study.measure.work import draw_texts, measure_text
from mdsd_study.measure.workers import Runner, runner


class SweepIncomplete(RuntimeError):
    """Some prompts could not be measured; all others are finished and kept. `failures` says why, by prompt.

    >>> str(SweepIncomplete(Path("out"), {"own/3": "ValueError: too long"}))
    '1 prompts could not be measured: own/3: ValueError: too long. The others are in out'
    """

    def __init__(self, folder: Path, failures: dict[str, str]) -> None:
        shown = "; ".join(f"{key}: {why}" for key, why in list(failures.items())[:5])
        more = f"; and {len(failures) - 5} more" if len(failures) > 5 else ""
        super().__init__(f"{len(failures)} prompts could not be measured: {shown}{more}. The others are in {folder}")
        self.failures = failures


@dataclass(frozen=True)
class Sweep:
    """A finished sweep.

    Attributes
    ----------
    folder : Path
        See :mod:`mdsd_study.measure.store`.
    computed, reused : int
        How many prompts were measured now, and how many were finished before, counted once for each slice.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from mdsd_study.measure.pairs import find_pair
    >>> rules = (("greedy", "greedy"),)
    >>> settings = SweepSettings((find_pair("tiny-random"),), ("mt_bench",), prompts=1, max_new_tokens=2, rules=rules)
    >>> measure(settings, mkdtemp(), workers=0).summary()["verifier"].tolist()
    ['bound', 'greedy']
    """

    folder: Path
    computed: int
    reused: int

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows (see :data:`~mdsd_study.measure.table.COLUMNS`), in the order of the settings."""
        return pq.read_table(self.folder / "table.parquet", columns=list(columns) if columns else None)

    def summary(self) -> pd.DataFrame:
        """Means over positions with intervals, see :func:`~mdsd_study.measure.table.summarize`."""
        return pd.read_parquet(self.folder / "summary.parquet")


def measure(
    settings: SweepSettings,
    folder: Path | str,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    placement: Placement | None = None,
    reference: Path | None = None,
    progress: bool = False,
    finished: Callable[[Slice, str], None] | None = None,
) -> Sweep:
    """Measure what the settings ask for; go on where an earlier run with the same settings and folder stopped.

    Parameters
    ----------
    settings : SweepSettings
        What to measure.
    folder : path
        New, or of an interrupted run. Only this process writes to it: a cluster needs no common file system.
    scheduler : str, optional
        Address of a Dask scheduler, such as ``tcp://host:8786``; its workers need this package.
    workers : int, optional
        Without a scheduler: worker processes on this machine, one thread each; default: one for each core. 0: measure
        in this process, without Dask.
    placement : Placement, optional
        Where the workers put the models; its dtype is that of the settings.
    reference : path, optional
        Where stored texts lie; default: ``reference/`` of the checkout.
    progress : bool
        Draw a bar on standard error.
    finished : callable, optional
        Called with (slice, key of the prompt) after their rows have been written.

    Returns
    -------
    Sweep

    Raises
    ------
    SettingsDiffer
        If the folder belongs to another sweep.
    SweepIncomplete
        If some prompts failed, after all others are finished.
    ModelMissing, AssetMissing
        As soon as a model or a text is missing.

    Notes
    -----
    A text is drawn and measured with random streams named by its prompt, in batches that the settings fix: the table
    does not depend on the number of workers, on their order, or on interruptions. A worker that is lost has its
    unfinished prompts measured by others.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from mdsd_study.measure.pairs import find_pair
    >>> settings = SweepSettings((find_pair("tiny-random"),), ("mt_bench",), prompts=2, max_new_tokens=3)
    >>> sweep = measure(settings, mkdtemp(), workers=0)
    >>> sweep.computed, sweep.table().num_rows
    (2, 60)
    """
    store = Store(Path(folder), settings)
    given = placement or Placement()
    placement = Placement(given.device, given.device_map, settings.dtype)
    placement.options(None)  # a wrong dtype shows now, not in every prompt
    prompts = {name: read_prompts(settings, name) for name in settings.prompt_sets}
    wanted = [(one, prompt.key) for one in slices_of(settings) for prompt in prompts[one.prompt_set]]
    missing = {(one, key) for one, key in wanted if not store.finished(one, key)}
    failures: dict[str, str] = {}
    if missing:
        with runner(scheduler, workers) as run, _bar(progress, len(wanted), len(wanted) - len(missing)) as step:
            work = _Work(settings, placement, prompts, store, reference, run, failures)
            for one, key, rows in work.rows(missing):
                store.write(one, key, rows)
                step()
                if finished is not None:
                    finished(one, key)
    if failures:
        raise SweepIncomplete(store.folder, failures)
    path = store.gather(wanted)
    with in_one_step(path.with_name("summary.parquet")) as part:
        summarize(pq.read_table(path), seed=settings.seed).to_parquet(part)
    return Sweep(store.folder, len(missing), len(wanted) - len(missing))


@dataclass(frozen=True)
class _Work:
    """What the workers are asked for. `failures` gathers what went wrong, by prompt."""

    settings: SweepSettings
    placement: Placement
    prompts: Mapping[str, Sequence[Prompt]]
    store: Store
    reference: Path | None
    run: Runner
    failures: dict[str, str]

    def rows(self, missing: Container[tuple[Slice, str]]) -> Iterator[tuple[Slice, str, pa.Table]]:
        """The rows of the missing prompts, in the order in which they are finished: one target after the other."""
        slices = list(slices_of(self.settings))
        for target in dict.fromkeys(one.target for one in slices):
            jobs = text_jobs([one for one in slices if one.target == target], self.prompts, missing)
            texts = self.texts(jobs)
            ready = [(job, texts[_text_key(job, job.key)]) for job in jobs if _text_key(job, job.key) in texts]
            for (job, _), result in self.run(partial(measure_text, self.settings, self.placement), ready):
                if isinstance(result, Exception):
                    self.failures[job.key] = f"{type(result).__name__}: {result}"
                else:
                    yield from ((one, job.key, rows) for one, rows in result)

    def texts(self, jobs: Sequence[TextJob]) -> dict[tuple[Any, ...], Continuation]:
        """The texts of these jobs: stored with the project, drawn by an earlier run, or drawn now."""
        batches = list(draw_jobs(jobs, self.prompts))
        at_hand = [(batch, self.stored(batch) or self.store.texts(batch)) for batch in batches]
        texts = {_text_key(batch, text.key): text for batch, found in at_hand for text in found or ()}
        to_draw = [(batch,) for batch, found in at_hand if found is None]
        for (batch,), result in self.run(partial(draw_texts, self.settings, self.placement), to_draw):
            if isinstance(result, Exception):
                self.failures.update((prompt.key, f"{type(result).__name__}: {result}") for prompt in batch.prompts)
                continue
            drawn, unfit = result
            self.failures.update(unfit)
            if not unfit:
                self.store.write_texts(batch, drawn)
            texts |= {_text_key(batch, text.key): text for text in drawn}
        return texts

    def stored(self, batch: DrawJob) -> list[Continuation] | None:
        """The texts that are stored with the project, if they hold those of this batch."""
        settings, own = self.settings, batch.slice
        count = PROMPTS_PER_SET[settings.profile]
        if settings.longest_prompt is not None or own.prompt_set in settings.own_sets:
            return None
        if len(self.prompts[own.prompt_set]) > count:
            return None
        drawn_with = TextSettings(
            own.pair.target, own.prompt_set, own.text_sampling, count, settings.seed, settings.max_new_tokens
        )
        found = stored_texts(drawn_with, settings.profile, self.reference, cut=True) or []
        return found if {text.key for text in found} >= {prompt.key for prompt in batch.prompts} else None


def _text_key(job: TextJob | DrawJob, key: str) -> tuple[Any, ...]:
    """The key of a text among those of one target."""
    return job.slice.prompt_set, job.slice.text_sampling, key


def read_prompts(settings: SweepSettings, prompt_set: str) -> list[Prompt]:
    """The prompts of one set that are measured, evenly spaced over it."""
    least = PROMPTS_PER_SET[settings.profile]
    count = least if settings.prompts is None else settings.prompts
    if prompt_set in settings.own_sets:
        found = [replace(prompt, set=prompt_set) for prompt in load_prompts(settings.own_sets[prompt_set])]
    else:
        found = load_prompts(prompt_set, limit=max(count, least) if settings.longest_prompt is None else None)
    if settings.longest_prompt is not None:
        found = [prompt for prompt in found if len(prompt.text) <= settings.longest_prompt]
        if not found:
            raise ValueError(f"{prompt_set} has no prompt of at most {settings.longest_prompt} characters")
    return evenly_spaced(found, count)


@contextlib.contextmanager
def _bar(shown: bool, total: int, before: int) -> Iterator[Callable[[], None]]:
    columns = (TextColumn("prompts"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), disable=not shown) as bar:
        task = bar.add_task("", total=total, completed=before)
        yield lambda: bar.advance(task)
