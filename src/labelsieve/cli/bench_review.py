"""`labelsieve bench-review DATA --noise SPEC`: rounds of review against one long one, with a scripted reviewer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from labelsieve.cli.figures_file import write_json
from labelsieve.cli.picture_options import Settings
from labelsieve.terminal.new_file import check_new

HEADS = {"left_suggested": "left, suggestions followed", "accuracy": "accuracy, %"}


def bench_review(
    data: Annotated[str, typer.Argument(help="As for `labelsieve train`.")],
    noise: Annotated[list[str] | None, typer.Option(help="Wrong labels to make on purpose, e.g. sym:0.2; repeatable.")] = None,
    plan: Annotated[
        list[str] | None,
        typer.Option(help="Decisions round by round, e.g. 200,200; repeatable. Default: 200,200 and 400."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0 on; each makes its own noise.")] = 3,
    limit: Annotated[int | None, typer.Option(help="Use a fixed subset of this size.")] = None,
    network: Annotated[str | None, typer.Option(help="Default: the data's own.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Of each training; default: the data's own.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None,
    settings: Settings = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file as well.")] = None,
) -> None:
    """Review most suspicious labels first, answered by the truth: does training again between decisions pay?"""
    import tempfile

    from labelsieve.benchmark.review_study import compare
    from labelsieve.runs.resolve import resolve
    from labelsieve.terminal.console import console

    check_new("--json", json_file)
    plans = [decisions_of(text) for text in plan or ["200,200", "400"]]
    rows: list[dict[str, Any]] = []
    for spec in noise or ["none"]:
        for seed in range(seeds):
            told = {"data.noise": spec, "seed": seed, "data.limit": limit, "network": network, "device": device}
            config = resolve(data, options=told | {"training.epochs": epochs}, settings=settings or ())
            console.print(f"{data}, noise {spec}")
            with tempfile.TemporaryDirectory() as place:
                for found in compare(config, plans, Path(place), console.print):
                    rows.append({"noise": spec} | found)
                    # At once: what was measured is not lost with what comes after it.
                    write_json(json_file, {"data": data, "limit": limit, "epochs": config.training.epochs, "rows": rows})
    say(rows)


def decisions_of(text: str) -> tuple[int, ...]:
    from labelsieve.errors import UsageError

    try:
        found = tuple(int(word) for word in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise UsageError(f'--plan "{text}" is not a list of numbers of decisions; write 200,200 or 400')
    return found


def say(rows: Sequence[dict[str, Any]]) -> None:
    """Means over seeds, a line for each noise and plan."""
    from rich.table import Table

    from labelsieve.terminal.console import console

    table = Table(title="means over seeds", title_justify="left")
    names = ("wrong", "found", "left", "left_suggested", "accuracy")
    for head in ("noise", "plan", *(HEADS.get(name, name) for name in names)):
        table.add_column(head, justify="left" if head in ("noise", "plan") else "right")
    for noise, plan in dict.fromkeys((row["noise"], row["plan"]) for row in rows):
        own = [row for row in rows if (row["noise"], row["plan"]) == (noise, plan)]
        table.add_row(noise, plan, *(mean([row[name] for row in own]) for name in names))
    console.print(table)


def mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):.1f}" if known else ""
