"""What an optimal acceptance rate costs, against `numpy.argsort` of the same float64 vector in the same run.

    python -m benchmarks.rate [--rounds 21] [--json FILE]

Each measurement alternates the sort and the work, in the processor time of one thread, so that other load on the
machine falls on both alike; reported are medians over rounds, and the median of the ratios of a round. p and q are
softmaxes of normal logits (scale 3) that differ by normal noise (scale 0.7). A rate includes the checks of its input
and its own sort.
"""

import argparse
import json
import platform
import statistics
import time

import numpy as np

from mdsd_core.schemes import DistinctConditioned, WithoutReplacement, WithReplacement, greedy
from mdsd_core.transport.oracle import draft_sets, solve_lp
from mdsd_core.transport.subset import optimal_acceptance

#: The ratios that the project holds itself to: (scheme, V) -> argsorts.
LIMITS = {(WithReplacement(8), 151_936): 3.0, (WithoutReplacement(4), 49_152): 40.0}

#: Times faster than the LP that the rate must be at (k, n) = (300, 2).
LP_LIMIT = 1000.0


def softmax_pair(V, temperature=1.0, seed=0):
    rng = np.random.default_rng(seed)
    logits = 3.0 * rng.normal(size=V)
    pair = []
    for z in (logits, logits + 0.7 * rng.normal(size=V)):
        weights = np.exp((z - z.max()) / temperature)
        pair.append(weights / weights.sum())
    return pair


def seconds(work):
    start = time.thread_time()
    work()
    return time.thread_time() - start


def against_argsort(p, q, scheme, rounds):
    """Medians of milliseconds of a rate, and of its ratio to the sort of p/q."""
    ratio = p / q
    times = []
    for _ in range(rounds + 2):  # two rounds to compile and warm up
        sort = seconds(lambda: np.argsort(ratio))
        times.append((seconds(lambda: optimal_acceptance(p, q, scheme)), sort))
    times = times[2:]
    return {
        "scheme": str(scheme),
        "vocabulary": p.size,
        "milliseconds": 1e3 * statistics.median(rate for rate, _ in times),
        "argsort_milliseconds": 1e3 * statistics.median(sort for _, sort in times),
        "argsorts": statistics.median(rate / sort for rate, sort in times),
    }


def held_to(rounds):
    """The rates with a limit, and the one without replacement at other temperatures."""
    rows = []
    for (scheme, V), limit in LIMITS.items():
        temperatures = (1.0, 0.1, 0.3, 0.7, 1.5) if isinstance(scheme, WithoutReplacement) else (1.0,)
        for temperature in temperatures:
            row = against_argsort(*softmax_pair(V, temperature), scheme, rounds)
            rows.append(row | {"temperature": temperature, "limit": limit})
    return rows


def growth_with_vocabulary(rounds):
    """V from 10^3 to 10^6, as milliseconds and as nanoseconds for each V log2 V."""
    rows = []
    for V in (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000):
        for scheme in (WithReplacement(8), WithoutReplacement(4), DistinctConditioned(4)):
            row = against_argsort(*softmax_pair(V), scheme, max(5, rounds // 3) if V > 50_000 else rounds)
            rows.append(row | {"nanoseconds_per_v_log_v": 1e6 * row["milliseconds"] / (V * np.log2(V))})
    return rows


def growth_with_drafts(rounds, V=49_152):
    """The number of drafts from 1 to 16."""
    p, q = softmax_pair(V)
    return [
        against_argsort(p, q, family(n), rounds) | {"drafts": n}
        for n in (1, 2, 3, 4, 6, 8, 12, 16)
        for family in (WithReplacement, WithoutReplacement, DistinctConditioned, greedy)
    ]


def against_lp(rounds):
    """The solution of the LP for n independent drafts from k tokens, its set-up not counted, against the rate."""
    rows = []
    for k, n in ((10, 4), (100, 2), (300, 2)):
        p, q = softmax_pair(k)
        sets = draft_sets(*WithReplacement(n).enumerate(q))
        lp = statistics.median(seconds(lambda: solve_lp(p, sets)) for _ in range(3))  # noqa: B023
        optimal_acceptance(p, q, WithReplacement(n))
        rate = statistics.median(seconds(lambda: optimal_acceptance(p, q, WithReplacement(n))) for _ in range(rounds))  # noqa: B023
        error = abs(solve_lp(p, sets).rate - optimal_acceptance(p, q, WithReplacement(n)).rate)
        rows.append(
            {
                "tokens": k,
                "drafts": n,
                "lp_milliseconds": 1e3 * lp,
                "rate_milliseconds": 1e3 * rate,
                "times_faster": lp / rate,
                "difference": error,
                "limit": LP_LIMIT if (k, n) == (300, 2) else None,
            }
        )
    return rows


def sort_in_use():
    """What tells whether numpy's vectorised sort is the yardstick: instruction sets found, and a stable sort's time."""
    ratio = np.divide(*softmax_pair(151_936))
    quick, stable = (
        statistics.median(seconds(lambda: np.argsort(ratio, kind=kind)) for _ in range(9))  # noqa: B023
        for kind in ("quicksort", "stable")
    )
    return {
        "numpy": np.__version__,
        "instruction_sets": np.show_config(mode="dicts")["SIMD Extensions"]["found"],
        "stable_over_quick": stable / quick,
    }


def report(rounds):
    return {
        "rounds": rounds,
        "machine": {"processor": platform.processor() or platform.machine(), "python": platform.python_version()},
        "argsort": sort_in_use(),
        "held_to": held_to(rounds),
        "vocabulary": growth_with_vocabulary(rounds),
        "drafts": growth_with_drafts(rounds),
        "lp": against_lp(rounds),
    }


def print_report(result):
    print(f"numpy.argsort: {result['argsort']}")
    print(f"\n{'rate':<42}{'V':>9}{'T':>6}{'ms':>9}{'argsorts':>10}{'limit':>8}")
    for row in result["held_to"]:
        print(
            f"{row['scheme']:<42}{row['vocabulary']:>9}{row['temperature']:>6}{row['milliseconds']:>9.3f}"
            f"{row['argsorts']:>10.2f}{row['limit']:>8.1f}"
        )
    print(f"\n{'rate':<42}{'V':>9}{'ms':>9}{'argsorts':>10}{'ns / (V log2 V)':>18}")
    for row in result["vocabulary"]:
        print(
            f"{row['scheme']:<42}{row['vocabulary']:>9}{row['milliseconds']:>9.3f}{row['argsorts']:>10.2f}"
            f"{row['nanoseconds_per_v_log_v']:>18.2f}"
        )
    print(f"\n{'rate':<58}{'n':>4}{'ms':>9}{'argsorts':>10}")
    for row in result["drafts"]:
        print(f"{row['scheme']:<58}{row['drafts']:>4}{row['milliseconds']:>9.3f}{row['argsorts']:>10.2f}")
    print(f"\n{'k':>5}{'n':>4}{'LP ms':>12}{'rate ms':>10}{'times faster':>14}{'difference':>12}{'at least':>10}")
    for row in result["lp"]:
        limit = f"{row['limit']:.0f}" if row["limit"] else "-"
        print(
            f"{row['tokens']:>5}{row['drafts']:>4}{row['lp_milliseconds']:>12.2f}{row['rate_milliseconds']:>10.4f}"
            f"{row['times_faster']:>14.0f}{row['difference']:>12.1e}{limit:>10}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", metavar="FILE", help="write the tables there too")
    options = parser.parse_args()
    result = report(options.rounds)
    print_report(result)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
