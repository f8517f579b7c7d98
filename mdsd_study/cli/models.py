"""``mdsd models``: which models there are, fetching and checking them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from mdsd_study.cli.console import BAD_ARGUMENTS, Device, DeviceMap, Json, Precision, console, print_json, reported

if TYPE_CHECKING:
    from mdsd_core.models import LanguageModel

models = typer.Typer(no_args_is_help=True, help="List, fetch and check models.")

#: The models that are no layer-skipping draft.
_ABOUT = {
    "smollm2-135m": "SmolLM2-135M-Instruct, from a package",
    "tiny-random": "random weights, to try commands with",
    "tiny-random-draft": "a draft model for it",
}

Name = Annotated[str, typer.Argument(help="A name of `mdsd models list`, a folder, or a hub id.")]


@models.command("list")
def list_models(as_json: Json = False) -> None:
    """The models that work without a network."""
    with reported():
        from mdsd_core.models import SKIPPED_LAYERS, model_names

        rows = [{"name": name, "layers_left_out": list(SKIPPED_LAYERS.get(name, ()))} for name in model_names()]
        if as_json:
            print_json({"models": rows})
            return
        table = Table("name", "what")
        for row in rows:
            left_out = ", ".join(map(str, row["layers_left_out"]))
            name = str(row["name"])
            table.add_row(name, f"the packaged model without layers {left_out}" if left_out else _ABOUT[name])
        console.print(table)


@models.command()
def fetch(name: Name, as_json: Json = False) -> None:
    """Load a model once, so that later loads are quick: converts the packaged one, downloads one of a hub."""
    with reported():
        from mdsd_core.models import load_model

        _report(name, load_model(name), as_json)


@models.command()
def check(
    name: Name, device: Device = "cpu", device_map: DeviceMap = None, dtype: Precision = None, as_json: Json = False
) -> None:
    """Load a model and check its tokenizer and that it scores draft trees exactly."""
    with reported():
        from mdsd_core.decoding.scoring import CachedModel
        from mdsd_core.models import load_model, tokenizer_problems
        from mdsd_core.models.pair import logits_width

        model = load_model(name, device=device, device_map=device_map, dtype=dtype)
        scorer = CachedModel(model.model, model.vocab_size)  # raises if trees are not scored exactly
        problems = [] if model.tokenizer is None else tokenizer_problems(model.tokenizer, logits_width(model.model))
        _report(name, model, as_json, attention_window=scorer.window, problems=problems)
        if problems:
            raise typer.Exit(BAD_ARGUMENTS)


def _report(name: str, model: "LanguageModel", as_json: bool, **more: Any) -> None:
    facts = {
        "name": name,
        "class": type(model.model).__name__,
        "parameters": model.parameters,
        "vocabulary": model.vocab_size,
        "context": model.context_limit,
        "end_of_text": list(model.eos_ids),
        **more,
    }
    if as_json:
        print_json(facts)
        return
    table = Table(show_header=False, box=None)
    for key, value in facts.items():
        table.add_row(key.replace("_", " "), "none" if value in ([], None) else str(value))
    console.print(table)
