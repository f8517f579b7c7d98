"""Record in full what is claimed of the decoding loop on the packaged pair: ``python -m
mdsd_study.tools.reference.record_decoding PART``.

Parts, each a table:

``martingale``
    for every verifier, how its acceptance in the loop compares with the exact one, as z-scores by depth, and its block
    efficiency (:mod:`mdsd_study.analysis.target_law_in_the_loop`);
``overhead``
    for every rule, what a round spends outside the models, with one thread and with two
    (``mdsd_study.benchmarks.decoding``);
``speed``
    one draft against plain decoding, against both without a cache, and against transformers' assisted generation
    (``mdsd_study.benchmarks.decoding``).

A part ends by writing ``results/recorded/decoding_PART.json``;
``python -m mdsd_study.tools.reference.keep_record decoding_PART`` takes that over into ``reference/recorded/``.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import torch

from mdsd_core.models.prompts import load_prompts
from mdsd_study.analysis.target_law_in_the_loop import lossless_cells, scores, watched_run
from mdsd_study.benchmarks import decoding
from mdsd_study.report.recorded_runs import write_record

#: Settings of the martingale test: the longest prompts are left out, since reading them is most of their cost.
PROMPTS, MOST_TOKENS, NEW_TOKENS = 12, 60, 12
THREADS = (1, 2)
#: How many texts, and of how many tokens, the rounds of the overhead come from.
TEXTS, TEXT_TOKENS = 1, 16
#: Lengths of the texts, and turns, of the comparison of speeds.
LENGTHS, TURNS = (16, 32), 3

Row = dict[str, Any]


def martingale() -> Iterator[Row]:
    """One row a verifier."""
    pair, scorer, drafter, _, _ = decoding.setup()
    encoded = (pair.target.encode(prompt.text, chat=prompt.chat) for prompt in load_prompts("mt_bench"))
    prompts = [ids for ids in encoded if len(ids) <= MOST_TOKENS][:PROMPTS]
    for scheme, rule in lossless_cells(decoding.TREE):
        run = watched_run(
            scorer, drafter, prompts, scheme, rule, decoding.TREE, decoding.SAMPLING,
            max_new_tokens=NEW_TOKENS, batch_size=len(prompts),
        )  # fmt: skip
        e = run.block_efficiency
        yield {
            "scheme": scheme,
            "verifier": rule,
            "rounds": e.positions,
            "block efficiency": [e.mean, e.low, e.high],
            "largest z": run.largest,
            "scores": [asdict(one) for one in scores(run.visits)],
        }


def overhead() -> Iterator[Row]:
    """One row a rule and number of threads."""
    setup = decoding.setup()
    for threads in THREADS:
        torch.set_num_threads(threads)
        for row in decoding.measure_overhead(*setup, TEXT_TOKENS, TEXTS):
            yield {"threads": threads, **row}


def speed() -> Iterator[Row]:
    """One row a way of decoding, length and number of threads."""
    setup = decoding.setup()
    for threads in THREADS:
        torch.set_num_threads(threads)
        for tokens in LENGTHS:
            for row in decoding.measure_speed(*setup, tokens, TURNS):
                yield {"threads": threads, **row}


#: By name: what makes the rows, and the parameters that the record names.
PARTS: dict[str, tuple[Callable[[], Iterator[Row]], Row]] = {
    "martingale": (martingale, {"prompts": PROMPTS, "new tokens": NEW_TOKENS}),
    "overhead": (overhead, {"texts": TEXTS, "new tokens": TEXT_TOKENS}),
    "speed": (speed, {"turns": TURNS, "gamma": decoding.GAMMA}),
}


def _plain(value: Any) -> Any:
    """Numbers of numpy as those of Python."""
    return value.item() if hasattr(value, "item") else value


def main() -> int:
    """0 when the part is complete."""
    parser = argparse.ArgumentParser(
        prog="python -m mdsd_study.tools.reference.record_decoding", description=__doc__.splitlines()[0]
    )
    parser.add_argument("part", choices=sorted(PARTS))
    part = parser.parse_args().part
    measured, parameters = PARTS[part]
    name = f"decoding_{part}"
    about = {"profile": "full", "target": "smollm2-135m", "draft": "smollm2-135m-skip4", "temperature": 0.7}
    tree = ",".join(map(str, decoding.TREE))
    rows = []
    for row in measured():
        rows.append({key: _plain(value) for key, value in row.items()})
        print(rows[-1], flush=True)
    write_record(name, rows, {**about, "tree": tree, **parameters})
    print(
        f"written: results/recorded/{name}.json; take it over with "
        f"`python -m mdsd_study.tools.reference.keep_record {name}`"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
