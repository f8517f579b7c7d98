"""Run the tests marked ``gpu`` and two benchmarks on this machine's GPU, for ``_build/gpu_check.json``."""

import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from mdsd_study.report.provenance import describe_run
from mdsd_study.report.results import write_json
from mdsd_study.tools.notebooks.project import HERE


def describe_gpu() -> dict[str, Any] | None:
    """Name, memory in GiB and compute capability of the first CUDA device, None without one."""
    import torch

    if not torch.cuda.is_available():
        return None
    about = torch.cuda.get_device_properties(0)
    return {
        "name": about.name,
        "memory_gib": round(about.total_memory / 2**30, 1),
        "capability": f"{about.major}.{about.minor}",
        "cuda": torch.version.cuda,
    }


def read_report(path: Path) -> list[dict[str, Any]]:
    """The tests of pytest's JUnit report: name, seconds and outcome."""
    tests = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        outcome = next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")
        name = f"{case.get('classname')}::{case.get('name')}"
        tests.append({"test": name, "seconds": float(case.get("time", 0)), "outcome": outcome})
    return tests


def run_benchmark(name: str, *arguments: str) -> dict[str, Any]:
    """What a benchmark of ``mdsd_study/benchmarks/`` writes as JSON; its exit status and last words if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", f"mdsd_study.benchmarks.{name}", *arguments, "--json", str(report)]
        done = subprocess.run(command, cwd=HERE.root, capture_output=True, text=True)
        print(done.stdout)
        if done.returncode:
            return {"status": done.returncode, "error": done.stderr[-2000:]}
        return {"status": 0, **json.loads(report.read_text(encoding="utf-8"))}


def main() -> int:
    """Pytest's exit status, or 1 if a benchmark failed; 2 without a GPU."""
    gpu = describe_gpu()
    if gpu is None:
        print("error: torch sees no CUDA device on this machine: nothing was checked", file=sys.stderr)
        return 2
    print(f"{gpu['name']}, {gpu['memory_gib']} GiB, CUDA {gpu['cuda']}")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-m", "gpu", "tests", f"--junit-xml={report}", *sys.argv[1:]]
        status = subprocess.run(command, cwd=HERE.root).returncode
        tests = read_report(report) if report.is_file() else []
    benchmarks = {name: run_benchmark(name, "--device", "cuda") for name in ("batched", "decoding")}
    status = status or int(any(each["status"] for each in benchmarks.values()))
    record = {"gpu": gpu, "made": describe_run(), "status": status, "tests": tests, "benchmarks": benchmarks}
    write_json(HERE.build / "gpu_check.json", record)
    print(f"record: {HERE.build / 'gpu_check.json'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
