import json

import numpy as np
import pytest

from mdsd_study.report.results import estimate, exact, read_results, timing, write_results


def entry(**changes):
    """A results file of one value, as a dict that a test can spoil."""
    one = {"value": 1.0, "kind": "exact", "tolerance": {"atol": 0.1, "rtol": 0.0}} | changes
    values = {"rate": {key: part for key, part in one.items() if part is not None}}
    return {"format": 1, "name": "x", "profile": "ci", "parameters": {}, "values": values, "made": {}}


def written(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))
    return path


def test_written_values_are_read_back_bit_for_bit(tmp_path):
    values = {
        "rate": exact(np.float64(0.1) + 0.2, atol=1e-12),
        "table": estimate(np.array([0.1, 0.2]), ([0.0, 0.1], [0.2, 0.3]), level=0.9, atol=1e-4, rtol=1e-3),
        "drawn anew": estimate(0.5, (0.25, 0.75), overlap=True),
        "seconds": timing(np.float32(1.5)),
        "contexts": exact(np.int64(128), atol=0),
        "verdict": exact("holds", atol=0),
    }
    write_results("x", "quick", values, {"profile": "quick", "n": np.int64(4)}, folder=tmp_path)
    found = read_results("x", folder=tmp_path)
    assert found.values == values
    assert (found.name, found.profile, found.parameters) == ("x", "quick", {"profile": "quick", "n": 4})
    assert found.made["versions"]["numpy"] == np.__version__
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_environment_chooses_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MDSD_RESULTS", str(tmp_path / "here"))
    write_results("x", "ci", {"a": timing(1)}, {})
    assert read_results("x")["a"].value == 1
    assert (tmp_path / "here" / "x.json").is_file()


@pytest.mark.parametrize("bad", [np.nan, np.inf, [1.0, -np.inf]])
def test_a_value_that_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="value must be finite"):
        exact(bad, atol=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: exact(1.0, atol=-1), "atol"),
        (lambda: exact(1.0, atol=0, rtol=np.nan), "rtol"),
        (lambda: estimate(1.0, (1.1, 2.0), atol=0), "contain the value"),
        (lambda: estimate([1.0, 2.0], ([0.0], [3.0]), atol=0), "shape"),
        (lambda: estimate(1.0, (0.0, 2.0)), "either atol"),
        (lambda: estimate(1.0, (0.0, 2.0), atol=0, overlap=True), "either atol"),
        (lambda: estimate(1.0, (0.0, 2.0), atol=0, level=95), "level"),
        (lambda: write_results("x", "fast", {"a": timing(1)}, {}), "profile must be one of ci, quick, full"),
        (lambda: write_results("x", "ci", {}, {}), "must not be empty"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_bare_number_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"values\['a'\] must be made by"):
        write_results("x", "ci", {"a": 0.5}, {}, folder=tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "guess"},
        {"tolerance": None},
        {"tolerance": {"atol": 0.1}},
        {"kind": "timing"},
        {"kind": "estimate"},
        {"interval": [0, 2]},
    ],
)
def test_reading_refuses_a_value_without_kind_tolerance_or_interval(tmp_path, changes):
    with pytest.raises(ValueError, match=r"x\.json: rate (is|must be)"):
        read_results(written(tmp_path, entry(**changes)))


def test_reading_refuses_other_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="make notebooks"):
        read_results("absent", folder=tmp_path)
    with pytest.raises(ValueError, match="not a results file"):
        read_results(written(tmp_path, {"format": 2}))
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(ValueError, match="not JSON"):
        read_results(tmp_path / "x.json")


def test_an_unknown_key_names_the_nearest_ones(tmp_path):
    with pytest.raises(KeyError, match="among their 1; the nearest: rate"):
        read_results(written(tmp_path, entry()))["rat"]
