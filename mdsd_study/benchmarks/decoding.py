"""What the loop costs beside the models, and how fast it is against others: every rule, and two baselines.

    python -m mdsd_study.benchmarks.decoding [--target NAME] [--draft NAME] [--tokens 32] [--repeat 3] [--device cpu]
                                   [--threads N] [--only WORD] [--json FILE]

*Overhead*: the part of a round outside the models' forward passes, the models' own update of their caches counted as
theirs: drawing drafts, building trees and masks, moving logits, verifying, cutting caches. For every rule on the tree
(4, 2, 2) at temperature 0.7, medians over rounds, on the wall and in processor time of all threads, in which other load
on the machine counts for less; the first round of a text, which feeds the prompt, is left out. How it is split by kind
of work is a mean over all rounds, on the wall; *rest* is blocks, masks and logits on their way to and from the models.

*Speed*: one draft (a chain) at temperature 0, where all of them emit the same text, against decoding without a cache
and against transformers' own assisted generation with the same models and as many drafts a round. Turns are
interleaved; given is the median of the ratios turn by turn (decoding without a cache has one turn only).

Like is compared with like: near the end of a text transformers asks the draft for no more tokens than can still be
emitted, and so does ``trim=True``, the setting compared. With ``trim=False``, the default of ``generate``, the last
round draws a whole tree, up to gamma draft passes of which nothing can be used. That costs much in a short text and
little in a long one, and has a line of its own.
"""

import itertools
import statistics
import time
from typing import Any

import numpy as np
import torch
import transformers

from mdsd_core.decoding.drafters.base import ModelDrafter
from mdsd_core.decoding.generate import as_scorer, generate
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import load_pair
from mdsd_core.schemes.names import scheme_family
from mdsd_core.trees.selection import selects
from mdsd_core.verifiers import verifier
from mdsd_study.analysis.target_law_in_the_loop import lossless_cells
from mdsd_study.benchmarks.common import arguments, print_table, write_record

TREE = (4, 2, 2)
SAMPLING, GREEDY = SamplingParams(temperature=0.7), SamplingParams(temperature=0)
GAMMA = 3
NO_CACHE, DRAFT_NO_CACHE = "transformers, no cache", f"one draft, gamma {GAMMA}, no cache"
PROMPT = "Explain how tides work."

#: The loop's own work as it times it; drafting and scoring are the models' but for the rest.
KINDS = ("scheme", "verify", "cache")

#: The largest share of a round that may be outside the models.
LIMIT, LIMIT_OPTIMAL = 0.15, 0.30


class Stopwatch:
    """Seconds inside the forward passes of some models: on the wall, and in processor time of all threads."""

    def __init__(self, *models):
        self.inside = np.zeros(2)
        for model in models:
            model.register_forward_pre_hook(self._start)
            model.register_forward_hook(self._stop)

    def _start(self, model, _inputs):
        self._started = now(model.device)

    def _stop(self, model, _inputs, _output):
        self.inside += now(model.device) - self._started

    def mark(self, device):
        """(time, time inside the models), shape [2, 2]."""
        return np.array([now(device), self.inside])


def now(device):
    if device.type == "cuda":
        torch.cuda.synchronize()
    return np.array([time.perf_counter(), time.process_time()])


def rules():
    """(scheme, verifier, tree rule) for all that can fill the tree."""
    found = []
    for scheme, name in lossless_cells(TREE):
        found.append((scheme, name, "node"))
        if verifier(name).tolerance is not None and selects(scheme_family(scheme)(TREE[0])):
            found.append((scheme, name, "path"))
    return found


def measure_overhead(pair, scorer, drafter, watch, prompt, tokens, repeat, chosen=None):
    """A row for each of the chosen rules, all by default."""
    device = pair.target.device
    for scheme, name, tree_rule in rules() if chosen is None else chosen:
        rounds = []  # of each: time and time inside the models, on both clocks
        kinds = np.zeros(len(KINDS))
        count = 0
        for seed in range(repeat + 1):
            marks = [watch.mark(device)]
            metrics = generate(
                scorer, drafter, [prompt], TREE, scheme, name, tree_rule, sampling=SAMPLING,
                max_new_tokens=tokens if seed else 4,  # the first run compiles
                seeds=seed, eos_token_ids=(), stream=lambda _: marks.append(watch.mark(device)),  # noqa: B023
            ).metrics  # fmt: skip
            if seed:
                rounds += [after - before for before, after in itertools.pairwise(marks[1:])]
                kinds += [getattr(metrics.times, kind) for kind in KINDS]
                count += len(metrics.rounds)
        whole, inside = np.median(rounds, axis=0)
        own = np.median([x[0] - x[1] for x in rounds], axis=0)
        yield {
            "scheme": scheme,
            "verifier": name,
            "tree_rule": tree_rule,
            "rounds": len(rounds),
            "milliseconds": 1e3 * own[0],
            "share": own[0] / whole[0],
            "processor_milliseconds": 1e3 * own[1],
            "processor_share": own[1] / whole[1],
            "models_processor_milliseconds": 1e3 * inside[1],
            "milliseconds_by_kind": dict(zip(KINDS, (1e3 * kinds / count).tolist())),
            "limit": LIMIT_OPTIMAL if name == "optimal" else LIMIT,
        }


