"""Run a sweep: in this process, on a Dask cluster of this machine, or on a cluster that is there already."""

import contextlib
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mdsd_core.assets import AssetMissing, ModelMissing
from mdsd_core.disk_cache import cache_dir
from mdsd_core.extras import needed_for
from mdsd_core.models import model_names
from mdsd_core.models.prompts import PROMPT_SETS, Prompt
from mdsd_study.measure.model_cache import Placement
from mdsd_study.measure.plan import Cell, SweepPlan, Unit
from mdsd_study.measure.store import Store
from mdsd_study.measure.table import summarize
from mdsd_study.measure.texts import PROMPTS_PER_SET, Continuation, contexts_file, stored_contexts
from mdsd_study.measure.work import TEXTS_AT_A_TIME, Drawing, draw_texts, measure_text, units_of
from mdsd_study.report.provenance import code_digest, project_folder
from mdsd_study.report.results import in_one_step

_SKIP = re.compile(r"skip:[\d,]+")

#: What no other prompt could do better with: the sweep ends at the first of these.
_HOPELESS = (AssetMissing, ModelMissing, ImportError)

#: Runs ``function(plan, placement, *job)`` for jobs, and yields (job, result or exception) as they end.
Runner = Callable[[Callable[..., Any], SweepPlan, Placement, Sequence[tuple[Any, ...]]], Iterator[tuple[Any, Any]]]


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
        How many prompts and cells were measured now, and how many were finished before.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from mdsd_study.measure.pairs import find_pair
    >>> rules = (("greedy", "greedy"),)
    >>> plan = SweepPlan((find_pair("tiny-random"),), ("mt_bench",), prompts=1, max_new_tokens=2, rules=rules)
    >>> measure(plan, mkdtemp(), workers=0).summary()["verifier"].tolist()
    ['bound', 'greedy']
    """

    folder: Path
    computed: int
    reused: int

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows (see :data:`~mdsd_study.measure.table.COLUMNS`), in the order of the plan."""
        return pq.read_table(self.folder / "table.parquet", columns=list(columns) if columns else None)

    def summary(self) -> pd.DataFrame:
        """Means over contexts with intervals, see :func:`~mdsd_study.measure.table.summarize`."""
        return pd.read_parquet(self.folder / "summary.parquet")


def measure(
    plan: SweepPlan,
    folder: Path | str,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    placement: Placement | None = None,
    reference: Path | None = None,
    progress: bool = False,
    finished: Callable[[Cell, str], None] | None = None,
) -> Sweep:
    """Measure what a plan asks for; go on where an earlier run with the same plan and folder was interrupted.

    Parameters
    ----------
    plan : SweepPlan
        What to measure.
    folder : path
        New, or of an interrupted run. Only this process writes to it: a cluster needs no common file system.
    scheduler : str, optional
        Address of a Dask scheduler, such as ``tcp://host:8786``; its workers need this package.
    workers : int, optional
        Without a scheduler: worker processes on this machine, one thread each; default: one for each core. 0: measure
        in this process, without Dask.
    placement : Placement, optional
        Where the workers put the models; its dtype is that of the plan.
    reference : path, optional
        Where stored texts lie; default: ``reference/`` of the checkout.
    progress : bool
        Draw a bar on standard error.
    finished : callable, optional
        Called with (cell, key of the prompt) after their rows have been written.

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
    A text is drawn and measured with random streams named by its prompt, in batches that the plan fixes: the table does
    not depend on the number of workers, on their order, or on interruptions. A worker that is lost has its unfinished
    prompts measured by others.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from mdsd_study.measure.pairs import find_pair
    >>> plan = SweepPlan((find_pair("tiny-random"),), ("mt_bench",), prompts=2, max_new_tokens=3)
    >>> sweep = measure(plan, mkdtemp(), workers=0)
    >>> sweep.computed, sweep.table().num_rows
    (2, 60)
    """
    store = Store(Path(folder), plan)
    given = placement or Placement()
    placement = Placement(given.device, given.device_map, plan.dtype)
    placement.options(None)  # a wrong dtype shows now, not in every prompt
    prompts = {name: plan.read_prompts(name) for name in plan.prompt_sets}
    wanted = [(cell, prompt.key) for cell in plan.cells() for prompt in prompts[cell.prompt_set]]
    missing = {(cell, key) for cell, key in wanted if not store.finished(cell, key)}
    failures: dict[str, str] = {}
    if missing:
        with _runner(scheduler, workers) as run, _bar(progress, len(wanted), len(wanted) - len(missing)) as step:
            for target in dict.fromkeys((pair.target, pair.target_revision) for pair in plan.pairs):
                units = [_only(unit, missing) for unit in units_of(plan, prompts, target)]  # type: ignore[arg-type]
                units = [unit for unit in units if unit.cells]
                texts = _texts(plan, store, run, placement, units, prompts, reference, failures)
                jobs = [(unit, texts[_text_key(unit)]) for unit in units if _text_key(unit) in texts]
                for (unit, _), result in run(measure_text, plan, placement, jobs):
                    if isinstance(result, Exception):
                        failures[unit.key] = f"{type(result).__name__}: {result}"
                        continue
                    for cell, rows in result:
                        store.write(cell, unit.key, rows)
                        step()
                        if finished is not None:
                            finished(cell, unit.key)
    if failures:
        raise SweepIncomplete(store.folder, failures)
    path = store.gather(wanted)
    with in_one_step(path.with_name("summary.parquet")) as part:
        summarize(pq.read_table(path), seed=plan.seed).to_parquet(part)
    return Sweep(store.folder, len(missing), len(wanted) - len(missing))


