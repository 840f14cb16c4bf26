"""`labelsieve reproduce TABLE`: a table or the figures of the paper, from cells to files; or a plan of it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from labelsieve.cli.picture_options import Settings


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="table1, table2, table3, hyper, ablation, prototypes, small (Fashion-MNIST, a CPU) or figures.",
        ),
    ],
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN]...", help="For figures and prototypes: run or sweep folders to read.")
    ] = None,
    cells: Annotated[
        list[str] | None,
        typer.Option(
            help='Only these cells: cifar100-sym90, gmm-agn, "webvision cpc-awr", cifar10*; separate several with commas.'
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs per cell; default 3, with --budget 1.")] = None,
    out: Annotated[Path, typer.Option(help="The sweep folder: runs, tables and figures.")] = Path("runs/reproduce"),
    data: Annotated[
        list[str] | None, typer.Option(metavar="NAME:PATH", help="Where a data set is: cifar10:PATH; repeatable.")
    ] = None,
    pretrained: Annotated[Path | None, typer.Option(help="ImageNet weights of ResNet-50, for Clothing1M.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Shorter runs than the paper's; the tables say so.")] = None,
    limit: Annotated[int | None, typer.Option(min=2, help="Train on a fixed subset of this size; the tables say so.")] = None,
    settings: Settings = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show commands, data and time; run nothing.")] = False,
    budget: Annotated[
        str | None, typer.Option(help="Plan for this much time (25m): which cells fit, at which length, by measured speed.")
    ] = None,
    speed: Annotated[
        list[Path] | None,
        typer.Option(help="A file that `labelsieve bench --json` wrote, on any machine: the speed to plan with; repeatable."),
    ] = None,
    time_limit: Annotated[
        str | None,
        typer.Option(help="Stop cleanly within this time: 9m, 1h30m. Run the same command again to continue."),
    ] = None,
    any_version: Annotated[
        bool,
        typer.Option(
            "--any-version", help="Go on with a sweep that another version of labelsieve started; both end up in one table."
        ),
    ] = False,
) -> None:
    """Run or plan the paper's experiments. To continue after a stop, run the same command again."""
    from labelsieve.cli import planning, sweeping
    from labelsieve.errors import UsageError, suggest
    from labelsieve.reproduce.paper import TABLES

    of_tables: dict[str, object] = {
        "--cells": cells,
        "--seeds": seeds,
        "--data": data,
        "--pretrained": pretrained,
        "--epochs": epochs,
        "--limit": limit,
        "--set": settings,
        "--device": device,
        "--dry-run": dry_run,
        "--budget": budget,
        "--speed": speed,
        "--time-limit": time_limit,
        "--any-version": any_version,
    }
    given = [name for name, value in of_tables.items() if value]
    if given and (what == "figures" or (runs and what == "prototypes")):
        raise UsageError(f"{what} of runs that are there: {given[0]} is for tables that are to be run; leave it out")
    if speed and not budget and not dry_run:
        raise UsageError("--speed is what --budget and --dry-run plan with; give one of them, or leave it out")
    if what == "figures":
        from labelsieve.cli.sweeping import draw

        draw([Path(run) for run in runs or [out]], out if runs and out != Path("runs/reproduce") else None)
        return
    if what not in TABLES:
        known = [*TABLES, "figures"]
        raise UsageError(f'table "{what}" is not known{suggest(what, known)}; there are: {", ".join(known)}')
    if runs and what != "prototypes":
        raise UsageError(f"{what} takes no run folders; figures and prototypes do")
    if runs:
        sweeping.say_prototypes(runs)
        return
    asked = planning.Asked(
        table=TABLES[what](),
        cells=tuple(cells or ()),
        seeds=seeds,
        out=out,
        data=tuple(data or ()),
        pretrained=pretrained,
        epochs=epochs,
        limit=limit,
        sets=tuple(settings or ()),
        device=device,
        budget=budget,
        speed=tuple(speed or ()),
        time_limit=time_limit,
        any_version=any_version,
        dry_run=dry_run,
    )
    if dry_run:
        planning.say_plan(asked)
        return
    sys.exit(sweeping.carry_out(asked))
