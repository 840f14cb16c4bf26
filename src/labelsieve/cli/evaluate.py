"""`labelsieve evaluate RUN [DATA]`: the accuracy of a run's model on the test pictures of its data, or of others."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from labelsieve.cli.picture_options import Said, reads_data

WORDS = {
    "first": "network 1",
    "second": "network 2",
    "both": "both networks",
    "both_top5": "both networks, among their first five",
    "prototypes_first": "prototypes of network 1",
    "prototypes_second": "prototypes of network 2",
    "prototypes": "both networks' prototypes",
}


@reads_data("image_column", "label_column", "id_column", "root", "encoding")
def evaluate(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    data: Annotated[
        str | None, typer.Argument(help="Labelled pictures in any layout, or a named data set; default: the run's own test set.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    *,
    said: Said,
) -> None:
    """Measure a run's accuracy on labelled pictures. Classes are matched by name.

    DATA is read like the run's own data; a column that is missing is looked for by its usual names.
    """
    from rich.console import Console

    from labelsieve.predict.evaluate import evaluate_model
    from labelsieve.terminal.looking import Looking

    with Looking(Console(stderr=True, soft_wrap=True)).shown() as watch:
        result = evaluate_model(run, data, device, watch.progress, said.of_data("evaluate"))
    if as_json:
        typer.echo(json.dumps(result))
    else:
        say_result(result)


def say_result(result: dict[str, Any]) -> None:
    """What `evaluate_model` gives, in words."""
    from rich.table import Table

    from labelsieve.runs.findings import things_of
    from labelsieve.terminal.console import console

    things = things_of(result["data"])
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in result["accuracy"].items():
        low, high = result["interval"]
        table.add_row(WORDS[name], f"{value:.2f} %", f"({low:.2f} to {high:.2f} %)" if name == "both" else "")
    what = "labelled" if result["split"] == "all" else result["split"]
    console.print(f"accuracy on {result['pictures']:,} {what} {of(result['pictures'], things)} of {result['data']}")
    console.print(table)
    console.print(f"in brackets: the 95 % interval that so many {things} allow")
    for name, found in result["also"].items():
        console.print(f"accuracy on {name}: " + ", ".join(f"{WORDS[key]} {value:.2f} %" for key, value in found.items()))
    if gone := result["also_left_out"]:
        console.print(f"left out of {', '.join(result['also'])}: {gone:,} unreadable {of(gone, 'pictures')}", style="yellow")
    if gone := result["left_out"]:
        console.print(f"left out: {gone:,} {of(gone, 'pictures')} that could not be read", style="yellow")
    for note in result["notes"]:
        console.print(f"note: {note}", style="yellow")
    if result["trained_on"]:
        console.print(f"note: the run was trained on these very {things}, and their labels may be wrong", style="yellow")


def of(count: int, things: str) -> str:
    """`things` as that many of them are called."""
    return things.removesuffix("s") if count == 1 else things