def measure_kept(plan: SweepPlan, *, progress: bool = False) -> Sweep:
    """:func:`measure` in this process, for notebooks: in the cache folder where all that is measured is packaged.

    A notebook that is run again, or was interrupted, goes on where it was; another one with the same plan shares the
    work. The folder is named by the plan, all the code (:func:`~mdsd_study.report.provenance.code_digest`), and the
    texts stored with the project. Models and texts of the user's own may change behind their names: they are measured
    anew, in a temporary folder.

    >>> from mdsd_study.measure.pairs import find_pair
    >>> plan = SweepPlan((find_pair("tiny-random"),), ("mt_bench",), prompts=1, max_new_tokens=2)
    >>> measure_kept(plan).folder == measure_kept(plan).folder
    True
    """
    known = {*model_names(), "ngram"}
    packaged = all(pair.target in known and (pair.draft in known or _SKIP.fullmatch(pair.draft)) for pair in plan.pairs)
    if not packaged or not set(plan.prompt_sets) <= set(PROMPT_SETS):
        return measure(plan, tempfile.mkdtemp(prefix="mdsd-sweep-"), workers=0, progress=progress)
    digest = hashlib.sha256(json.dumps([code_digest(), plan.settings()], sort_keys=True).encode())
    for cell in plan.cells():
        sampling = plan.sampling(cell.text_temperature)
        path = contexts_file(project_folder() / "reference", plan.profile, cell.pair.target, cell.prompt_set, sampling)
        digest.update(path.read_bytes() if path.is_file() else b"")
    folder = cache_dir() / "sweeps" / digest.hexdigest()[:24]
    return measure(plan, folder, workers=0, progress=progress)


def _only(unit: Unit, missing: set[tuple[Cell, str]]) -> Unit:
    cells = tuple(cell for cell in unit.cells if (cell, unit.key) in missing)
    return Unit(unit.target, unit.target_revision, unit.prompt_set, unit.key, unit.text_temperature, cells)


def _text_key(unit: Unit) -> tuple[str, float, str]:
    return unit.prompt_set, unit.text_temperature, unit.key


