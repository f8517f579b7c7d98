"""Break the rules on purpose, one mutation at a time, and see that the tests notice.

    python -m tests.mutations [--only WORD] [--jobs 2] [--list]

Every mutation replaces text in a copy of the package; then the tests that are to notice it run on that copy. Exit
status 0 only if all tests pass without mutations and every mutant is *killed*: a test fails (a mutant that cannot be
imported, or times out, or selects no test, is an error, not a success). Text that is not there any more is an error
too. Kernels run as plain Python (NUMBA_DISABLE_JIT) where the tests are small enough, which saves compiling them.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.core.transport.mutations import TRANSPORT
from tests.core.verifiers.mutations import VERIFIERS
from tests.decoding.mutations import DECODING
from tests.decoding.tensor_rules.mutations import BATCHED
from tests.mutant import mutated

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 600

CATALOGUE = [*VERIFIERS, *BATCHED, *TRANSPORT, *DECODING]

#: What runs in every test run: a few that are quick to see.
SAMPLE = (
    "rrs without: stale q, the second draft judged by the first one's law",
    "deterministic: writes into p",
    "token matching: a fresh target draw for every draft",
)


def copy_project(folder):
    """What the tests need, in a folder of its own."""
    quiet = shutil.ignore_patterns("__pycache__")
    for name in ("mdsd_core", "mdsd_study", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=quiet)
    shutil.copy(ROOT / "pyproject.toml", folder)


def run_tests(folder, tests, compiled):
    """(pytest's exit status, or None for a time-out; what it printed)."""
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", NUMBA_CACHE_DIR=str(folder / "numba"))
    environment.pop("PYTHONPATH", None)
    if not compiled:
        environment["NUMBA_DISABLE_JIT"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning"]
    try:
        done = subprocess.run(
            [*command, *tests], cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return None, "timed out"
    return done.returncode, done.stdout + done.stderr


def check(mutation, folder):
    """Try one mutation on the copy in `folder`, and put the source back. Returns (killed, seconds, output)."""
    started = time.monotonic()
    file = folder / mutation.file
    original = file.read_bytes()
    shutil.rmtree(folder / "numba", ignore_errors=True)  # machine code of another mutant must not be found
    try:
        file.write_text(mutated(original.decode(), mutation.edits), encoding="utf-8")
        status, output = run_tests(folder, mutation.tests, mutation.compiled)
    finally:
        file.write_bytes(original)
    return status == 1, time.monotonic() - started, output


def check_all(mutations, jobs):
    """Run the tests without and with each mutation, `jobs` at a time; print a line each; return what went wrong."""
    wrong = []
    with tempfile.TemporaryDirectory() as temporary:
        folders = SimpleQueue()
        for job in range(jobs):
            copy_project(Path(temporary) / str(job))
            folders.put(Path(temporary) / str(job))
        for compiled in (False, True):
            tests = sorted({test for m in mutations if m.compiled == compiled for test in m.tests})
            if tests:
                status, output = run_tests(Path(temporary) / "0", tests, compiled)
                if status != 0:
                    return [f"the tests do not pass without any mutation:\n{output}"]

        def work(mutation):
            folder = folders.get()
            try:
                return mutation, *check(mutation, folder)
            finally:
                folders.put(folder)

        with ThreadPoolExecutor(jobs) as pool:
            for mutation, killed, seconds, output in pool.map(work, mutations):
                print(f"{'killed  ' if killed else 'SURVIVED'} {seconds:6.1f} s  {mutation.name}", flush=True)
                if not killed:
                    wrong.append(f"{mutation.name}: not killed\n{output[-2000:]}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="WORD", default="", help="mutations whose name contains this")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--list", action="store_true", help="only list them")
    options = parser.parse_args()
    chosen = [m for m in CATALOGUE if options.only in m.name]
    if options.list:
        print("\n".join(m.name for m in chosen))
        return 0
    if not chosen:
        print(f"no mutation has {options.only!r} in its name")
        return 2
    wrong = check_all(chosen, options.jobs)
    print("\n".join(wrong) if wrong else f"all {len(chosen)} mutants killed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
