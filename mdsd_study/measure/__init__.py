"""The sweep engine: pair x prompt set x temperature x n x scheme x verifier, one tidy table.

``plan`` says what is measured, ``one_position`` measures one context, ``work`` one text, ``run`` all of them, ``store``
keeps what is finished, ``table`` documents the columns and averages.
"""

from mdsd_core.extras import needed_for

with needed_for("sweeps"):
    from mdsd_study.measure.model_cache import Placement
    from mdsd_study.measure.one_position import measure_context
    from mdsd_study.measure.plan import BOUND, DEFAULT_RULES, Cell, SweepPlan
    from mdsd_study.measure.run import Sweep, SweepIncomplete, measure, measure_kept
    from mdsd_study.measure.store import SettingsDiffer
    from mdsd_study.measure.table import COLUMNS, SUMMARY, summarize

__all__ = [
    "BOUND",
    "COLUMNS",
    "DEFAULT_RULES",
    "SUMMARY",
    "Cell",
    "Placement",
    "SettingsDiffer",
    "Sweep",
    "SweepIncomplete",
    "SweepPlan",
    "measure",
    "measure_context",
    "measure_kept",
    "summarize",
]
