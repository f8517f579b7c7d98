"""What a worker does: draw a batch of texts, or measure one text. Results depend on the arguments alone."""

import numpy as np
import pyarrow as pa

from mdsd_core.distributions import probabilities
from mdsd_study.measure.grid import TEXTS_AT_A_TIME, DrawJob, Slice, TextJob, entries_of
from mdsd_study.measure.model_cache import ModelLogits, Placement, loaded_models
from mdsd_study.measure.one_position import VALUES, measure_position
from mdsd_study.measure.settings import SweepSettings
from mdsd_study.measure.table import entropy, rows_of
from mdsd_study.measure.texts import Continuation, draw_continuations, prompt_stream


def draw_texts(
    settings: SweepSettings, placement: Placement, job: DrawJob
) -> tuple[list[Continuation], dict[str, str]]:
    """Continue the prompts of a batch; also what is wrong with those that cannot be continued, by key."""
    target = loaded_models(*job.slice.target, placement).target
    fit, unfit = [], {}
    for prompt in job.prompts:
        size = len(target.encode(prompt.text, chat=prompt.chat))
        if target.context_limit is not None and size >= target.context_limit:
            unfit[prompt.key] = f"its {size} tokens fill the window of {target.context_limit} of {target.name}"
        else:
            fit.append(prompt)
    drawn = draw_continuations(
        target,
        fit,
        job.slice.text_sampling,
        seed=settings.seed,
        max_new_tokens=settings.max_new_tokens,
        batch_size=TEXTS_AT_A_TIME,
    )
    return drawn, unfit


def measure_text(
    settings: SweepSettings, placement: Placement, job: TextJob, text: Continuation
) -> list[tuple[Slice, pa.Table]]:
    """Measure all slices of a job: one pass of the target and of each draft over the text, whatever the slices.

    p is made once a position and sampling, q once a position, draft and sampling. The logits of one text at a time are
    in memory.
    """
    models = loaded_models(*job.slice.target, placement)
    drafts = {one.pair: models.draft_of(one.pair) for one in job.slices}
    places = range(0, min(len(text.tokens), settings.max_new_tokens), settings.stride)
    if places.stop < len(text.tokens):
        text = Continuation(text.key, text.prompt, text.tokens[: places.stop])
    entries = list(entries_of(settings))
    values = {one: np.empty((len(places), len(entries), len(VALUES))) for one in job.slices}
    facts = {one: np.empty((len(places), 3)) for one in job.slices}
    streams = {one: prompt_stream(settings.seed, f"{one.slug} {job.key}") for one in job.slices}
    size = models.target.vocab_size
    rows = zip(
        ModelLogits(models.target).rows(text, places),
        *(draft.rows(text, places) for draft in drafts.values()),
        strict=True,
    )
    for i, (of_target, *of_drafts) in enumerate(rows):
        logits = dict(zip(drafts, of_drafts, strict=True))
        known_p = {
            sampling: probabilities(of_target, sampling, vocab_size=size, name="target logits")
            for sampling in {one.sampling for one in job.slices}
        }
        known_q = {
            (pair, sampling): probabilities(logits[pair], sampling, vocab_size=size, name=f"logits of {pair.draft}")
            for pair, sampling in {(one.pair, one.draft_sampling) for one in job.slices}
        }
        for one in job.slices:
            p, q = known_p[one.sampling], known_q[one.pair, one.draft_sampling]
            values[one][i] = measure_position(p, q, entries, streams[one], settings.histories)
            facts[one][i] = np.minimum(p, q).sum(), entropy(p), entropy(q)
    return [(one, rows_of(one, job.key, places, entries, values[one], facts[one])) for one in job.slices]