@torch.inference_mode()
def one_draft_without_cache(target, draft, prompt, tokens):
    """Greedy drafts and their verification, with every pass over the whole text: the loop that caches nothing."""

    def top(model, text, last):
        ids = torch.tensor([text], device=model.device)
        return model(input_ids=ids, use_cache=False, logits_to_keep=last).logits[0].argmax(-1).tolist()

    text, end = list(prompt), len(prompt) + tokens
    while len(text) < end:
        drafts: list[int] = []
        for _ in range(min(GAMMA, end - len(text) - 1)):
            drafts += top(draft, text + drafts, 1)
        chosen = top(target, text + drafts, len(drafts) + 1)
        accepted = next((i for i, pair in enumerate(zip(drafts, chosen)) if pair[0] != pair[1]), len(drafts))
        text += chosen[: accepted + 1]
    return text[len(prompt) :]


def measure_speed(pair, scorer, drafter, watch, prompt, tokens, repeat):
    target, draft = pair.target.model, pair.draft.model
    ids = torch.tensor([prompt], device=pair.target.device)
    options = {"do_sample": False, "max_new_tokens": tokens, "min_new_tokens": tokens, "repetition_penalty": 1.0}
    draft.generation_config.num_assistant_tokens = GAMMA
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0
    transformers.logging.set_verbosity_error()  # it warns of how it calls itself

    def ours(tree, with_drafts=True, trim=True):
        return generate(
            scorer, drafter if with_drafts else None, [prompt], tree, "with_replacement", "rrs",
            sampling=GREEDY, max_new_tokens=tokens, seeds=0, eos_token_ids=(), trim=trim,
        ).tokens[0]  # fmt: skip

    def theirs(**more):
        return target.generate(ids, **options, **more)[0, len(prompt) :].tolist()

    drafted = f"one draft, gamma {GAMMA}"
    runs = {
        drafted: lambda: ours(f"chain:{GAMMA}"),
        f"{drafted}, whole last round": lambda: ours(f"chain:{GAMMA}", trim=False),
        "transformers, assisted": lambda: theirs(assistant_model=draft),
        "plain": lambda: ours("none", with_drafts=False),
        "transformers, plain": theirs,
        DRAFT_NO_CACHE: lambda: one_draft_without_cache(target, draft, prompt, tokens),
        NO_CACHE: lambda: theirs(use_cache=False),
    }
    spent: dict[str, list[tuple[float, float, float]]] = {name: [] for name in runs}
    texts = {}
    for turn in range(repeat + 1):
        for name, run in runs.items():
            if name in (NO_CACHE, DRAFT_NO_CACHE) and turn != 1:  # so slow that once is enough
                continue
            before = watch.mark(target.device)
            texts[name] = run()
            (wall, processor), (_, inside) = watch.mark(target.device) - before
            if turn:
                spent[name].append((wall, processor, processor - inside))
    rows = []
    for name, seconds in spent.items():
        ratios = [
            statistics.median(mine[clock_] / of_turn[clock_] for mine, of_turn in zip(seconds, spent[drafted]))
            for clock_ in (0, 1)
        ]
        rows.append(
            {
                "run": name,
                "tokens": tokens,
                "turns": len(seconds),
                "tokens_per_second": tokens / statistics.median(s[0] for s in seconds),
                "our_draft_is_faster": ratios[0],
                "in_processor_time": ratios[1],
                "own_processor_milliseconds": 1e3 * statistics.median(s[2] for s in seconds) / tokens,
                "same_text": texts[name] == texts[drafted],
            }
        )
    return rows


def setup(
    target: str = "smollm2-135m", draft: str = "smollm2-135m-skip4", device: str = "cpu"
) -> tuple[Any, Any, Any, Any, Any]:
    """What both measurements begin with: the pair, a scorer, a drafter, a stopwatch, a prompt."""
    pair = load_pair(target, draft, device=device)
    scorer, drafter = as_scorer(pair.target), ModelDrafter(as_scorer(pair.draft))
    watch = Stopwatch(pair.target.model, pair.draft.model)
    return pair, scorer, drafter, watch, pair.target.encode(PROMPT, chat=True)


def main():
    parser = arguments(__doc__, target="smollm2-135m", draft="smollm2-135m-skip4", tokens=32, repeat=3, device="cpu")
    parser.add_argument("--threads", type=int, help="of torch; by default what torch takes")
    parser.add_argument("--only", metavar="WORD", default="", help="rules with this in scheme-verifier-rule")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    run = (*setup(options.target, options.draft, options.device), options.tokens, options.repeat)
    print(f"{options.target} / {options.draft} on {options.device}, {torch.get_num_threads()} threads")
    speed = measure_speed(*run)
    print_table(
        "speed", speed, "run tokens_per_second our_draft_is_faster in_processor_time own_processor_milliseconds"
    )
    overhead = list(measure_overhead(*run, [rule for rule in rules() if options.only in "-".join(rule)]))
    columns = "scheme verifier tree_rule milliseconds share processor_milliseconds processor_share limit"
    print_table("beside the models, of a round", overhead, columns)
    about = {"threads": torch.get_num_threads(), "overhead": overhead, "speed": speed}
    write_record(options.json, {**vars(options), **about})


if __name__ == "__main__":
    main()
