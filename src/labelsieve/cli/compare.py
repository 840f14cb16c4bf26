"""`labelsieve compare RUN...`: runs side by side, with a paired interval on the difference of their test accuracies."""

import json
from pathlib import Path
from typing import Annotated

import typer


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; the first is what the others are held against.")],
    out: Annotated[Path | None, typer.Option(help="Also write a page with curves: FILE.html.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Final numbers, differences with a paired bootstrap interval, and the settings in which the runs differ."""
    from dataclasses import asdict

    from rich.table import Table

    from labelsieve.cli.console import console
    from labelsieve.cli.report import refuse_other_files
    from labelsieve.reproduce.compare import compare_runs, differing_settings
    from labelsieve.reproduce.compare_page import HEADER, compare_page, row_of
    from labelsieve.runs import atomic

    if out is not None:
        refuse_other_files(out)
    found = compare_runs(runs, seed)
    settings = differing_settings(found)
    if out is not None:
        atomic.write_text(out, compare_page(found))
    if as_json:
        told = [
            {
                "run": str(run.path),
                "epochs": run.record.epochs_done,
                "done": run.done,
                "final": None if run.final is None else asdict(run.final),
                "accuracy": run.accuracy,
                "interval": run.between,
                "auc": run.auc,
                "against_first": None if run.against is None else asdict(run.against),
            }
            for run in found
        ]
        typer.echo(json.dumps({"runs": told, "settings_that_differ": settings}))
        return
    for place, run in enumerate(found, 1):
        console.print(f"{place}: {run.path}")
    for columns in ((0, 1, 2, 3, 4, 5), (0, 6, 7)):  # two narrow tables, for terminals are
        grid = Table(
            title="\ntest accuracy, percent" if 1 in columns else "\ndifference, and ranking of labels", title_justify="left"
        )
        for column in columns:
            grid.add_column(HEADER[column], justify="left" if column == 7 else "right")
        for place, run in enumerate(found, 1):
            row = [str(place), *row_of(run)[1:]]
            grid.add_row(*(row[column] for column in columns))
        console.print(grid)
    console.print("intervals: bootstrap over test pictures (paired against the first run); another seed may move more than that")
    if settings:
        console.print("\nsettings that differ, run by run:")
    for key, values in settings.items():
        console.print(f"  {key}: {' | '.join(values)}")
    if out is not None:
        console.print(f"page: {out}")
