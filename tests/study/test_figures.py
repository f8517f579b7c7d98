import json

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from mdsd_core.study.figures import PALETTE, save_figure, use_style


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
