"""The comparison of settings as a figure."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mdsd_study.analysis.compare_settings import Setting
from mdsd_study.report.figures import MARKERS, PALETTE


def draw_settings(settings: Sequence[Setting]) -> Figure:
    """Acceptance by number of drafts beside the bounds, and tokens per round against cost.

    >>> from mdsd_study.analysis.compare_settings import Contexts, compare_settings
    >>> contexts = Contexts.of_rows(np.array([[0.5, 0.3, 0.2]]), np.array([[0.2, 0.3, 0.5]]))
    >>> len(draw_settings(compare_settings(contexts, [1, 2])).axes)
    2
    """
    figure = Figure(figsize=(10.0, 6.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    schemes = list(dict.fromkeys(s.scheme for s in settings))
    rules = list(dict.fromkeys(s.verifier for s in settings))
    color = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(schemes)}
    marker = {name: (*MARKERS, "*", "h", "<", ">")[i % (len(MARKERS) + 4)] for i, name in enumerate(rules)}
    timed = settings[0].round_ms is not None
    for scheme in schemes:
        of_scheme = [s for s in settings if s.scheme == scheme]
        bound = sorted({(s.n, s.optimum) for s in of_scheme})
        left.plot(*zip(*bound), "--", color=color[scheme], linewidth=1)
        for rule in dict.fromkeys(s.verifier for s in of_scheme):
            rows = [s for s in of_scheme if s.verifier == rule]
            look = {"color": color[scheme], "marker": marker[rule], "markerfacecolor": "none"}
            left.plot([s.n for s in rows], [s.acceptance.mean for s in rows], linewidth=0.8, **look)
            cost = [s.round_ms if s.round_ms is not None else s.verify_ms for s in rows]
            right.plot(cost, [s.tokens_per_round for s in rows], linestyle="", **look)
    for n in dict.fromkeys(s.n for s in settings):
        top = max((s for s in settings if s.n == n), key=lambda s: s.tokens_per_round)
        x = top.round_ms if top.round_ms is not None else top.verify_ms
        right.annotate(f"n = {n}", (x, top.tokens_per_round), (0, 7), textcoords="offset points", ha="center")
    left.set(xlabel="drafts n", ylabel="acceptance at a node", xticks=sorted({s.n for s in settings}))
    left.set_title("acceptance (dashed: the bound of the scheme)", fontsize=10)
    right.set(xlabel="milliseconds a round" if timed else "milliseconds a verification", ylabel="tokens a round")
    right.set_title("what a round brings and costs", fontsize=10)
    if not timed:
        right.set_xscale("log")
    else:
        first = settings[0]
        plain = first.round_ms * first.speedup / first.tokens_per_round  # type: ignore[operator]
        edges = np.array([0.0, max(s.round_ms or 0.0 for s in settings)])
        right.plot(edges, np.maximum(edges / plain, 0.0), ":", color="0.4")
        right.set_ylim(bottom=1.0)
    handles = [Line2D([], [], color=color[name], label=name.replace("_", " ")) for name in schemes]
    handles += [
        Line2D([], [], color="0.2", marker=marker[name], linestyle="", markerfacecolor="none", label=name)
        for name in rules
    ]
    if timed:
        handles.append(Line2D([], [], color="0.4", linestyle=":", label="as fast as plain decoding"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure
