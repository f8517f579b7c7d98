"""What one row costs in a batch on a GPU, against a loop of the verifiers over the same rows on the host.

    python -m mdsd_study.benchmarks.batched [--batch 16] [--vocabulary 49152] [--drafts 4] [--rounds 30]
                                 [--device cuda] [--json F]

Each round times, in turn and for fresh rows, `tensor_rules.verify` with all its checks and the loop of `prepare` and
`verify` over the rows (numpy on one thread). Drawing drafts and uniforms is not timed. Reported are medians over rounds
on the wall; the ratio is the median of the rounds' ratios, which need not be that of the medians. Rows are pairs of
softmaxes of normal logits (scale 3) that differ by normal noise (scale 0.7). On the host (`--device cpu`) the batch is
judged row by row and gains nothing.
"""

import statistics
import time
from typing import Any

import numpy as np
import torch

from mdsd_core.decoding import tensor_rules
from mdsd_core.schemes import Deterministic, SpecHubPairs, WithoutReplacement, WithReplacement, greedy
from mdsd_core.verifiers import verifier
from mdsd_study.benchmarks.common import (
    arguments,
    keep_freed_memory,
    normal_logits,
    print_table,
    softmax,
    write_record,
)


class GivenUniforms:
    """Gives the uniforms of one row, in order."""

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


def timed(work):
    """What the work returns, and seconds on the wall."""
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def measure(B, V, n, rounds, seed=0, device="cuda"):
    """(rule, scheme) -> list over rounds of the seconds of loop and batch."""
    rng = np.random.default_rng(seed)
    times: dict[Any, list[tuple[float, ...]]] = {}
    keep_freed_memory()
    for i in range(rounds + 2):
        p, q = map(softmax, normal_logits(rng, (B, V)))
        on_device = torch.from_numpy(p).to(device), torch.from_numpy(q).to(device)
        if i == 2:
            times.clear()  # two rounds to compile and warm up
        for name, scheme in cases(n):
            rule = verifier(name)
            drafts = np.stack([scheme.sample(row, rng) for row in q])
            u = rng.random((B, tensor_rules.uniforms_for(scheme)))

            def loop(rule=rule, scheme=scheme, drafts=drafts, u=u, p=p, q=q):
                plans = [rule.prepare(p[b], q[b], scheme) for b in range(B)]
                return [plan.verify(drafts[b], GivenUniforms(u[b])).token for b, plan in enumerate(plans)]

            def batch(name=name, scheme=scheme, drafts=drafts, u=u, pair=on_device):
                rows, uniforms = (torch.from_numpy(array).to(device) for array in (drafts, u))
                return tensor_rules.verify(name, pair[0], pair[1], rows, scheme, uniforms).tokens.tolist()

            (one, by_loop), (other, by_batch) = timed(loop), timed(batch)
            if one != other:
                raise AssertionError(f"{name}: the loop emits {one}, the batch {other}")
            times.setdefault((name, scheme), []).append((by_loop, by_batch))
    return times


def table(times, B):
    """What :func:`measure` found, a row for each rule: medians over rounds."""
    rows = []
    for (name, scheme), seconds in times.items():
        loop, batch = (1e6 * statistics.median(column) / B for column in zip(*seconds))
        rows.append(
            {
                "verifier": name,
                "scheme": str(scheme),
                "loop_microseconds": loop,
                "batch_microseconds": batch,
                "speedup": statistics.median(by_loop / by_batch for by_loop, by_batch in seconds),
            }
        )
    return rows


def main():
    parser = arguments(__doc__, batch=16, vocabulary=49_152, drafts=4, rounds=30, device="cuda")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("torch sees no CUDA device here: nothing to measure (--device cpu judges row by row)")
        return
    times = measure(options.batch, options.vocabulary, options.drafts, options.rounds, device=options.device)
    rows = table(times, options.batch)
    print_table(
        f"B = {options.batch}, V = {options.vocabulary}, n = {options.drafts}; microseconds a row, medians",
        rows,
        "verifier scheme loop_microseconds batch_microseconds speedup",
    )
    write_record(options.json, {**vars(options), "rows": rows})


if __name__ == "__main__":
    main()
