"""What a worker does: draw a batch of texts, or measure one text. Results depend on the arguments alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from mdsd_core.distributions import probabilities
from mdsd_core.models.prompts import Prompt
from mdsd_study.measure.model_cache import ModelSource, Placement, sources_of
from mdsd_study.measure.one_position import VALUES, measure_context
from mdsd_study.measure.plan import Cell, SweepPlan, Unit
from mdsd_study.measure.table import entropy, rows_of
from mdsd_study.measure.texts import Continuation, draw_continuations, prompt_stream

#: Prompts that are continued in one batch. Fixed, so that the number of workers changes no text.
TEXTS_AT_A_TIME = 8


@dataclass(frozen=True)
class Drawing:
    """A batch of texts to draw from one target."""

    target: str
    target_revision: str | None
    prompt_set: str
    text_temperature: float
    number: int
    prompts: tuple[Prompt, ...]


def draw_texts(plan: SweepPlan, placement: Placement, drawing: Drawing) -> tuple[list[Continuation], dict[str, str]]:
    """Continue the prompts of a batch; also what is wrong with those that cannot be continued, by key."""
    target = sources_of(drawing.target, drawing.target_revision, placement).target
    fit, unfit = [], {}
    for prompt in drawing.prompts:
        size = len(target.encode(prompt.text, chat=prompt.chat))
        if target.context_limit is not None and size >= target.context_limit:
            unfit[prompt.key] = f"its {size} tokens fill the window of {target.context_limit} of {target.name}"
        else:
            fit.append(prompt)
    sampling = plan.sampling(drawing.text_temperature)
    drawn = draw_continuations(
        target, fit, sampling, seed=plan.seed, max_new_tokens=plan.max_new_tokens, batch_size=TEXTS_AT_A_TIME
    )
    return drawn, unfit


def measure_text(plan: SweepPlan, placement: Placement, unit: Unit, text: Continuation) -> list[tuple[Cell, pa.Table]]:
    """Measure all cells of a unit: one pass of the target and of each draft over the text, whatever the cells.

    p is made once a position and temperature, q once a position, draft and draft temperature. The logits of one text at
    a time are in memory.
    """
    sources = sources_of(unit.target, unit.target_revision, placement)
    drafts = {cell.pair: sources.draft_of(cell.pair) for cell in unit.cells}
    places = range(0, min(len(text.tokens), plan.max_new_tokens), plan.stride)
    if places.stop < len(text.tokens):
        text = Continuation(text.key, text.prompt, text.tokens[: places.stop])
    entries = list(plan.entries())
    values = {cell: np.empty((len(places), len(entries), len(VALUES))) for cell in unit.cells}
    facts = {cell: np.empty((len(places), 3)) for cell in unit.cells}
    streams = {cell: prompt_stream(plan.seed, f"{cell.slug} {unit.key}") for cell in unit.cells}
    size = sources.target.vocab_size
    rows = zip(
        ModelSource(sources.target).rows(text, places),
        *(draft.rows(text, places) for draft in drafts.values()),
        strict=True,
    )
    for i, (of_target, *of_drafts) in enumerate(rows):
        logits = dict(zip(drafts, of_drafts, strict=True))
        known_p = {
            t: probabilities(of_target, plan.sampling(t), vocab_size=size, name="target logits")
            for t in sorted({cell.temperature for cell in unit.cells})
        }
        known_q = {
            (pair, t): probabilities(logits[pair], plan.sampling(t), vocab_size=size, name=f"logits of {pair.draft}")
            for pair, t in dict.fromkeys((cell.pair, cell.draft_temperature) for cell in unit.cells)
        }
        for cell in unit.cells:
            p, q = known_p[cell.temperature], known_q[cell.pair, cell.draft_temperature]
            values[cell][i] = measure_context(p, q, entries, streams[cell], plan.histories)
            facts[cell][i] = np.minimum(p, q).sum(), entropy(p), entropy(q)
    return [(cell, rows_of(cell, unit.key, places, entries, values[cell], facts[cell])) for cell in unit.cells]


def units_of(plan: SweepPlan, prompts: dict[str, Sequence[Prompt]], target: tuple[str, str | None]) -> list[Unit]:
    """The texts of one target with their cells, in the order of sets, temperatures and prompts."""
    groups: dict[tuple[str, float], list[Cell]] = {}
    for cell in plan.cells():
        if (cell.pair.target, cell.pair.target_revision) == target:
            groups.setdefault((cell.prompt_set, cell.text_temperature), []).append(cell)
    return [
        Unit(*target, prompt_set, prompt.key, temperature, tuple(cells))
        for (prompt_set, temperature), cells in groups.items()
        for prompt in prompts[prompt_set]
    ]
