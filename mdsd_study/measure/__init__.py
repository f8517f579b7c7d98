"""The sweep engine: pair x prompt set x temperature x n x scheme x verifier, one tidy table.

``settings`` say what is measured, ``grid`` what that comes to, ``one_position`` measures one position, ``work`` one
text, ``sweep`` all of them on ``workers``, ``store`` keeps what is finished, ``table`` documents the columns and
averages.
"""

from mdsd_core.extras import needed_for

with needed_for("sweeps"):
    from mdsd_study.measure.grid import BOUND, Entry, Slice, entries_of
    from mdsd_study.measure.kept_sweeps import measure_kept
    from mdsd_study.measure.model_cache import Placement
    from mdsd_study.measure.one_position import measure_position
    from mdsd_study.measure.settings import DEFAULT_RULES, SweepSettings
    from mdsd_study.measure.store import SettingsDiffer
    from mdsd_study.measure.sweep import Sweep, SweepIncomplete, measure
    from mdsd_study.measure.table import COLUMNS, SUMMARY, summarize

__all__ = [
    "BOUND",
    "COLUMNS",
    "DEFAULT_RULES",
    "SUMMARY",
    "Entry",
    "Placement",
    "SettingsDiffer",
    "Slice",
    "Sweep",
    "SweepIncomplete",
    "SweepSettings",
    "entries_of",
    "measure",
    "measure_kept",
    "measure_position",
    "summarize",
]
