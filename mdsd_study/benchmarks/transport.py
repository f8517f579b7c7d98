"""What the optimal transport of a step costs, against `numpy.argsort` of the same float64 vector in the same run.

    python -m mdsd_study.benchmarks.transport [--rounds 21] [--json FILE]

The works are the optimal acceptance rate, the optimal marginal and the plan of an exact optimal verifier, ready to
verify drafts; each includes the checks of its input and its own sort. Every round alternates the sort and the work, in
the processor time of one thread, so that other load on the machine falls on both alike; reported are medians over
rounds, and the median of the ratios of a round. p and q are softmaxes of normal logits (scale 3) that differ by normal
noise (scale 0.7).
"""

import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mdsd_core.schemes import (
    DistinctConditioned,
    Scheme,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    greedy,
)
from mdsd_core.transport.curtain.coupling import iid_plan
from mdsd_core.transport.marginal import optimal_marginal
from mdsd_core.transport.oracle.linear_programme import draft_sets, solve_lp
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_study.benchmarks.common import (
    arguments,
    keep_freed_memory,
    normal_logits,
    print_table,
    seconds,
    softmax,
    write_record,
)

#: What is measured, by name.
WORKS: dict[str, Callable[..., Any]] = {"rate": optimal_acceptance, "marginal": optimal_marginal, "plan": iid_plan}


@dataclass(frozen=True)
class Case:
    """A cost that the project holds itself to, in argsorts."""

    work: str
    scheme: Scheme
    vocabulary: int
    limit: float | None = None
    temperature: float = 1.0


CASES = [
    Case("rate", WithReplacement(8), 151_936, 3.0),
    *(Case("marginal", WithReplacement(n), 151_936, 4.0) for n in (2, 3, 4, 8)),
    *(Case("plan", WithReplacement(n), 151_936, 8.0) for n in (2, 3, 4, 8)),
    Case("plan", TopThenSampled(2, 2, True), 151_936, 8.0),
    *(Case("rate", WithoutReplacement(4), 49_152, 40.0, temperature) for temperature in (1.0, 0.1, 0.3, 0.7, 1.5)),
]

#: How the cost grows with the vocabulary, from 10^3 to 10^6.
BY_VOCABULARY = [
    ("rate", WithReplacement(8)),
    ("marginal", WithReplacement(8)),
    ("plan", WithReplacement(2)),
    ("plan", WithReplacement(8)),
    ("rate", WithoutReplacement(4)),
    ("rate", DistinctConditioned(4)),
]
VOCABULARIES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)

#: How it grows with the number of drafts, up to 16.
BY_DRAFTS = [
    ("rate", WithReplacement),
    ("marginal", WithReplacement),
    ("plan", WithReplacement),
    ("rate", WithoutReplacement),
    ("rate", DistinctConditioned),
    ("rate", greedy),
]
DRAFTS = (1, 2, 3, 4, 6, 8, 12, 16)
DRAFTS_VOCABULARY = 49_152

#: The vocabulary of Llama 3, to set the plan for all of it beside published times for k tokens.
LLAMA = 128_256

#: Tokens and drafts of the linear programs.
PROGRAMS = ((10, 4), (100, 2), (300, 2))

#: Times faster than the LP that the rate must be at (k, n) = (300, 2).
LP_LIMIT = 1000.0

#: Times ``a (V log V)^b`` with b up to this grow as V log V; what is above 1 is the memory's, not the algorithm's.
EXPONENT_LIMIT = 1.25


def softmax_pair(V, temperature=1.0, seed=0):
    target, draft = normal_logits(np.random.default_rng(seed), V)
    return softmax(target, temperature), softmax(draft, temperature)


def against_argsort(work, scheme, pair, rounds):
    """Medians of milliseconds of a work, and of its ratio to the sort of p/q."""
    p, q = pair
    ratio = p / q
    times = []
    for _ in range(rounds + 2):  # two rounds to compile and warm up
        sort = seconds(lambda: np.argsort(ratio))
        times.append((seconds(lambda: WORKS[work](p, q, scheme)), sort))
    times = times[2:]
    return {
        "work": work,
        "scheme": str(scheme),
        "vocabulary": p.size,
        "milliseconds": 1e3 * statistics.median(own for own, _ in times),
        "argsort_milliseconds": 1e3 * statistics.median(sort for _, sort in times),
        "argsorts": statistics.median(own / sort for own, sort in times),
    }


