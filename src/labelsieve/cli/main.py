"""The door: `labelsieve VERB ...`. Thin; a verb imports what is heavy only when it runs."""

import os
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from labelsieve.cli import (
    bench,
    bench_cleanlab,
    compare,
    demo,
    embed,
    inspect,
    listings,
    outputs,
    predict,
    rank,
    report,
    reproduce,
    review,
    train,
)
from labelsieve.terminal.console import console, ended_in_a_line, interruptible
from labelsieve.version import __version__


class Verbs(TyperGroup):
    """Every verb says that it was interrupted."""

    def invoke(self, context: Any) -> Any:
        with interruptible():
            return super().invoke(context)


app = typer.Typer(
    cls=Verbs,
    name="labelsieve",
    help="Find the wrong labels in your data, and train a classifier that doesn't learn them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
DEBUG = False


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"labelsieve {__version__}")
        raise typer.Exit


@app.callback()
def door(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")] = False,
) -> None:
    global DEBUG
    DEBUG = debug


app.command("demo")(demo.demo)
app.command("inspect")(inspect.inspect)
app.command("embed")(embed.embed)
app.command("rank")(rank.rank)
app.command("train")(train.train)
app.command("resume")(train.resume)
app.command("predict")(predict.predict)
app.command("evaluate")(predict.evaluate)
app.command("report")(report.report)
app.command("review")(review.review)
app.command("apply", cls=outputs.WithBareDecisions)(outputs.apply)
app.command("decisions")(outputs.decisions)
app.command("export")(outputs.export)
app.command("compare")(compare.compare)
app.command("reproduce")(reproduce.reproduce)
app.command("methods")(listings.methods)
app.command("presets")(listings.presets)
app.command("doctor")(listings.doctor)
app.command("bench")(bench.bench)
app.command("bench-cleanlab")(bench_cleanlab.bench_cleanlab)


def main() -> None:
    """Run the command line; what the user can fix ends in one line and exit code 1 or 2, without a traceback."""
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # or the processes we start would import modules from the working folder
    if "RANK" in os.environ:  # torch would tell of each connection that ends when another process does
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
        console.quiet = os.environ["RANK"] != "0"  # of several processes only one speaks
    with ended_in_a_line(lambda: DEBUG):
        app()


if __name__ == "__main__":
    main()
