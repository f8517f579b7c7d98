"""Run the tests marked ``gpu`` on this machine's GPU and write down on what they ran: ``_build/gpu_check.json``."""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from mdsd_core.study.provenance import made
from mdsd_core.study.results import write_json
from tools.project import HERE


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


def main() -> int:
    """Pytest's exit status; 2 without a GPU."""
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
    record = {"gpu": gpu, "made": made(), "status": status, "tests": tests}
    write_json(HERE.build / "gpu_check.json", record)
    print(f"record: {HERE.build / 'gpu_check.json'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
