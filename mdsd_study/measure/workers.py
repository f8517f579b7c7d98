"""Where the jobs of a sweep run: in this process, on a Dask cluster of this machine, or on one that exists already."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mdsd_core.assets import AssetMissing, ModelMissing
from mdsd_core.extras import needed_for

#: Errors that every other job would meet too: they end the sweep. All others are reported prompt by prompt.
_FOR_ALL_JOBS = (AssetMissing, ModelMissing, ImportError)

#: The arguments of a function for one job.
Job = tuple[Any, ...]

#: Runs ``function(*job)`` for all jobs, and yields (job, result or exception) in the order in which they end.
Runner = Callable[[Callable[..., Any], Sequence[Job]], Iterator[tuple[Job, Any]]]


@contextlib.contextmanager
def runner(scheduler: str | None, workers: int | None) -> Iterator[Runner]:
    """What runs jobs; see :func:`mdsd_study.measure.sweep.measure` for the arguments."""
    if scheduler is None and workers == 0:
        yield _in_this_process
        return
    if workers is not None and workers < 0:
        raise ValueError(f"workers must be at least 0, got {workers}")
    with needed_for("clusters"):
        import distributed
    with contextlib.ExitStack() as stack:
        address: Any = scheduler
        if scheduler is None:
            count = workers or os.cpu_count() or 1
            cluster = distributed.LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
            address = stack.enter_context(cluster)
        yield _on_cluster(stack.enter_context(distributed.Client(address)))


def _in_this_process(function: Callable[..., Any], jobs: Sequence[Job]) -> Iterator[tuple[Job, Any]]:
    for job in jobs:
        try:
            yield job, function(*job)
        except _FOR_ALL_JOBS:
            raise
        except Exception as error:
            yield job, error


def _on_cluster(client: Any) -> Runner:
    """Jobs on a cluster; Dask runs those of a lost worker again elsewhere."""
    from distributed import as_completed

    def run(function: Callable[..., Any], jobs: Sequence[Job]) -> Iterator[tuple[Job, Any]]:
        running = {client.submit(function, *job, pure=False): job for job in jobs}
        for future in as_completed(list(running)):
            job = running.pop(future)
            error = future.exception()
            if isinstance(error, _FOR_ALL_JOBS):
                client.cancel(list(running))
                raise error
            yield job, error if error is not None else future.result()

    return run
