"""What one row costs in a batch, against a loop of the verifiers over the same rows in the same run.

    python -m mdsd_study.benchmarks.batched [--batch 16] [--vocabulary 49152] [--drafts 4] [--threads 2] [--rounds 30]
                                 [--device cpu] [--json F]

Each round times, in turn and for fresh rows, `batched.verify` with all its checks (on so many threads) and the loop of
`prepare` and `verify` over the rows (numpy on one). Drawing drafts and uniforms is not timed. Two clocks: that on the
wall, and the processor time of all threads, in which other load on the machine counts for less: there more threads are
of no help. Reported are medians over rounds; the ratio is the median of the rounds' ratios, which need not be that of
the medians. Rows are pairs of softmaxes of normal logits (scale 3) that differ by normal noise (scale 0.7).
"""

import statistics
import time

import numpy as np
import torch

from mdsd_core.decoding import tensor_rules
from mdsd_core.schemes import Deterministic, SpecHubPairs, WithoutReplacement, WithReplacement, greedy
from mdsd_core.verifiers import verifier
from mdsd_study.benchmarks.common import arguments, machine, print_table, softmax, write_record

#: The compiled rules, and how many times faster a row has to be in a batch: for B = 16, V = 49,152, n = 4, two threads.
LIMITS = {"rrs": 1.3, "rrs_without": 1.3, "greedy": 1.3, "token_matching": 1.3}


class Played:
    """A source that plays the uniforms of one row."""

    def __init__(self, row):
        self.values = iter(row)

    def random(self):
        return next(self.values)


def cases(n):
    return [
        ("rrs", WithReplacement(n)),
        ("rrs_without", WithoutReplacement(n)),
        ("greedy", greedy(n)),
        ("token_matching", WithReplacement(n)),
        ("kseq", WithReplacement(n)),
        ("spechub", SpecHubPairs()),
        ("deterministic", Deterministic(n)),
        ("optimal", WithReplacement(n)),
    ]


def both_clocks(work):
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor


def measure(B, V, n, rounds, seed=0, device="cpu"):
    """(rule, scheme) -> lists over rounds of (loop, batch) seconds on the wall, and in processor time."""
    rng = np.random.default_rng(seed)
    times = {}
    np.empty(3 << 20)  # memory that is freed is used again, as in a process that holds a model
    for i in range(rounds + 2):
        logits = 3.0 * rng.normal(size=(B, V))
        p, q = softmax(logits), softmax(logits + 0.7 * rng.normal(size=(B, V)))
        on_torch = torch.from_numpy(p).to(device), torch.from_numpy(q).to(device)
        if i == 2:
            times.clear()  # two rounds to compile and warm up
        for name, scheme in cases(n):
            rule = verifier(name)
            drafts = np.stack([scheme.sample(row, rng) for row in q])
            u = rng.random((B, tensor_rules.uniforms_for(scheme)))

            def loop(rule=rule, scheme=scheme, drafts=drafts, u=u, p=p, q=q):
                return [rule.prepare(p[b], q[b], scheme).verify(drafts[b], Played(u[b])).token for b in range(B)]

            def batch(name=name, scheme=scheme, drafts=drafts, u=u, pair=on_torch):
                rows = torch.from_numpy(drafts).to(device), scheme, torch.from_numpy(u).to(device)
                return tensor_rules.verify(name, *pair, *rows).tokens.tolist()

            (one, *by_loop), (other, *by_batch) = both_clocks(loop), both_clocks(batch)
            if one != other:
                raise AssertionError(f"{name}: the loop emits {one}, the batch {other}")
            times.setdefault((name, scheme), []).append((*by_loop, *by_batch))
    return times


def table(times, B):
    """What :func:`measure` found, a row for each rule: medians over rounds."""
    rows = []
    for (name, scheme), seconds in times.items():
        a_row = [1e6 * statistics.median(column) / B for column in zip(*seconds)]
        ratios = [s[0] / s[2] for s in seconds]
        rows.append(
            {
                "verifier": name,
                "scheme": str(scheme),
                "compiled": name in LIMITS,
                "loop_microseconds": a_row[0],
                "batch_microseconds": a_row[2],
                "speedup": statistics.median(ratios),
                "slowest_speedup": min(ratios),
                "fastest_speedup": max(ratios),
                "speedup_of_processor_time": statistics.median(s[1] / s[3] for s in seconds),
            }
        )
    return rows


def main():
    parser = arguments(__doc__, batch=16, vocabulary=49_152, drafts=4, rounds=30)
    parser.add_argument("--threads", type=int, default=2, help="threads of the batch (the loop uses one)")
    parser.add_argument("--device", default="cpu", help="where the batch is; the loop runs on the host")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    times = measure(options.batch, options.vocabulary, options.drafts, options.rounds, device=options.device)
    held = (options.batch, options.vocabulary, options.drafts, options.threads) == (16, 49_152, 4, 2)
    held &= options.device == "cpu"
    rows = [row | {"limit": LIMITS.get(row["verifier"]) if held else None} for row in table(times, options.batch)]
    print(f"B = {options.batch}, V = {options.vocabulary}, n = {options.drafts}; microseconds a row, medians")
    print_table(
        ["verifier", "scheme", "loop", "batch", "speedup", "in CPU time", "limit"],
        rows,
        {"verifier": "<16", "scheme": "<56", "loop_microseconds": "8.0f", "batch_microseconds": "8.0f"}
        | {"speedup": "9.2f", "speedup_of_processor_time": "13.2f", "limit": "7.1f"},
    )
    about = {name: getattr(options, name) for name in ("batch", "vocabulary", "drafts", "threads", "device", "rounds")}
    write_record(options.json, {**about, "machine": machine(), "rows": rows})


if __name__ == "__main__":
    main()