def _texts(
    plan: SweepPlan,
    store: Store,
    run: Runner,
    placement: Placement,
    units: list[Unit],
    prompts: dict[str, list[Prompt]],
    reference: Path | None,
    failures: dict[str, str],
) -> dict[tuple[str, float, str], Continuation]:
    """The texts that the units are measured on: stored with the project, drawn before, or drawn now."""
    texts: dict[tuple[str, float, str], Continuation] = {}
    drawings: list[tuple[Drawing]] = []
    for prompt_set, temperature in dict.fromkeys((unit.prompt_set, unit.text_temperature) for unit in units):
        own = [unit for unit in units if (unit.prompt_set, unit.text_temperature) == (prompt_set, temperature)]
        chosen = prompts[prompt_set]
        stored = None
        if plan.longest_prompt is None and prompt_set not in plan.own_sets:
            stored = stored_contexts(
                own[0].target,
                prompt_set,
                plan.profile,
                plan.sampling(temperature),
                max(len(chosen), PROMPTS_PER_SET[plan.profile]),
                plan.seed,
                plan.max_new_tokens,
                reference,
                cut=True,
            )
        if stored is not None and {text.key for text in stored} >= {unit.key for unit in own}:
            texts |= {(prompt_set, temperature, text.key): text for text in stored}
            continue
        needed = {unit.key for unit in own}
        for number, start in enumerate(range(0, len(chosen), TEXTS_AT_A_TIME)):
            batch = tuple(chosen[start : start + TEXTS_AT_A_TIME])
            if needed.isdisjoint(prompt.key for prompt in batch):
                continue
            drawing = Drawing(own[0].target, own[0].target_revision, prompt_set, temperature, number, batch)
            before = store.texts(drawing)
            if before is None:
                drawings.append((drawing,))
            else:
                texts |= {(prompt_set, temperature, text.key): text for text in before}
    for (drawing,), result in run(draw_texts, plan, placement, drawings):
        if isinstance(result, Exception):
            failures |= {prompt.key: f"{type(result).__name__}: {result}" for prompt in drawing.prompts}
            continue
        drawn, unfit = result
        failures |= unfit
        if not unfit:
            store.write_texts(drawing, drawn)
        texts |= {(drawing.prompt_set, drawing.text_temperature, text.key): text for text in drawn}
    return texts


@contextlib.contextmanager
def _bar(shown: bool, total: int, before: int) -> Iterator[Callable[[], None]]:
    if not shown:
        yield lambda: None
        return
    columns = (TextColumn("prompts and cells"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(file=sys.stderr)) as bar:
        task = bar.add_task("", total=total, completed=before)
        yield lambda: bar.advance(task)


@contextlib.contextmanager
def _runner(scheduler: str | None, workers: int | None) -> Iterator[Runner]:
    if scheduler is None and workers == 0:
        yield _in_process
        return
    if workers is not None and workers < 0:
        raise ValueError(f"workers must be at least 0, got {workers}")
    with needed_for("clusters"):
        import distributed
    with contextlib.ExitStack() as stack:
        address: Any = scheduler
        if scheduler is None:
            address = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=workers or os.cpu_count() or 1, threads_per_worker=1, dashboard_address=None
                )
            )
        client = stack.enter_context(distributed.Client(address))
        yield _on(client)


def _in_process(
    function: Callable[..., Any], plan: SweepPlan, placement: Placement, jobs: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[Any, Any]]:
    for job in jobs:
        try:
            yield job, function(plan, placement, *job)
        except _HOPELESS:
            raise
        except Exception as error:  # one prompt's failure is reported at the end
            yield job, error


def _on(client: Any) -> Runner:
    """Jobs on a cluster, a bounded number of them at a time; Dask runs those of a lost worker again elsewhere."""
    from distributed import as_completed

    def run(
        function: Callable[..., Any], plan: SweepPlan, placement: Placement, jobs: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[Any, Any]]:
        left = iter(jobs)
        running: dict[Any, tuple[Any, ...]] = {}

        def submit() -> Any:
            job = next(left, None)
            if job is None:
                return None
            future = client.submit(function, plan, placement, *job, pure=False)
            running[future] = job
            return future

        at_once = 4 * max(sum(client.nthreads().values()), 1)
        first = [future for _ in range(at_once) if (future := submit()) is not None]
        pool = as_completed(first)
        for future in pool:
            job = running.pop(future)
            error = future.exception()
            if isinstance(error, _HOPELESS):
                client.cancel(list(running))
                raise error
            yield job, error if error is not None else future.result()
            following = submit()
            if following is not None:
                pool.add(following)

    return run
