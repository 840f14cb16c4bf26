"""`labelsieve bench-cleanlab DATA --noise SPEC`: who ranks wrong labels better on the same data and network, at what cost."""

from pathlib import Path
from typing import Annotated, Any

import typer

from labelsieve.cli.bench import write_json
from labelsieve.cli.picture_options import Settings
from labelsieve.terminal.console import check_new


def bench_cleanlab(
    data: Annotated[str, typer.Argument(help="As for `labelsieve train`.")],
    noise: Annotated[list[str] | None, typer.Option(help="Wrong labels to make on purpose, such as sym:0.2; repeatable.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0; each has its own noise.")] = 3,
    fold_epochs: Annotated[int, typer.Option(min=1, help="Epochs of plain training in each of cleanlab's folds.")] = 10,
    folds: Annotated[int, typer.Option(min=2, help="How many folds.")] = 5,
    quick: Annotated[bool, typer.Option("--quick", help="Give labelsieve no more time than the folds took.")] = False,
    limit: Annotated[int | None, typer.Option(help="Use a fixed subset of this size.")] = None,
    network: Annotated[str | None, typer.Option(help="The network for both; default: chosen by the data.")] = None,
    epochs: Annotated[int | None, typer.Option(help="labelsieve's epochs; default: chosen by the data.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None,
    settings: Settings = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file as well.")] = None,
) -> None:
    """Compare with cleanlab: who ranks wrong labels better, in what time and memory?"""
    from labelsieve.benchmark.against_cleanlab import Task, check_some_wrong, compare
    from labelsieve.config.resolve import resolve
    from labelsieve.runs.rows import rows_for
    from labelsieve.terminal.console import console

    check_new("--json", json_file)
    options = {"data.limit": limit, "network": network, "training.epochs": epochs, "device": device}
    planned = [
        (spec, resolve(data, options=options | {"data.noise": spec, "seed": seed}, settings=settings or ()))
        for spec in noise or ["none"]
        for seed in range(seeds)
    ]
    for config in dict(planned).values():
        check_some_wrong(rows_for(config))  # a misspelt noise is told before the others are measured
    rows = []
    for spec, config in planned:
        rows.append({"noise": spec} | compare(Task(config, folds, fold_epochs), quick, console.print))
        # After every seed: what was measured is not lost with what comes after it.
        facts = {"data": data, "limit": limit, "quick": quick, "folds": folds, "fold_epochs": fold_epochs, "rows": rows}
        write_json(json_file, facts)
    say(rows)


def say(rows: list[dict[str, Any]]) -> None:
    """A line for each noise and tool, means over seeds; rows that are lost are named."""
    from rich.table import Table

    from labelsieve.benchmark.against_cleanlab import lost, means
    from labelsieve.terminal.console import console

    title = "means over seeds; best AP: of the best of its scores, which only the true labels tell"
    table = Table(title=title, title_justify="left")
    heads = ("noise", "", "AP", "best AP", "recall", "s", "CPU s", "MiB")
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place < 2 else "right")
    for spec in dict.fromkeys(row["noise"] for row in rows):
        for tool in ("cleanlab", "labelsieve"):
            found = means([row[tool] for row in rows if row["noise"] == spec])
            shares = (f"{found[name]:.4f}" for name in ("average_precision", "best_score", "recall"))
            costs = (f"{found[name]:.1f}" for name in ("seconds", "cpu_seconds", "peak_mib"))
            table.add_row(spec, tool, *shares, *costs)
    console.print(table)
    console.print(lost(rows))
