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

A part goes on where it was interrupted, and ends by writing ``results/recorded/decoding_PART.json``;
``python -m mdsd_study.tools.reference.keep_record decoding_PART`` takes that over into ``reference/recorded/``.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from mdsd_core.decoding.drafters.base import ModelDrafter
from mdsd_core.decoding.scoring import Block, CachedModel
from mdsd_core.models.prompts import load_prompts
from mdsd_study.analysis.target_law_in_the_loop import lossless_cells, scores, watched_run
from mdsd_study.benchmarks import decoding
from mdsd_study.report.provenance import commit
from mdsd_study.report.recorded_runs import write_record
from mdsd_study.tools.notebooks.project import HERE

#: Settings of the martingale test: the longest prompts are left out, since reading them is most of their cost.
PROMPTS, MOST_TOKENS, NEW_TOKENS = 12, 60, 12
THREADS = (1, 2)
#: Rounds of the overhead come from so many texts of so many tokens.
TEXTS, TEXT_TOKENS = 1, 16
#: Lengths of the texts, and turns, of the comparison of speeds.
LENGTHS, TURNS = (16, 32), 3

Row = dict[str, Any]
#: What is measured, by a name that a file can keep: a function that gives the rows.
Work = dict[str, Callable[[], list[Row]]]


class HasRead:
    """A scorer that has read some prompts: each batch of just these starts behind their last token but one.

    Parameters
    ----------
    scorer : CachedModel
        The model.
    prompts : list of list of int
        What it reads, once.
    """

    def __init__(self, scorer: CachedModel, prompts: list[list[int]]) -> None:
        self.scorer, self.vocab_size = scorer, scorer.vocab_size
        self.context_limit, self.window = scorer.context_limit, scorer.window
        scorer.start(len(prompts))
        scorer.feed([Block.chain(prompt[:-1], scored=0) for prompt in prompts])
        scorer.commit([range(len(prompt) - 1) for prompt in prompts])
        self.read = scorer._cache

    def start(self, batch: int) -> None:
        """Begin with copies of what was read."""
        if batch != len(self.read.lengths):
            raise ValueError(f"batch must be the {len(self.read.lengths)} prompts that were read, got {batch}")
        self.scorer.start(batch)
        for index, layer in enumerate(self.read._layers):
            self.scorer._cache.cache.update(layer.keys.clone(), layer.values.clone(), index)
        self.scorer._cache.lengths = list(self.read.lengths)
        self.scorer._cache.width = self.read.width

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scorer, name)


def martingale() -> tuple[Work, Row]:
    """One row a verifier."""
    pair, scorer, drafter, _, _ = decoding.setup()
    encoded = (pair.target.encode(prompt.text, chat=prompt.chat) for prompt in load_prompts("mt_bench"))
    prompts = [ids for ids in encoded if len(ids) <= MOST_TOKENS][:PROMPTS]

    def measure(scheme: str, rule: str) -> list[Row]:
        run = watched_run(
            scorer, drafter, prompts, scheme, rule, decoding.TREE, decoding.SAMPLING,
            max_new_tokens=NEW_TOKENS, batch_size=len(prompts),
        )  # fmt: skip
        e = run.block_efficiency
        row = {
            "scheme": scheme,
            "verifier": rule,
            "rounds": e.positions,
            "block efficiency": [e.mean, e.low, e.high],
            "largest z": run.largest,
        }
        return [{**row, "scores": [asdict(one) for one in scores(run.visits)]}]

    cells = lossless_cells(decoding.TREE)
    scorer, drafter = HasRead(scorer, prompts), ModelDrafter(HasRead(drafter.scorer, prompts))
    work: Work = {f"{scheme}, {rule}": lambda s=scheme, r=rule: measure(s, r) for scheme, rule in cells}  # type: ignore[misc]
    return work, {"prompts": len(prompts), "new tokens": NEW_TOKENS}


def overhead() -> tuple[Work, Row]:
    """One row a rule and number of threads."""
    setup = decoding.setup()

    def measure(threads: int, rule: tuple[str, str, str]) -> list[Row]:
        torch.set_num_threads(threads)
        found = decoding.measure_overhead(*setup, TEXT_TOKENS, TEXTS, [rule])
        return [{"threads": threads, **{k: _plain(v) for k, v in row.items()}} for row in found]

    work: Work = {
        f"{threads} threads, {', '.join(rule)}": lambda t=threads, r=rule: measure(t, r)  # type: ignore[misc]
        for threads in THREADS
        for rule in decoding.rules()
    }
    return work, {"texts": TEXTS, "new tokens": TEXT_TOKENS}


def speed() -> tuple[Work, Row]:
    """One row a way of decoding, length and number of threads."""
    setup = decoding.setup()

    def measure(threads: int, tokens: int) -> list[Row]:
        torch.set_num_threads(threads)
        return [
            {"threads": threads, **{k: _plain(v) for k, v in row.items()}}
            for row in decoding.measure_speed(*setup, tokens, TURNS)
        ]

    work: Work = {
        f"{threads} threads, {tokens} tokens": lambda t=threads, n=tokens: measure(t, n)  # type: ignore[misc]
        for threads in THREADS
        for tokens in LENGTHS
    }
    return work, {"turns": TURNS, "gamma": decoding.GAMMA}


PARTS = {"martingale": martingale, "overhead": overhead, "speed": speed}


def _plain(value: Any) -> Any:
    """Numbers of numpy as those of Python."""
    return value.item() if hasattr(value, "item") else value


def measured(work: Work, path: Path, say: Callable[[str], None] = print) -> Iterator[Row]:
    """The rows of all work, in order; what `path` holds is not measured again, what is measured is added to it."""
    done: dict[str, list[Row]] = {}
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            name, rows = json.loads(line)
            done[name] = rows
    for name, measure in work.items():
        if name not in done:
            done[name] = measure()
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, done[name]]) + "\n")
            say(f"{name}: measured")
        yield from done[name]


def main() -> int:
    """0 when the part is complete."""
    parser = argparse.ArgumentParser(
        prog="python -m mdsd_study.tools.reference.record_decoding", description=__doc__.splitlines()[0]
    )
    parser.add_argument("part", choices=sorted(PARTS))
    part = parser.parse_args().part
    work, parameters = PARTS[part]()
    name = f"decoding_{part}"
    about = {"profile": "full", "target": "smollm2-135m", "draft": "smollm2-135m-skip4", "temperature": 0.7}
    tree = ",".join(map(str, decoding.TREE))
    rows = list(measured(work, HERE.build / "recorded" / f"{name}-{commit()}.jsonl"))
    write_record(name, rows, {**about, "tree": tree, **parameters})
    print(
        f"written: results/recorded/{name}.json; take it over with "
        f"`python -m mdsd_study.tools.reference.keep_record {name}`"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
