"""The benchmark runs, times every rule, and writes what it prints."""

import json
import os
import subprocess
import sys

from tests.core.verifiers.test_interface import NAMES


def test_benchmark_of_verifiers(tmp_path, pytestconfig):
    file = tmp_path / "table.json"
    done = subprocess.run(
        [
            sys.executable,
            "mdsd_study/benchmarks/verifiers.py",
            "--vocabulary",
            "300",
            "--rounds",
            "2",
            "--json",
            str(file),
        ],
        cwd=pytestconfig.rootpath,
        env=os.environ | {"PYTHONPATH": "."},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(file.read_text(encoding="utf-8"))
    assert {row["verifier"] for row in record["rows"]} == NAMES
    for row in record["rows"]:
        assert row["milliseconds"] > 0
        assert row["argsorts"] == row["milliseconds"] / record["argsort_milliseconds"]
        assert row["limit"] is None  # limits are for one size
        assert row["verifier"] in done.stdout
