"""One look for every figure, and one way to store it: an opaque PNG with a note of where it comes from.

In a notebook, end the cell that draws with ``print(save_figure(fig, "01_acceptance", "01_first_look", parameters))``,
tag the cell ``remove-output``, and show the file by a markdown cell, which gives it its number, caption and alt text::

    ```{figure} ../results/figures/01_acceptance.png
    :name: fig-acceptance
    :alt: What the picture shows, in words.

    The caption.
    ```

The line "Made by notebook ..., commit ..., parameters ..." is set under the caption when the book is staged.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.transforms import ScaledTranslation

from mdsd_study.report.provenance import describe_run, provenance_line
from mdsd_study.report.results import results_folder, write_json

#: The colour-blind-safe palette of Okabe and Ito without its yellow, which is too pale on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")

#: One for each colour of the palette, for print in grey.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "figure.facecolor": "white",
    "figure.figsize": (7.0, 4.0),
    "font.size": 11,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "legend.handlelength": 2.8,  # a dashed line with a marker can be told from a solid one
    "lines.markersize": 5,
    "savefig.dpi": 150,
    "savefig.facecolor": "white",
}


def use_style() -> None:
    """Set the style of the study's figures for this process, whatever a user's own matplotlibrc says.

    >>> use_style()
    >>> mpl.rcParams["savefig.facecolor"]
    'white'
    """
    mpl.rcdefaults()  # leaves the backend as it is
    settings: Any = mpl.rcParams
    settings.update(_STYLE)


#: A legend stays inside its axes while it takes no more than these shares of their width and of their area.
_WIDEST, _LARGEST = 0.75, 0.15


def _readable_legends(fig: Figure) -> None:
    """Set legends in letters no smaller than those of the ticks; the figure grows by the room that this takes.

    One that grows too large for its axes goes below them; one of the figure gets as many columns as fit.
    """
    size = FontProperties(size=mpl.rcParams["xtick.labelsize"]).get_size_in_points()
    more = [0.0]
    for legend in list(fig.legends):
        before = legend.get_window_extent().height
        if _enlarged(legend, size):
            more.append(_fit_columns(fig, legend, size).get_window_extent().height - before)
    grown = [(axes, own) for axes in fig.axes if (own := axes.get_legend()) is not None and _enlarged(own, size)]
    layout = fig.get_layout_engine()
    if grown and layout is not None:
        layout.execute(fig)  # the axes get their sizes
    more += [own.get_window_extent().height for axes, own in grown if _put_below(axes, own)]
    fig.set_figheight(fig.get_figheight() + max(more) / fig.dpi)


def _enlarged(legend: Legend, size: float) -> bool:
    """Whether there were letters smaller than `size`; they have that size then."""
    small = [text for text in legend.get_texts() if float(text.get_fontsize()) < size]
    for text in small:
        text.set_fontsize(size)
    return bool(small)


def _fit_columns(fig: Figure, legend: Legend, size: float) -> Legend:
    """The legend, if it lies outside the axes, in the most columns that are no wider than the figure."""
    outside, columns = getattr(legend, "_outside_loc", None), int(getattr(legend, "_ncols", 1))
    labels = [text.get_text() for text in legend.get_texts()]
    known: dict[str, Any] = dict(zip(labels, legend.legend_handles, strict=True))
    for axes in reversed(fig.axes):  # what the handles of the legend were drawn after
        known.update((label, one) for one, label in zip(*axes.get_legend_handles_labels()) if label in known)
    while outside and columns > 1 and legend.get_window_extent().width > 0.98 * fig.bbox.width:
        columns -= 1
        legend.remove()
        place: Any = f"outside {outside} center"
        legend = fig.legend([known[label] for label in labels], labels, loc=place, ncols=columns, fontsize=size)
    return legend


def _put_below(axes: Axes, legend: Legend) -> bool:
    """Put a legend that is too large for its axes below them and what stands there; whether it was."""
    box, frame = legend.get_window_extent(), axes.bbox
    if box.width <= _WIDEST * frame.width and box.width * box.height <= _LARGEST * frame.width * frame.height:
        return False
    below = axes.xaxis.get_tightbbox()
    drop = 0.0 if below is None else (frame.y0 - below.y0) / axes.figure.dpi
    shift = ScaledTranslation(0, -drop, axes.figure.dpi_scale_trans)
    legend.set_loc("upper center")
    legend.set_bbox_to_anchor((0.5, 0.0), transform=axes.transAxes + shift)
    return True


def save_figure(
    fig: Figure,
    name: str,
    notebook: str,
    parameters: Mapping[str, Any],
    *,
    recorded: Mapping[str, Any] | None = None,
    folder: Path | str | None = None,
) -> str:
    """Store `fig` as ``figures/NAME.png`` beside the results, with ``NAME.json`` saying where it comes from.

    Parameters
    ----------
    fig : matplotlib Figure
        Stays open: a notebook shows it too.
    name : str
        The file's name without suffix; begin it with the notebook's number, names are shared by all notebooks.
    notebook : str
        The notebook's name without suffix.
    parameters : mapping
        The notebook's parameters; of a recorded run, those of that run.
    recorded : mapping, optional
        ``made`` of the recorded run that the figure shows; its machine, commit and date stand under the figure.
    folder : path, optional
        Where to write; by default ``figures/`` in :func:`~mdsd_study.report.results.results_folder`.

    Returns
    -------
    str
        The line that stands under the figure in the book.

    Notes
    -----
    The bytes of the PNG depend on the figure and on matplotlib's version only: no date, no transparency. Legends get
    letters no smaller than those of the ticks; one that becomes too large for its axes is put below them.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> fig = Figure()
    >>> save_figure(fig, "demo", "01_first_look", {"profile": "ci"}, folder=mkdtemp())  # doctest: +ELLIPSIS
    'Made by notebook 01_first_look, commit ..., parameters profile=ci.'
    """
    if not name or Path(name).name != name or Path(name).suffix:
        raise ValueError(f"name must be a plain file name without suffix, got {name!r}")
    target = Path(folder) if folder is not None else results_folder() / "figures"
    target.mkdir(parents=True, exist_ok=True)
    _readable_legends(fig)
    fig.savefig(target / f"{name}.png", format="png", facecolor="white", transparent=False, metadata={"Software": None})
    source = describe_run()
    note = {"figure": name, "notebook": notebook, "parameters": dict(parameters), "made": source}
    write_json(target / f"{name}.json", note | ({} if recorded is None else {"recorded": dict(recorded)}))
    return provenance_line(notebook, source["commit"], parameters, recorded)
