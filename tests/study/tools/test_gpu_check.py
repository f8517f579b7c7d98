"""The record of `make gpu-check`, as far as it goes without a GPU."""

from mdsd_study.tools.check.gpu_check import read_report, run_benchmark


def test_a_benchmark_is_read_or_says_why_not():
    record = run_benchmark("batched", "--vocabulary", "50", "--batch", "2", "--rounds", "1", "--device", "cpu")
    assert record["status"] == 0
    assert {row["verifier"] for row in record["rows"]} >= {"rrs", "greedy", "optimal"}
    failed = run_benchmark("batched", "--device", "nowhere")
    assert failed["status"] != 0
    assert "nowhere" in failed["error"]


def test_outcomes_of_tests_are_read(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="a" name="x" time="0.5"/>'
        '<testcase classname="a" name="y"><failure/></testcase></testsuite></testsuites>'
    )
    assert [(t["test"], t["outcome"]) for t in read_report(report)] == [("a::x", "passed"), ("a::y", "failure")]
