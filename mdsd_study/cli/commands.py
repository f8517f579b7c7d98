"""All commands in one app."""

import typer

from mdsd_study.cli.arrays import bound
from mdsd_study.cli.bench import bench
from mdsd_study.cli.compare import compare
from mdsd_study.cli.generate import generate
from mdsd_study.cli.measure import measure
from mdsd_study.cli.models import models

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Multi-draft speculative decoding: optimal acceptance rates, exact verifiers, a decoding loop.",
)
app.command()(generate)
app.command()(bound)
app.command()(compare)
app.command()(measure)
app.command()(bench)
app.add_typer(models, name="models")
