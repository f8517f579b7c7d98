"""Sweeps on a Dask cluster: one worker, two workers, a worker that is killed, and a killed sweep that goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import distributed
import pytest

from mdsd_study.measure import SweepIncomplete, SweepSettings, measure
from mdsd_study.measure.pairs import Pair, find_pair

SETTINGS = SweepSettings(
    (find_pair("tiny-random"),),
    ("mt_bench",),
    counts=(2, 4),
    rules=(("with_replacement", "rrs"), ("without_replacement", "rrs_without")),
    prompts=18,
    max_new_tokens=4,
    histories=64,
)
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def cluster():
    """A cluster of one worker, which the tests scale up; starting a worker takes seconds."""
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def alone(cluster, tmp_path_factory):
    """The table of one worker."""
    return measure(SETTINGS, tmp_path_factory.mktemp("one"), scheduler=cluster.scheduler_address).table()


@pytest.fixture(scope="module")
def two_workers(cluster, alone):
    cluster.scale(2)
    cluster.wait_for_workers(2)
    return cluster


def test_two_workers_give_the_table_of_one(two_workers, alone, tmp_path):
    sweep = measure(SETTINGS, tmp_path, scheduler=two_workers.scheduler_address)
    assert sweep.computed == 18
    assert sweep.table().equals(alone)


def test_a_lost_worker_loses_no_finished_prompt(two_workers, alone, tmp_path):
    finished, killed = [], []

    def kill_one(one, key):
        finished.append(key)
        if len(finished) == 3:
            with distributed.Client(two_workers.scheduler_address, set_as_default=False) as client:
                killed.append(min(client.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)

    sweep = measure(SETTINGS, tmp_path, scheduler=two_workers.scheduler_address, finished=kill_one)
    with distributed.Client(two_workers.scheduler_address, set_as_default=False) as client:
        assert killed[0] not in client.run(os.getpid).values()
    assert sorted(finished) == sorted(set(finished))
    assert len(finished) == 18
    assert sweep.table().equals(alone)


def test_what_fails_on_a_worker_is_reported(two_workers, tmp_path):
    settings = SweepSettings((Pair("x", "tiny-random", "ngram:gone.txt"),), ("mt_bench",), prompts=2, max_new_tokens=2)
    with pytest.raises(
        SweepIncomplete, match=r"2 prompts could not be measured: mt_bench/\d+: FileNotFoundError"
    ) as told:
        measure(settings, tmp_path, scheduler=two_workers.scheduler_address)
    assert set(told.value.failures) == {"mt_bench/81", "mt_bench/121"}  # in the order in which the workers met them


@pytest.mark.slow  # imports everything once more, in a process that can be killed
def test_a_killed_sweep_goes_on_where_it_was(alone, tmp_path):
    arguments = [
        "measure",
        "-o",
        str(tmp_path),
        "--pair",
        "tiny-random",
        "--prompts",
        "18",
        "-m",
        "4",
        "-n",
        "2",
        "-n",
        "4",
    ]
    arguments += ["--rule", "with_replacement:rrs", "--rule", "without_replacement:rrs_without", "--workers", "0"]
    program = (
        "import sys, time, mdsd_study.measure.store as store; from mdsd_study.cli.commands import app\n"
        "write = store.Store.write\n"
        "store.Store.write = lambda *a: (write(*a), time.sleep(0.2))\n"  # so that the kill falls into the middle
        "app(sys.argv[1:])"
    )
    command = [sys.executable, "-c", program, *arguments, "--seed", "0"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 600  # a guard only: on a busy machine the imports alone take long
        while len(list(tmp_path.rglob("prompts/*/*.parquet"))) < 3:
            assert process.poll() is None, process.stderr.read().decode()
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        process.kill()
        process.communicate()
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("prompts/*/*.parquet")}
    assert 3 <= len(kept) < 18
    settings = SweepSettings(**{**vars(SETTINGS), "histories": 2048})
    sweep = measure(settings, tmp_path, workers=0)
    assert (sweep.computed, sweep.reused) == (18 - len(kept), len(kept))
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    whole = measure(settings, tmp_path / "whole", workers=0)
    assert sweep.table().equals(whole.table())
    columns = ["prompt", "position", "bound", "overlap"]
    assert sweep.table(columns).equals(alone.select(columns))  # in this process as on a worker
