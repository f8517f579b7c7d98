import json

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from mdsd_study.report.figures import PALETTE, save_figure, use_style


def draw():
    fig = Figure(figsize=(3, 2))
    fig.add_subplot().plot([0, 1], [0, 1], label="a")
    return fig


@pytest.fixture(autouse=True)
def _own_settings():
    with mpl.rc_context():
        mpl.rcParams.update({"savefig.transparent": True, "savefig.facecolor": "red", "lines.linewidth": 9})
        yield


def test_a_users_own_settings_do_not_reach_a_figure():
    use_style()
    assert mpl.rcParams["lines.linewidth"] == mpl.rcParamsDefault["lines.linewidth"]
    assert mpl.rcParams["savefig.transparent"] is False


def test_bytes_are_the_same_twice_and_opaque(tmp_path):
    parameters = {"profile": "ci"}
    line = save_figure(draw(), "a", "01_first_look", parameters, folder=tmp_path / "one")
    save_figure(draw(), "a", "01_first_look", parameters, folder=tmp_path / "two")
    one, two = (tmp_path / folder / "a.png" for folder in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    pixels = np.asarray(Image.open(one).convert("RGBA"))
    assert (pixels[..., 3] == 255).all()
    assert (pixels[0, 0] == 255).all()
    note = json.loads((tmp_path / "one" / "a.json").read_text())
    assert note["notebook"] == "01_first_look"
    assert f"commit {note['made']['commit']}, parameters profile=ci" in line


def test_a_figure_of_a_recorded_run_says_so(tmp_path):
    run = {"processor": "CPU X", "cores": 2, "commit": "0123456789", "date": "2026-01-02T03:04:05+00:00"}
    line = save_figure(draw(), "a", "12_x", {"profile": "full"}, recorded=run, folder=tmp_path)
    assert line.endswith("profile=full. Recorded on 2026-01-02 on CPU X (2 cores), commit 0123456789.")
    assert json.loads((tmp_path / "a.json").read_text())["recorded"] == run


def in_two_panels(labels, **legend):
    """Two panels with a curve for each label, and the legend asked for: of the figure, or of the left panel."""
    use_style()
    fig = Figure(figsize=(9, 4), layout="constrained")
    left, right = fig.subplots(1, 2)
    for i, label in enumerate(labels):
        for axes in (left, right):
            axes.errorbar([0, 1], [0, i], 0.1, label=label if axes is left else None, marker="o")
            axes.set_xlabel("drafts")
    (fig if "ncols" in legend else left).legend(**legend)
    return fig, left, right


def places_of(fig):
    """After the layout: the figure, its legend and the sizes of the letters there, its panels with their labels."""
    fig.draw_without_rendering()
    (legend,) = [*fig.legends, *(axes.get_legend() for axes in fig.axes if axes.get_legend() is not None)]
    letters = [text.get_fontsize() for text in legend.get_texts()]
    panels = [axes.get_tightbbox(for_layout_only=True) for axes in fig.axes]
    return fig.bbox, legend.get_window_extent(), letters, panels


LONG = [f"a rule with a long name, number {i}" for i in range(7)]


def test_a_legend_of_the_figure_is_as_large_as_the_ticks_and_no_wider_than_the_figure(tmp_path):
    fig, left, _ = in_two_panels(LONG, loc="outside lower center", ncols=4, fontsize=9)
    before = [line.get_xydata().copy() for line in left.lines]
    save_figure(fig, "a", "01_x", {}, folder=tmp_path)
    whole, box, letters, panels = places_of(fig)
    assert set(letters) == {left.xaxis.get_ticklabels()[0].get_fontsize()} == {11}
    assert [text.get_text() for text in fig.legends[0].get_texts()] == LONG
    assert whole.x0 <= box.x0 <= box.x1 <= whole.x1
    assert box.y1 <= min(panel.y0 for panel in panels) + 1
    assert all(np.array_equal(a, line.get_xydata()) for a, line in zip(before, left.lines, strict=True))


def test_a_legend_that_grows_too_large_for_its_panel_goes_below_it(tmp_path):
    fig, left, right = in_two_panels(LONG, loc="upper left", fontsize=7.5)
    save_figure(fig, "a", "01_x", {}, folder=tmp_path)
    whole, box, letters, _ = places_of(fig)
    assert set(letters) == {11}
    assert whole.y0 - 1 <= box.y0
    assert box.y1 <= left.xaxis.get_tightbbox().y0 + 1
    assert abs(left.bbox.y0 - right.bbox.y0) < 1


def test_a_small_legend_stays_where_it_is(tmp_path):
    fig, left, _ = in_two_panels(["a", "b"], loc="upper left", fontsize=9)
    save_figure(fig, "a", "01_x", {}, folder=tmp_path)
    _, box, letters, _ = places_of(fig)
    assert set(letters) == {11}
    assert left.bbox.x0 <= box.x0 <= box.x1 <= left.bbox.x1
    assert left.bbox.y0 <= box.y0 <= box.y1 <= left.bbox.y1


@pytest.mark.parametrize("name", ["", "../a", "a.png"])
def test_the_name_must_be_plain(tmp_path, name):
    with pytest.raises(ValueError, match="plain file name"):
        save_figure(draw(), name, "x", {}, folder=tmp_path)


def _luminance(colour):
    rgb = np.array(mpl.colors.to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_every_colour_is_visible_on_white():
    for colour in PALETTE:
        assert 1.05 / (_luminance(colour) + 0.05) > 2, colour
