"""`labelsieve evaluate RUN [DATA]`: the accuracy of a run's model on the test pictures of its data, or of others."""

import json
from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    data: Annotated[str | None, typer.Argument(help="Data with test pictures; default: the run's own.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure RUN's networks and prototypes on held-out pictures."""
    from rich.table import Table

    from labelsieve.cli.console import console
    from labelsieve.cli.train import absolute
    from labelsieve.runs.evaluate import evaluate_model

    result = evaluate_model(run, absolute(data) if data else None, device)
    if as_json:
        typer.echo(json.dumps(result))
        return
    words = {
        "first": "network 1",
        "second": "network 2",
        "both": "both networks",
        "prototypes_first": "prototypes of network 1",
        "prototypes_second": "prototypes of network 2",
        "prototypes": "both networks' prototypes",
    }
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in result["accuracy"].items():
        table.add_row(words[name], f"{value:.2f} %")
    console.print(f"accuracy on {result['pictures']} test pictures of {result['data']}")
    console.print(table)
