"""What the main table costs for one position and pair, against `numpy.argsort` in the same run.

    python -m mdsd_study.benchmarks.measure [--prompts 2] [--tokens 48] [--limit 120] [--json FILE]

The rules of the main table (n = 3, no optimal plans) on the packaged pair, T = 0.7: one pass of target and draft over
texts of the study, p and q, all rates, the rows of the table. Processor time of one thread, medians over texts. The
plain calls, each with its own checks and sorts, are timed beside the shared work. Exit status 1 if a position and pair
costs more than --limit milliseconds.
"""

import statistics
import sys

import numpy as np
import torch

from mdsd_core.distributions import SamplingParams
from mdsd_core.models import load_pair
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_core.verifiers import verifier
from mdsd_study.benchmarks.common import arguments, print_table, seconds, write_record
from mdsd_study.measure import BOUND, Placement, SweepSettings, entries_of, measure_position
from mdsd_study.measure.grid import TextJob, slices_of
from mdsd_study.measure.pairs import find_pair
from mdsd_study.measure.stored_texts import load_texts
from mdsd_study.measure.teacher_forcing import positions
from mdsd_study.measure.texts import thinned
from mdsd_study.measure.work import measure_text


def main():
    parser = arguments(__doc__, prompts=2, tokens=48)
    parser.add_argument("--limit", type=float, default=120.0, help="milliseconds for one position and pair")
    options = parser.parse_args()
    torch.set_num_threads(1)
    settings = SweepSettings(
        (find_pair("smollm2-135m/skip4"),), ("mt_bench",), profile="ci", max_new_tokens=options.tokens
    )
    pair = load_pair("smollm2-135m", "smollm2-135m-skip4")
    sampling = SamplingParams(0.7)
    texts = load_texts(pair.target, "mt_bench", "ci", sampling)[: options.prompts]
    texts = thinned(texts, len(texts), options.tokens)
    jobs = [TextJob(text.key, tuple(slices_of(settings))) for text in texts]
    entries, rng = list(entries_of(settings)), np.random.default_rng(0)
    rules = {(rule, scheme) for _, rule, _, scheme in entries}

    def plain(p, q):
        for rule, scheme in rules:
            optimal_acceptance(p, q, scheme) if rule == BOUND else verifier(rule).acceptance(p, q, scheme)

    measure_text(settings, Placement(), jobs[0], texts[0])  # loads, compiles
    whole = statistics.median(
        seconds(lambda j=job, t=text: measure_text(settings, Placement(), j, t)) / len(text.tokens)
        for job, text in zip(jobs, texts, strict=True)
    )
    spent: dict[str, list[float]] = {"argsort of V doubles": [], "rates, work shared": [], "rates, plain calls": []}
    for text in texts:
        for place in positions(pair.target, {"draft": pair.draft}, [text], sampling):
            p, q = place.p, place.q["draft"]
            spent["argsort of V doubles"].append(seconds(lambda p=p, q=q: np.argsort(p / q)))
            spent["rates, work shared"].append(
                seconds(lambda p=p, q=q: measure_position(p, q, entries, rng, settings.histories))
            )
            spent["rates, plain calls"].append(seconds(lambda p=p, q=q: plain(p, q)))
    spent["everything, one position and pair"] = [whole]
    milliseconds = {name: 1e3 * statistics.median(values) for name, values in spent.items()}
    sort = milliseconds["argsort of V doubles"]
    rows = [{"what": name, "milliseconds": ms, "argsorts": ms / sort} for name, ms in milliseconds.items()]
    places = sum(len(text.tokens) for text in texts)
    about = f"V = {pair.vocab_size}, {places} positions, {len(entries)} rows each; processor time, one thread"
    print_table(about, rows, "what milliseconds argsorts")
    print(f"limit for everything: {options.limit:g} ms")
    write_record(options.json, {"positions": places, "milliseconds": milliseconds, "limit": options.limit})
    if 1e3 * whole > options.limit:
        sys.exit(1)


if __name__ == "__main__":
    main()
