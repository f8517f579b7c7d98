"""``mdsd compare``: every scheme and verifier on a user's own p and q, or on a pair of models."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.progress import track
from rich.table import Table

from mdsd_study.cli.arrays import Numbers, compiled_for, print_correction, read_pairs
from mdsd_study.cli.console import (
    Device,
    DeviceMap,
    DraftTemperature,
    Json,
    Precision,
    Temperature,
    console,
    errors,
    print_json,
    reported,
)

if TYPE_CHECKING:
    from mdsd_study.analysis.compare_settings import Contexts, Setting

_OF_PAIR = "Models"


def compare(
    file: Annotated[
        Path | None,
        typer.Argument(help="A .json or .npz file with 'p' and 'q': one row of probabilities each, or one a context."),
    ] = None,
    n: Numbers = [2, 4],  # noqa: B006
    target: Annotated[
        str | None,
        typer.Option(help="Instead of a file: the target model, by name, folder or hub id.", rich_help_panel=_OF_PAIR),
    ] = None,
    draft: Annotated[
        str | None, typer.Option(help="The draft model, or 'skip:17,14'.", rich_help_panel=_OF_PAIR)
    ] = None,
    temperature: Temperature = 0.7,
    draft_temperature: DraftTemperature = None,
    prompt_set: Annotated[
        str, typer.Option("--set", help="Prompt set, or a .jsonl file of your own.", rich_help_panel=_OF_PAIR)
    ] = "mt_bench",
    prompts: Annotated[int, typer.Option(min=1, help="How many prompts.", rich_help_panel=_OF_PAIR)] = 12,
    tokens: Annotated[
        int, typer.Option("--max-new-tokens", "-m", min=1, help="Length of a text.", rich_help_panel=_OF_PAIR)
    ] = 32,
    stride: Annotated[
        int, typer.Option(min=1, help="Positions between the beginnings of two rounds.", rich_help_panel=_OF_PAIR)
    ] = 8,
    depth: Annotated[
        int, typer.Option(min=1, help="Levels of the draft tree, n drafts at every node.", rich_help_panel=_OF_PAIR)
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of the texts.", rich_help_panel=_OF_PAIR)] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw the comparison too: a .png, .svg or .pdf file.")] = None,
    device: Device = "cpu",
    device_map: DeviceMap = None,
    dtype: Precision = None,
    as_json: Json = False,
) -> None:
    """Which setting to use: acceptance, distance from the optimum, tokens a round and cost of every one.

    On p and q of your own (a file), or on a pair of models (--target and --draft), whose passes are timed as well.
    Acceptances are computed at each context, not sampled.
    """
    with reported():
        if (file is None) == (target is None) or (target is None) != (draft is None):
            raise ValueError("give a file with p and q, or --target and --draft")
        if plot is not None and plot.suffix not in (".png", ".svg", ".pdf"):
            raise ValueError(f"--plot must end in .png, .svg or .pdf, got {plot.name!r}")
        correction, passes, compiled = None, None, True
        if file is not None:
            if depth > 1:
                raise ValueError("--depth needs --target and --draft: rows of a file do not follow each other")
            p, q, correction = read_pairs(file)
            compiled = compiled_for(p, n)
        from mdsd_study.analysis.compare_settings import Contexts, best_setting, compare_settings

        if target is None or draft is None:
            contexts = Contexts.of_rows(p, q)
        else:
            from mdsd_core.distributions import SamplingParams
            from mdsd_core.models import load_pair
            from mdsd_core.models.prompts import load_prompts
            from mdsd_study.analysis.compare_models import contexts_of_pair, measure_passes

            pair = load_pair(target, draft, device=device, device_map=device_map, dtype=dtype)
            texts, sampling = load_prompts(prompt_set, prompts), SamplingParams(temperature)
            of_draft = None if draft_temperature is None else SamplingParams(draft_temperature)
            contexts = contexts_of_pair(
                pair, texts, sampling, of_draft, tokens=tokens, stride=stride, depth=depth, seed=seed
            )
            before = [token % pair.vocab_size for token in range(1, 65)]  # passes take as long whatever the tokens
            passes = measure_passes(pair, before, n, depth)
        bar = partial(track, description="settings", console=errors, transient=True)
        settings = compare_settings(contexts, n, passes, progress=bar)
        if plot is not None:
            from mdsd_study.analysis.compare_plot import draw_settings

            draw_settings(settings).savefig(plot)
        if as_json:
            print_json(
                {
                    "contexts": len(contexts.pairs),
                    "texts": len(set(contexts.prompts)),
                    "vocabulary": int(contexts.pairs[0][0].size),
                    "enough": not _too_few(settings),
                    "depth": depth,
                    "compiled": compiled,
                    **({} if correction is None else {"correction": correction}),
                    "rows": [_row(setting) for setting in settings],
                    "best": _row(best_setting(settings)),
                }
            )
            return
        _print(contexts, settings, best_setting(settings), depth)
        if not compiled:
            console.print("So few numbers were computed without compiled kernels: the times are those of plain Python.")
        if correction is not None:
            print_correction(correction)


def _row(setting: "Setting") -> dict[str, Any]:
    row = {key: value for key, value in vars(setting).items() if value is not None and key != "acceptance"}
    a = setting.acceptance
    interval = {"low": a.low, "high": a.high} if _has_interval(setting) else {}
    return {**row, "acceptance": a.mean, **interval, "gap": setting.optimum - a.mean}


def _has_interval(setting: "Setting") -> bool:
    return setting.acceptance.prompts > 1 or not setting.exact


def _too_few(settings: "Sequence[Setting]") -> bool:
    """Whether there are intervals over texts, and they rest on too few."""
    return any(s.acceptance.prompts > 1 and not s.acceptance.enough for s in settings)


#: In a window narrower than this, a table with the speeds of models leaves out what `_WIDE` names.
_WINDOW = 112
_WIDE = ("interval", "gap", "verify,\nms", "nodes")


def _print(contexts: "Contexts", settings: "Sequence[Setting]", best: "Setting", depth: int) -> None:
    timed = best.tokens_per_second is not None
    columns: dict[str, Callable[[Setting], str]] = {
        "n": lambda s: str(s.n),
        "scheme": lambda s: s.scheme,
        "verifier": lambda s: s.verifier,
        "accept-\nance": lambda s: f"{s.acceptance.mean:.4f}{'' if s.exact else ' ±'}",
        "interval": lambda s: f"{s.acceptance.low:.3f}-{s.acceptance.high:.3f}" if _has_interval(s) else "",
        "gap": lambda s: f"{max(s.optimum - s.acceptance.mean, 0.0):.4f}",
        "tokens/\nround": lambda s: f"{s.tokens_per_round:.3f}",
        "verify,\nms": lambda s: f"{s.verify_ms:.2f}",
    }
    if timed:
        columns |= {
            "nodes": lambda s: str(s.nodes),
            "round,\nms": lambda s: f"{s.round_ms:.0f}",
            "tokens\n/s": lambda s: f"{s.tokens_per_second:.1f}",
            "x\nplain": lambda s: f"{s.speedup:.2f}",
        }
    narrow = timed and console.width < _WINDOW
    if narrow or not any(map(_has_interval, settings)):
        columns = {name: cell for name, cell in columns.items() if name not in (_WIDE if narrow else ("interval",))}
    title = (
        f"{len(contexts.pairs)} context(s) of {len(set(contexts.prompts))} text(s), V = {contexts.pairs[0][0].size:,}"
    )
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if name in ("n", "scheme", "verifier") else "right", overflow="fold")
    for s in settings:
        table.add_row(*(cell(s) for cell in columns.values()), style="bold green" if s is best else None)
    console.print(table)
    if narrow:
        left_out = ", ".join(name.replace("\n", " ") for name in _WIDE)
        console.print(f"Also in a window of {_WINDOW} columns, and with --json: {left_out}.")
    if _too_few(settings):
        from mdsd_study.statistics import ENOUGH_PROMPTS

        texts = max(s.acceptance.prompts for s in settings)
        console.print(f"{texts} text(s): too few for the intervals to be relied on (at least {ENOUGH_PROMPTS}).")
    if not all(s.exact for s in settings):
        console.print("±: some contexts have a bracket or an interval; the interval takes it in")
    if timed:
        console.print(
            f"Most tokens a second: n = {best.n}, {best.scheme}, {best.verifier}, {best.speedup:.2f} times plain "
            f"decoding (estimated from the parts of a round; trees of {depth} level(s), n drafts at every node)."
        )
        if best.speedup is not None and best.speedup < 1:
            console.print("Drafts do not pay on this machine with these models.")
    else:
        console.print(f"Most tokens a round: n = {best.n}, {best.scheme}, {best.verifier}.")