def cases(rounds):
    rows = []
    for case in CASES:
        p, q = softmax_pair(case.vocabulary, case.temperature)
        row = against_argsort(case.work, case.scheme, (p, q), rounds)
        row |= {"temperature": case.temperature, "limit": case.limit}
        rows.append(row | {"lost_acceptance": lost_acceptance(p, q, case.scheme)} if case.work == "plan" else row)
    return rows


def lost_acceptance(p, q, scheme):
    """What rounding costs a plan."""
    accepted = p[scheme.fixed_set(q)].sum() + np.minimum(p, iid_plan(p, q, scheme).marginal).sum()
    return optimal_acceptance(p, q, scheme).rate - float(accepted)


def growth_with_vocabulary(rounds):
    """The cost by V, and the exponent b of the best fit ``a (V log V)^b`` from V = 10^4 on, that of the sort beside it.

    Below that size the fixed cost of a call counts.
    """
    rows, fits = [], []
    for work, scheme in BY_VOCABULARY:
        own = [
            against_argsort(work, scheme, softmax_pair(V), max(5, rounds // 3) if V > 50_000 else rounds)
            for V in VOCABULARIES
        ]
        rows += own
        size = np.array([V * np.log2(V) for V in VOCABULARIES])
        large = np.array(VOCABULARIES) >= 10_000
        exponents = [
            float(np.polyfit(np.log(size[large]), np.log([row[key] for row in own])[large], 1)[0])
            for key in ("milliseconds", "argsort_milliseconds")
        ]
        fit = {"exponent": exponents[0], "argsort_exponent": exponents[1], "limit": EXPONENT_LIMIT}
        fits.append({"work": work, "scheme": str(scheme)} | fit)
    return rows, fits


def growth_with_drafts(rounds):
    pair = softmax_pair(DRAFTS_VOCABULARY)
    return [
        against_argsort(work, family(n), pair, rounds) | {"drafts": n} for work, family in BY_DRAFTS for n in DRAFTS
    ]


def against_lp(rounds):
    """The solution of the LP for n independent drafts from k tokens, its set-up not counted, against the rate."""
    rows = []
    for k, n in PROGRAMS:
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


def beside_published(rounds):
    """The published times of Global Resolution, and this project's plan for k tokens, and for all those of Llama 3."""
    published = json.loads((Path(__file__).parent / "global_resolution.json").read_text(encoding="utf-8"))
    for row in published["rows"]:
        scheme = WithReplacement(row["n"])
        for name, size in (("plan_k", row["k"]), ("plan_all", LLAMA)):
            measured = against_argsort("plan", scheme, softmax_pair(size), rounds)
            row[name] = measured["milliseconds"]
    return published | {"vocabulary": LLAMA, "note": "published times are their authors', on another machine"}


def report(rounds):
    keep_freed_memory()
    by_vocabulary, fits = growth_with_vocabulary(rounds)
    return {
        "rounds": rounds,
        "cases": cases(rounds),
        "vocabulary": by_vocabulary,
        "fits": fits,
        "drafts": growth_with_drafts(rounds),
        "lp": against_lp(rounds),
        "published": beside_published(rounds),
    }


def print_report(result):
    cost = "work scheme vocabulary milliseconds argsorts"
    print_table("costs", result["cases"], f"{cost} temperature limit lost_acceptance")
    print_table("growth with the vocabulary", result["vocabulary"], cost)
    print_table("exponents of V log V", result["fits"], "work scheme exponent argsort_exponent limit")
    print_table("growth with the drafts", result["drafts"], f"{cost} drafts")
    columns = "tokens drafts lp_milliseconds rate_milliseconds times_faster difference limit"
    print_table("against the linear programme; limit: at least", result["lp"], columns)
    published = result["published"]
    about = f"{published['source']}: {published['setup']}; {published['note']}; plan_all: V = {published['vocabulary']}"
    print_table(about, published["rows"], "k n lp max_flow global_resolution solved plan_k plan_all")


def main(given=None):
    options = arguments(__doc__, rounds=21).parse_args(given)
    result = report(options.rounds)
    print_report(result)
    write_record(options.json, result)


if __name__ == "__main__":
    main()
