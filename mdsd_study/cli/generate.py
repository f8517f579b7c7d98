"""``mdsd generate``: text with draft trees, coloured by where each token came from."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from mdsd_study.cli.console import (
    INTERRUPTED,
    Device,
    DeviceMap,
    Draft,
    DraftTemperature,
    Json,
    Precision,
    RuleName,
    SchemeName,
    Target,
    Temperature,
    Tree,
    VerifierName,
    console,
    print_json,
    reported,
)

#: Blue and orange are told apart by everyone, and on light and dark ground.
STYLES = {"draft": "bold dodger_blue2", "bonus": "", "resampled": "dark_orange"}


class Printer:
    """Prints tokens as they are committed; a token that ends inside a character waits for the rest of it."""

    def __init__(self, decode) -> None:  # type: ignore[no-untyped-def]
        self._decode = decode
        self._tokens: list[int] = []
        self._shown = ""

    def __call__(self, event) -> None:  # type: ignore[no-untyped-def]
        """Print the text of an event's tokens."""
        for token, kind in zip(event.tokens, event.kinds, strict=True):
            self._tokens.append(token)
            text = self._decode(self._tokens)
            if not text.endswith("\ufffd") or event.finish_reason:
                console.print(Text(text[len(self._shown) :], style=STYLES[kind]), end="", soft_wrap=True)
                self._shown = text


def generate(
    prompt: Annotated[str, typer.Argument(help="The prompt.")],
    target: Target = "smollm2-135m",
    draft: Draft = "smollm2-135m-skip4",
    tree: Tree = "4,2,2",
    scheme: SchemeName = "without_replacement",
    verifier: VerifierName = "rrs_without",
    tree_rule: RuleName = "node",
    temperature: Temperature = 0.7,
    draft_temperature: DraftTemperature = None,
    top_k: Annotated[int | None, typer.Option(min=1)] = None,
    top_p: Annotated[float, typer.Option(min=0.0, max=1.0)] = 1.0,
    min_p: Annotated[float, typer.Option(min=0.0, max=1.0)] = 0.0,
    max_new_tokens: Annotated[int, typer.Option("--max-new-tokens", "-m", min=1)] = 128,
    seed: Annotated[int | None, typer.Option(min=0, help="By default fresh entropy.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Continue the prompt as it stands: no chat template.")] = False,
    device: Device = "cpu",
    device_map: DeviceMap = None,
    dtype: Precision = None,
    as_json: Json = False,
) -> None:
    """Generate text with the law of the target, several tokens a target pass.

    Blue: accepted drafts. Orange: tokens drawn after a rejection. Plain: bonus tokens after a path accepted to its end.
    """
    with reported():
        from mdsd_core.decoding.generate import generate as run
        from mdsd_core.distributions import SamplingParams
        from mdsd_study.cli.runs import describe, load_setup

        setup = load_setup(target, draft, device=device, device_map=device_map, dtype=dtype)
        sampling = SamplingParams(temperature, top_k, top_p, min_p)
        draft_sampling = None if draft_temperature is None else SamplingParams(draft_temperature, top_k, top_p, min_p)
        decode = setup.language_model.decode
        result = run(
            setup.scorer,
            setup.drafter,
            [setup.language_model.encode(prompt, chat=not raw)],
            tree,
            scheme,
            verifier,
            tree_rule,
            sampling,
            draft_sampling,
            max_new_tokens,
            seed,
            None if as_json else Printer(decode),
            eos_token_ids=setup.language_model.eos_ids,
        )
        reason = result.finish_reasons[0]
        if as_json:
            settings = {"tree": tree, "scheme": scheme, "verifier": verifier, "tree_rule": tree_rule, "seed": seed}
            print_json(
                {
                    "text": decode(result.tokens[0]),
                    "tokens": result.tokens[0],
                    "kinds": result.kinds[0],
                    "logprobs": result.logprobs[0],
                    "finish_reason": reason,
                    "settings": {"target": target, "draft": draft, **settings, **describe(sampling, draft_sampling)},
                    "metrics": result.metrics.summary(),
                }
            )
        else:
            console.print("\n")
            _print_metrics(result.metrics, reason)
        if reason == "interrupted":
            raise typer.Exit(INTERRUPTED)


def _print_metrics(metrics, reason) -> None:  # type: ignore[no-untyped-def]
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    seconds = metrics.times.total
    rows = {
        "finished by": reason,
        "tokens emitted": metrics.emitted,
        "target calls": metrics.target_calls,
        "draft calls": metrics.draft_calls,
        "drafts drawn / accepted": f"{metrics.drawn} / {metrics.accepted}",
        "block efficiency": f"{metrics.block_efficiency:.3f}  (1 + accepted per round)",
        "alpha, per visited node": f"{metrics.alpha_node:.3f}",
        "alpha, accepted / (calls x depth)": f"{metrics.alpha_mcsd:.3f}",
        "accepted by depth": ", ".join(f"{a:.3f}" for a in metrics.accepted_by_depth) or "-",
        "seconds": f"{seconds:.2f}  ({metrics.emitted / seconds:.1f} tokens/s)",
        "time": ", ".join(f"{name} {value / seconds:.0%}" for name, value in vars(metrics.times).items()),
    }
    for name, value in rows.items():
        table.add_row(Text(name, style="dim"), str(value))
    legend = Text("  ").join(Text(kind, style=style) for kind, style in STYLES.items())
    console.print(table, legend, sep="\n")
