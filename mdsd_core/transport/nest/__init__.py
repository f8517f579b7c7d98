"""The exact optimal plan for drafts without replacement: labels in a laminar nest, one label drawn for each token.

The parts: the law of the drafts as polynomials at nodes (`states`, `laws`), groups of small tokens as power series
(`series`), the first pass (`groups`), the chain of linear equations (`chain`), the search for the token where it went
wrong (`search`), the blocks of that token (`minorant`), the loop around them (`build`), and the plan (`plan`).
"""

from mdsd_core.transport.nest.build import NestedWork
from mdsd_core.transport.nest.plan import NestedPlan, Segments, nested_plan

__all__ = ["NestedPlan", "NestedWork", "Segments", "nested_plan"]
