"""What the commands share: output, errors with exit codes, the options that describe a run."""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

#: Exit codes.
BAD_ARGUMENTS, MISSING, INTERRUPTED = 2, 3, 130

# What is printed is taken as it stands: square brackets in names, prompts and errors are no markup, `:smile:` no emoji.
# Styles are given by `rich.text.Text` and by arguments called `style`.
console = Console(highlight=False, markup=False, emoji=False)
errors = Console(stderr=True, highlight=False, markup=False, emoji=False)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Target = Annotated[str, typer.Option(help="Target model: a name of `mdsd models list`, a folder, or a hub id.")]
Draft = Annotated[
    str,
    typer.Option(
        help="Where drafts come from: a model (as for --target), 'skip:17,14' (the target without these layers), "
        "'ngram' (a trigram model of the packaged prompts), 'ngram:FILE' (one of a text file or of kept counts), "
        "'lookup' (the prompt itself), or 'none' (plain decoding)."
    ),
]
Tree = Annotated[str, typer.Option(help="Draft tree: branching like 4,2,2; chain:4; eagle; none.")]
SchemeName = Annotated[
    str,
    typer.Option(
        help="Law of the drafts at a node: with_replacement, without_replacement, distinct, greedy, top1_sampled, "
        "spechub, deterministic, top2_sampled (2 always drafted, the others sampled), top2_replacement."
    ),
]
VerifierName = Annotated[
    str, typer.Option(help="Verifier, such as rrs, rrs_without, kseq, or optimal (for every scheme).")
]
RuleName = Annotated[str, typer.Option("--tree-rule", help="node, or path (with the verifier 'optimal').")]
Temperature = Annotated[float, typer.Option("--temperature", "-t", min=0.0, help="0 is greedy.")]
DraftTemperature = Annotated[
    float | None, typer.Option("--draft-temperature", min=0.0, help="By default that of the target.")
]
Device = Annotated[str, typer.Option(help="Where the models go, such as cuda.")]
DeviceMap = Annotated[str | None, typer.Option(help="Spread the models over several devices: auto.")]
Precision = Annotated[
    str | None,
    typer.Option(help="Precision of the models, such as bfloat16; by default float32 on a CPU, elsewhere their own."),
]


def print_json(value: Any) -> None:
    """One JSON object on standard output, without colours or wrapping."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


@contextmanager
def reported() -> Iterator[None]:
    """Turn errors a user can do something about into one line and an exit code; let bugs show their trace."""
    from mdsd_core.assets import AssetMissing, ModelMissing
    from mdsd_core.extras import needed_for

    def show(message: Any, category: Any, *_rest: Any, **_options: Any) -> None:
        errors.print(Text.assemble(("warning:", "yellow"), f" {message}"))

    try:
        with needed_for("this command"), warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = show
            yield
    except (AssetMissing, ModelMissing, ImportError) as error:
        fail(error, MISSING)
    except KeyError as error:  # a name that is not known: its message says which there are
        fail(error.args[0] if error.args else error, BAD_ARGUMENTS)
    except (ValueError, TypeError, OSError) as error:
        fail(error, BAD_ARGUMENTS)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def fail(error: Any, code: int) -> NoReturn:
    """Print an error and leave with an exit code."""
    errors.print(Text.assemble(("error:", "red"), f" {error}"), soft_wrap=True)
    raise typer.Exit(code) from None
