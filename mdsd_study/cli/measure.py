"""``mdsd measure``: sweeps over pairs, prompts, temperatures, numbers of drafts, schemes and verifiers."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from mdsd_study.cli.console import Json, console, fail, print_json, reported

#: Exit code: some prompts could not be measured; all others are finished and kept.
INCOMPLETE = 1

_MANY = "may be given several times"


def measure(
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the results; the same one resumes a run.")
    ] = None,
    pair: Annotated[
        list[str] | None, typer.Option(help=f"A pair by name, see --list; {_MANY}. Default: smollm2-135m/skip4.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Instead of --pair: the target.")] = None,
    draft: Annotated[list[str] | None, typer.Option(help=f"With --target: the draft, or 'ngram'; {_MANY}.")] = None,
    prompt_set: Annotated[
        list[str] | None, typer.Option("--set", help=f"Prompt set, or a .jsonl file; {_MANY}. Default: mt_bench.")
    ] = None,
    temperature: Annotated[list[float] | None, typer.Option("--temperature", "-t", help=f"{_MANY}.")] = None,
    n: Annotated[list[int] | None, typer.Option("--n", "-n", min=1, help=f"Number of drafts; {_MANY}.")] = None,
    rule: Annotated[list[str] | None, typer.Option(help=f"scheme:verifier, such as greedy:greedy; {_MANY}.")] = None,
    draft_temperature: Annotated[list[float] | None, typer.Option(help=f"By default the target's; {_MANY}.")] = None,
    text_temperature: Annotated[
        float | None, typer.Option(help="Measure all temperatures on texts drawn at this one (fixed texts).")
    ] = None,
    top_k: Annotated[int | None, typer.Option(min=1)] = None,
    top_p: Annotated[float, typer.Option(min=0.0, max=1.0)] = 1.0,
    min_p: Annotated[float, typer.Option(min=0.0, max=1.0)] = 0.0,
    prompts: Annotated[int, typer.Option(min=1, help="Prompts of each set, evenly spaced over it.")] = 16,
    longest_prompt: Annotated[int | None, typer.Option(min=1, help="Leave out longer prompts (characters).")] = None,
    max_new_tokens: Annotated[int, typer.Option("--max-new-tokens", "-m", min=1)] = 128,
    stride: Annotated[int, typer.Option(min=1, help="Measure every 2nd, 3rd, ... position; 1: all.")] = 1,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    config: Annotated[Path | None, typer.Option(help="A TOML file with pairs and prompt sets of your own.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Worker processes; default one a core; 0: this process.")
    ] = None,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://HOST:PORT.")] = None,
    device: Annotated[str, typer.Option(help="Where the workers put the models, such as cuda.")] = "cpu",
    device_map: Annotated[str | None, typer.Option(help="Spread models over devices, such as auto.")] = None,
    dtype: Annotated[str | None, typer.Option(help="Precision of the models, such as bfloat16.")] = None,
    list_pairs: Annotated[bool, typer.Option("--list", help="List the pairs by name, and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Measure optimal rates and verifiers on texts; resumable, on this machine or on a Dask cluster.

    Writes table.parquet (one row a rule and context) and summary.parquet (means with intervals) to --out. Exit code 1:
    some prompts could not be measured, all others are kept.
    """
    with reported():
        from mdsd_study.measure import Placement, SweepIncomplete, SweepSettings
        from mdsd_study.measure import measure as run
        from mdsd_study.measure.pairs import Pair, find_pair, packaged_pairs, read_config
        from mdsd_study.measure.settings import DEFAULT_RULES

        own_pairs, own_sets = read_config(config) if config is not None else ({}, {})
        if list_pairs:
            _list({**packaged_pairs(), **own_pairs}, as_json)
            return
        if out is None:
            raise ValueError("--out FOLDER is needed: where the results go")
        if (target is None) != (draft is None) or (target is not None and pair is not None):
            raise ValueError("give --pair, or --target and --draft together")
        if target is not None and draft is not None:
            pairs = [Pair(f"{target}/{name}", target, name) for name in draft]
        else:
            pairs = [find_pair(name, own_pairs) for name in pair or ["smollm2-135m/skip4"]]
        settings = SweepSettings(
            pairs=tuple(pairs),
            prompt_sets=tuple(prompt_set or ["mt_bench"]),
            temperatures=tuple(temperature or [0.7]),
            counts=tuple(n or [3]),
            rules=tuple(_rule(text) for text in rule) if rule else DEFAULT_RULES,
            draft_temperatures=tuple(draft_temperature or ()),
            text_temperature=text_temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            prompts=prompts,
            longest_prompt=longest_prompt,
            max_new_tokens=max_new_tokens,
            stride=stride,
            seed=seed,
            dtype=dtype,
            own_sets=own_sets,
        )
        try:
            sweep = run(
                settings,
                out,
                scheduler=scheduler,
                workers=workers,
                placement=Placement(device, device_map),
                progress=not as_json and sys.stderr.isatty(),
            )
        except SweepIncomplete as error:
            fail(error, INCOMPLETE)
        _report(sweep, as_json)


def _rule(text: str) -> tuple[str, str]:
    scheme, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"--rule must be scheme:verifier, such as without_replacement:rrs_without, got {text!r}")
    return scheme, name


def _list(pairs: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({"pairs": [vars(pair) for pair in pairs.values()]})
        return
    table = Table("pair", "target", "draft", "")
    for pair in pairs.values():
        table.add_row(pair.name, pair.target, pair.draft, pair.about)
    console.print(table)


def _report(sweep: Any, as_json: bool) -> None:
    frame = sweep.summary()
    if as_json:
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        print_json({"folder": str(sweep.folder), "computed": sweep.computed, "reused": sweep.reused, "summary": rows})
        return
    for (name, prompt_set, temperature, draft_temperature), part in frame.groupby(
        ["pair", "prompt_set", "temperature", "draft_temperature"], sort=False, observed=True
    ):
        first = part.iloc[0]
        hot = "" if draft_temperature == temperature else f", draft T={draft_temperature:g}"
        fixed = "" if first["text"] == "same" else f", texts drawn at T={first['text_temperature']:g}"
        title = f"{name}, {prompt_set}, T={temperature:g}{hot}{fixed}"
        few = "" if first["enough"] else "; too few prompts for intervals to rely on"
        caption = f"{first['prompts']} prompts, {first['contexts']} contexts{few}"
        table = Table("scheme", "n", "verifier", "acceptance (95 %)", "gap", title=title, caption=caption)
        for row in part.itertuples():
            interval = f"{row.acceptance:.4f} ({row.acceptance_low:.4f} to {row.acceptance_high:.4f})"
            gap = "" if row.verifier == "bound" else f"{max(row.gap, 0.0):.4f}"
            table.add_row(str(row.scheme), str(row.n), str(row.verifier), interval, gap)
        console.print(table)
    console.print(f"{sweep.computed} prompts measured, {sweep.reused} finished before; all in {sweep.folder}")
