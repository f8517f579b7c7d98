"""What the loop costs beside the models, and how fast it is: every rule, and two baselines, in one run.

    python benchmarks/decoding.py [--target NAME] [--draft NAME] [--tokens 48] [--repeat 3] [--device cpu] [--json]

The first table gives the share of a round that is not the models' (scheme, verifier, tree and cache work), for every
verifier on the tree (4, 2, 2). The second gives tokens per second of one draft (a chain) against decoding without a
cache and against transformers' own assisted generation, same models, same number of drafts, runs interleaved.
"""

import argparse
import json
import statistics
import time

import torch

from mdsd_core.decoding.drafters import ModelDrafter
from mdsd_core.decoding.families import FAMILIES, scheme_family
from mdsd_core.decoding.generate import as_scorer, generate
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import load_pair
from mdsd_core.verifiers import verifiers_for

SAMPLING = SamplingParams(temperature=0.7)
GAMMA = 3


def overhead_rows(scorer, drafter, prompt, tokens, repeat):
    rows = []
    for scheme in FAMILIES:
        if scheme == "spechub":
            continue
        names = set(verifiers_for(scheme_family(scheme)(4))) & set(verifiers_for(scheme_family(scheme)(2)))
        for name in sorted(names):
            shares = []
            for seed in range(repeat + 1):  # the first run compiles
                result = generate(
                    scorer, drafter, [prompt], (4, 2, 2), scheme, name,
                    sampling=SAMPLING, max_new_tokens=tokens, seeds=seed, eos_token_ids=(),
                )  # fmt: skip
                times = result.metrics.times
                shares.append((times.scheme + times.verify + times.cache) / times.total)
            rows.append({"scheme": scheme, "verifier": name, "share": statistics.median(shares[1:])})
    return rows


def speed_rows(pair, scorer, drafter, prompt, tokens, repeat):
    target, draft = pair.target.model, pair.draft.model
    ids = torch.tensor([prompt], device=pair.target.device)
    options = {"do_sample": False, "max_new_tokens": tokens, "min_new_tokens": tokens, "repetition_penalty": 1.0}
    greedy = SamplingParams(temperature=0)
    draft.generation_config.num_assistant_tokens = GAMMA
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0

    def ours(tree, with_drafts=True):
        generate(
            scorer, drafter if with_drafts else None, [prompt], tree, "with_replacement", "rrs",
            sampling=greedy, max_new_tokens=tokens, seeds=0, eos_token_ids=(),
        )  # fmt: skip

    runs = {
        "plain": lambda: ours("none", with_drafts=False),
        f"one draft, gamma {GAMMA}": lambda: ours(f"chain:{GAMMA}"),
        "transformers, no cache": lambda: target.generate(ids, use_cache=False, **options),
        "transformers, assisted": lambda: target.generate(ids, assistant_model=draft, **options),
    }
    speeds = {name: [] for name in runs}
    for turn in range(repeat + 1):
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            if turn:
                speeds[name].append(tokens / (time.perf_counter() - started))
    return [{"run": name, "tokens_per_second": statistics.median(values)} for name, values in speeds.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="smollm2-135m")
    parser.add_argument("--draft", default="smollm2-135m-skip4")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    pair = load_pair(args.target, args.draft, device=args.device)
    scorer, drafter = as_scorer(pair.target), ModelDrafter(as_scorer(pair.draft))
    prompt = pair.target.encode("Explain how tides work.", chat=True)
    overhead = overhead_rows(scorer, drafter, prompt, args.tokens, args.repeat)
    speed = speed_rows(pair, scorer, drafter, prompt, args.tokens, args.repeat)
    if args.json:
        print(json.dumps({"overhead": overhead, "speed": speed, "threads": torch.get_num_threads()}))
        return
    print(f"{args.target} / {args.draft} on {args.device}, {torch.get_num_threads()} threads")
    for row in overhead:
        print(f"{row['scheme']:20} {row['verifier']:16} {row['share']:6.1%} of a round")
    for row in speed:
        print(f"{row['run']:24} {row['tokens_per_second']:7.2f} tokens/s")


if __name__ == "__main__":
    main()
