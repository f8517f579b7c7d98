"""What one verification costs, against `numpy.argsort` of the same float64 vector in the same run.

    python mdsd_study/benchmarks/verifiers.py [--vocabulary 49152] [--drafts 4] [--rounds 30] [--json FILE]

One verification is `prepare` and `verify` for fresh drafts, input checks included; drawing the drafts is not. Each
round times the sort and every rule once, in turn, in the processor time of one thread, so that other load on the
machine falls on all alike; reported are medians over rounds and their ratios. p and q are softmaxes of normal logits
(scale 3) that differ by normal noise (scale 0.7).
"""

import statistics
from typing import Any

import numpy as np

from mdsd_core.schemes import (
    Deterministic,
    SpecHubPairs,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    greedy,
)
from mdsd_core.verifiers import verifier, verifiers_for
from mdsd_study.benchmarks.common import (
    arguments,
    keep_freed_memory,
    normal_logits,
    print_table,
    seconds,
    softmax,
    write_record,
)

#: The ratios that the project holds itself to, for V = 49,152 and n = 4.
LIMITS = {"rrs": 1.5, "rrs_without": 1.5, "kseq": 3.0, "greedy": 1.5, "token_matching": 1.0, "optimal": 8.0}


def cases(n):
    schemes = [WithReplacement(n), WithoutReplacement(n), greedy(n), Deterministic(n)]
    if n > 1:
        schemes.append(TopThenSampled(n // 2, n - n // 2, replacement=True))
    schemes.append(SpecHubPairs())
    return [(name, scheme) for scheme in schemes for name in verifiers_for(scheme)]


def measure(V, n, rounds, seed=0):
    """Medians in milliseconds of the sort and of every (rule, scheme)."""
    rng = np.random.default_rng(seed)
    times: dict[Any, list[float]] = {}
    keep_freed_memory()

    def timed(key, work):
        times.setdefault(key, []).append(seconds(work))

    for i in range(rounds + 2):
        p, q = map(softmax, normal_logits(rng, V))
        if i == 2:
            times.clear()  # two rounds to compile and warm up
        timed("argsort", lambda p=p: np.argsort(p))
        for name, scheme in cases(n):
            rule, drafts = verifier(name), scheme.sample(q, rng)
            timed((name, scheme), lambda: rule.prepare(p, q, scheme).verify(drafts, rng))  # noqa: B023
    return {key: 1e3 * statistics.median(values) for key, values in times.items()}


def main():
    options = arguments(__doc__, vocabulary=49_152, drafts=4, rounds=30).parse_args()
    medians = measure(options.vocabulary, options.drafts, options.rounds)
    sort = medians.pop("argsort")
    rows = [
        {
            "verifier": name,
            "scheme": str(scheme),
            "milliseconds": milliseconds,
            "argsorts": milliseconds / sort,
            "limit": LIMITS.get(name) if (options.vocabulary, options.drafts) == (49_152, 4) else None,
        }
        for (name, scheme), milliseconds in medians.items()
    ]
    print_table(
        f"V = {options.vocabulary}, n = {options.drafts}; numpy.argsort {sort:.3f} ms (processor time, one thread)",
        rows,
        "verifier scheme milliseconds argsorts limit",
    )
    write_record(options.json, {**vars(options), "argsort_milliseconds": sort, "rows": rows})


if __name__ == "__main__":
    main()
