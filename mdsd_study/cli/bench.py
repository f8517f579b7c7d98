"""``mdsd bench``: plain decoding, one draft and trees on the same prompt, timed."""

import statistics
import time
from typing import Annotated

import typer
from rich.table import Table

from mdsd_study.cli.console import (
    Device,
    DeviceMap,
    Draft,
    Json,
    Precision,
    SchemeName,
    Target,
    Temperature,
    VerifierName,
    console,
    print_json,
    reported,
)


def bench(
    target: Target = "smollm2-135m",
    draft: Draft = "smollm2-135m-skip4",
    tree: Annotated[list[str], typer.Option(help="Trees to try; may be given several times.")] = [  # noqa: B006
        "chain:2",
        "2,2",
        "4,2,2",
    ],
    scheme: SchemeName = "without_replacement",
    verifier: VerifierName = "rrs_without",
    temperature: Temperature = 0.7,
    prompt: Annotated[str, typer.Option(help="The prompt.")] = "Explain how tides work.",
    max_new_tokens: Annotated[int, typer.Option("--max-new-tokens", "-m", min=1)] = 64,
    repeat: Annotated[int, typer.Option(min=1, help="Runs of each; the median counts.")] = 3,
    device: Device = "cpu",
    device_map: DeviceMap = None,
    dtype: Precision = None,
    as_json: Json = False,
) -> None:
    """Tokens per second with and without drafts. Nothing is hidden: where drafts do not pay, the table says so."""
    with reported():
        from mdsd_core.decoding.generate import generate
        from mdsd_core.distributions import SamplingParams
        from mdsd_study.cli.runs import describe, load_setup, transforms

        setup = load_setup(target, draft, device=device, device_map=device_map, dtype=dtype)
        sampling = SamplingParams(temperature)
        ids = setup.language_model.encode(prompt, chat=True)
        trees = ["none", *tree]

        def run(shape: str, seed: int):  # type: ignore[no-untyped-def]
            started = time.perf_counter()
            result = generate(
                setup.scorer,
                None if shape == "none" else setup.drafter,
                [ids],
                shape,
                scheme,
                verifier,
                sampling=sampling,
                max_new_tokens=max_new_tokens,
                seeds=seed,
                eos_token_ids=(),
            )
            return result.metrics, max_new_tokens / (time.perf_counter() - started)

        for shape in trees:  # compiles kernels, fills caches
            run(shape, 0)
        runs: dict[str, list] = {shape: [] for shape in trees}
        for seed in range(repeat):  # interleaved, so that a noisy minute hits all
            for shape in trees:
                runs[shape].append(run(shape, seed))
        plain = statistics.median(speed for _, speed in runs["none"])
        rows = []
        for shape in trees:
            speed = statistics.median(s for _, s in runs[shape])
            efficiency = statistics.mean(m.block_efficiency for m, _ in runs[shape])
            rows.append(
                {"tree": shape, "tokens_per_second": speed, "speedup": speed / plain, "block_efficiency": efficiency}
            )
        if as_json:
            settings = {"target": target, "draft": draft, "scheme": scheme, "verifier": verifier, "repeat": repeat}
            print_json({"settings": {**settings, **describe(sampling, None)}, "rows": rows})
            return
        table = Table(
            *("tree", "tokens/s", "against plain", "block efficiency"),
            title=f"{target}, drafts by {draft}",
            caption=f"{scheme}, {verifier}; {transforms(sampling)}; {max_new_tokens} new tokens, median of {repeat}",
        )
        for row in rows:
            pays = "" if row["tree"] == "none" else " pays" if row["speedup"] > 1 else " does not pay"
            table.add_row(
                str(row["tree"]),
                f"{row['tokens_per_second']:.2f}",
                f"{row['speedup']:.2f}x{pays}",
                f"{row['block_efficiency']:.3f}",
            )
        console.print(table)
