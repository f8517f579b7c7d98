"""What an optimal plan for drafts without replacement costs, against `numpy.argsort` in the same run.

    python mdsd_study/benchmarks/nested.py [--real] [--support K] [--tolerance 1e-6] [--drafts 2 3 4 8]
                                [--temperatures ...] [--contexts 12] [--rounds 3] [--json FILE]

A plan is everything from p and q to the labels and the realised marginal: checks, sort, nest. Contexts are softmaxes of
normal logits (scale 3) whose drafts differ by normal noise (scale 0.5), V = 49,152; with --real, positions of texts of
the packaged target, with its drafts that skip 4 and 8 layers; with --support K, only the K most probable tokens of
each side are kept. Every context is sorted and planned in turn, `rounds` times, in the processor time of one thread;
of the rounds the fastest counts, over the contexts the median and the worst are reported.
"""

import statistics

import numpy as np

from mdsd_core.schemes import DistinctConditioned, Scheme, WithoutReplacement
from mdsd_core.transport.nest import nested_plan
from mdsd_study.analysis.nest_plots import measure_plan
from mdsd_study.benchmarks.common import arguments, normal_logits, print_table, softmax, write_record

VOCABULARY = 49_152


def synthetic(count, seed=0):
    """Logits of target and draft."""
    rng = np.random.default_rng(seed)
    return [normal_logits(rng, VOCABULARY, noise=0.5) for _ in range(count)]


def packaged(count, seed=0):
    """The same of the packaged pair: positions drawn from stored continuations."""
    from mdsd_core.distributions import SamplingParams
    from mdsd_core.models import load_model, load_pair
    from mdsd_study.measure.stored_texts import load_texts
    from mdsd_study.measure.teacher_forcing import forced_logits

    target = load_model("smollm2-135m")
    drafts = [load_pair(target, f"smollm2-135m-skip{k}").draft for k in (4, 8)]
    texts = [
        text for name in ("mt_bench", "human_eval") for text in load_texts(target, name, "ci", SamplingParams(0.7))
    ]
    rng = np.random.default_rng(seed)
    for i in range(count):
        text, draft = texts[i % len(texts)], drafts[i // len(texts) % len(drafts)]
        place = rng.integers(len(text.tokens))
        yield forced_logits(target, text)[place].astype(float), forced_logits(draft, text)[place].astype(float)


def keep_top(p, size):
    """The `size` most probable tokens of p, normalised."""
    kept = np.zeros_like(p)
    top = np.argpartition(p, p.size - size)[p.size - size :]
    kept[top] = p[top]
    return kept / kept.sum()


def measure(logits, scheme, temperature, support, tolerance, rounds):
    """One row of the table."""
    found = []
    for target, draft in logits:
        p, q = softmax(target, temperature), softmax(draft, temperature)
        if support:
            p, q = keep_top(p, support), keep_top(q, support)
        found.append(measure_plan(p, q, scheme, tolerance, repeats=rounds))
    milliseconds, ratios = [1e3 * one.seconds for one in found], [one.argsorts for one in found]
    return {
        "median_ms": statistics.median(milliseconds),
        "worst_ms": max(milliseconds),
        "median_argsorts": statistics.median(ratios),
        "worst_argsorts": max(ratios),
        "worst_loss": max(one.loss for one in found),
        "median_steps": statistics.median(one.work.chain_steps + one.work.scan_steps for one in found),
        "most_repairs": max(one.work.repairs for one in found),
        "fell_back": sum(one.work.fell_back for one in found),
    }


def main():
    parser = arguments(__doc__, tolerance=1e-6, contexts=12, rounds=3)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--support", type=int)
    parser.add_argument("--drafts", type=int, nargs="+", default=[2, 3, 4, 8])
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.1, 0.3, 0.7, 1.0, 1.5])
    options = parser.parse_args()
    logits = list((packaged if options.real else synthetic)(options.contexts))
    schemes: tuple[Scheme, ...] = (WithoutReplacement(2), WithoutReplacement(3), DistinctConditioned(2))
    for scheme in schemes:  # compile
        nested_plan(softmax(logits[0][0][:300], 1.0), softmax(logits[0][1][:300], 1.0), scheme, 1e-9)
    rows = [
        {"law": law.__name__, "n": n, "T": T}
        | measure(logits, law(n), T, options.support, options.tolerance, options.rounds)
        for law in (WithoutReplacement, DistinctConditioned)
        for n in options.drafts
        for T in options.temperatures
    ]
    print_table("plans, against numpy.argsort of one vector", rows, " ".join(rows[0]))
    write_record(options.json, {"options": vars(options), "rows": rows})


if __name__ == "__main__":
    main()
