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

What an interrupted part has measured is kept in ``_build/recorded``, and not measured again at the same commit. A part
ends by writing ``results/recorded/decoding_PART.json``;
``python -m mdsd_study.tools.reference.keep_record decoding_PART`` takes that over into ``reference/recorded/``.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

from mdsd_core.disk_cache import in_one_step
from mdsd_core.models.prompts import load_prompts
from mdsd_study.analysis.target_law_in_the_loop import lossless_cells, scores, watched_run
from mdsd_study.benchmarks import decoding
from mdsd_study.report.provenance import commit
from mdsd_study.report.recorded_runs import write_record
from mdsd_study.tools.notebooks.project import HERE

#: Settings of the martingale test: the longest prompts are left out, since reading them is most of their cost.
PROMPTS, MOST_TOKENS, NEW_TOKENS = 12, 60, 12
THREADS = (1, 2)
#: How many texts, and of how many tokens, the rounds of the overhead come from.
TEXTS, TEXT_TOKENS = 1, 16
#: Lengths of the texts, and turns, of the comparison of speeds.
LENGTHS, TURNS = (16, 32), 3

Row = dict[str, Any]
#: A piece of a part: its name, and what measures its rows.
Piece = tuple[str, Callable[[], Iterable[Row]]]


def martingale() -> Iterator[Piece]:
    """One row a verifier."""
    pair, scorer, drafter, _, _ = decoding.setup()
    encoded = (pair.target.encode(prompt.text, chat=prompt.chat) for prompt in load_prompts("mt_bench"))
    prompts = [ids for ids in encoded if len(ids) <= MOST_TOKENS][:PROMPTS]

    def measure(scheme: str, rule: str) -> Iterator[Row]:
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

    for scheme, rule in lossless_cells(decoding.TREE):
        yield f"{scheme}, {rule}", partial(measure, scheme, rule)


def overhead() -> Iterator[Piece]:
    """One row a rule and number of threads."""
    setup = decoding.setup()
    for threads in THREADS:
        for rule in decoding.rules():
            measure = partial(decoding.measure_overhead, *setup, TEXT_TOKENS, TEXTS, [rule])
            yield f"{threads} threads, {', '.join(rule)}", partial(_with_threads, threads, measure)


def speed() -> Iterator[Piece]:
    """One row a way of decoding, length and number of threads."""
    setup = decoding.setup()
    for threads in THREADS:
        for tokens in LENGTHS:
            measure = partial(decoding.measure_speed, *setup, tokens, TURNS)
            yield f"{threads} threads, {tokens} tokens", partial(_with_threads, threads, measure)


def _with_threads(threads: int, measure: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    torch.set_num_threads(threads)
    for row in measure():
        yield {"threads": threads, **row}


def kept_rows(pieces: Iterable[Piece], path: Path) -> list[Row]:
    """The rows of all pieces, in order; what `path` holds is not measured again, what is measured is added to it."""
    done: dict[str, list[Row]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    rows = []
    for name, measure in pieces:
        if name not in done:
            done[name] = [{key: _plain(value) for key, value in row.items()} for row in measure()]
            print(f"{name}: measured", flush=True)
            with in_one_step(path) as part:
                part.write_text(json.dumps(done), encoding="utf-8")
        rows += done[name]
    return rows


#: By name: its pieces, and the parameters that the record names.
PARTS: dict[str, tuple[Callable[[], Iterator[Piece]], Row]] = {
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
    pieces, parameters = PARTS[part]
    name = f"decoding_{part}"
    about = {"profile": "full", "target": "smollm2-135m", "draft": "smollm2-135m-skip4", "temperature": 0.7}
    tree = ",".join(map(str, decoding.TREE))
    rows = kept_rows(pieces(), HERE.build / "recorded" / f"{name}-{commit()}.json")
    write_record(name, rows, {**about, "tree": tree, **parameters})
    print(
        f"written: results/recorded/{name}.json; take it over with "
        f"`python -m mdsd_study.tools.reference.keep_record {name}`"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
