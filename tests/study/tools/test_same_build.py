"""Two builds of one tiny project, the same or with one thing planted."""

import json

import pytest

from mdsd_study.report.results import exact, write_results
from mdsd_study.tools.check.same_build import main
from mdsd_study.tools.notebooks.execute import Place
from tests.study.tools.conftest import make_project, write_notebook


def build(root, *, picture=b"picture", rate=0.75, times=b"now"):
    """A project whose two notebooks, one of them timing, were executed in the profile ``ci``."""
    project = make_project(root)
    for name, tags, figure in (("01_good", (), picture), ("02_clock", ("timing",), times)):
        write_notebook(project, name, tags=tags)
        place = Place(project.executed("ci"), name)
        write_results(name, "ci", {"rate": exact(rate, atol=1e-4)}, {"profile": "ci"}, folder=place.results)
        (place.results / "figures").mkdir()
        (place.results / "figures" / f"{name}.png").write_bytes(figure)
        place.executed.write_text("{}")
        place.record.write_text(json.dumps({"notebook": name}))
    return project


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ({}, None),
        ({"times": b"later"}, None),
        ({"rate": 0.75005}, None),
        ({"picture": b"other picture"}, "01_good: 01_good.png is not the same picture"),
        ({"rate": 0.7502}, "01_good (ci): rate is"),
    ],
)
def test_what_may_differ_and_what_may_not(tmp_path, capsys, planted, said):
    build(tmp_path / "one")
    build(tmp_path / "other", **planted)
    status = main([str(tmp_path / "one"), str(tmp_path / "other"), "--profile", "ci"])
    out = capsys.readouterr().out
    assert status == (1 if said else 0)
    assert out.startswith(said or "the same: 1 pictures byte by byte")


def test_what_is_missing_on_one_side_is_named(tmp_path, capsys):
    one, other = build(tmp_path / "one"), build(tmp_path / "other")
    (Place(other.executed("ci"), "02_clock").results / "figures" / "02_clock.png").unlink()
    Place(one.executed("ci"), "01_good").record.unlink()
    write_notebook(other, "03_new")
    assert main([str(one.root), str(other.root), "--profile", "ci"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "03_new is a notebook on one side only"
    assert lines[1].startswith("01_good was not executed in ")
    assert lines[2] == "02_clock: 02_clock.png is on one side only"
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path), str(other.root)])
    assert "no notebooks" in capsys.readouterr().err
