"""`labelsieve compare RUN...`: runs side by side, with a paired interval on the difference of their test accuracies."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelsieve.errors import UsageError

if TYPE_CHECKING:
    from labelsieve.reproduce.compare import Compared, Listed


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; the others are compared with the first.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Also write a page with curves, FILE.html, or the numbers as a table, FILE.csv; it must not exist."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the bootstrap.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare runs side by side. Final numbers, differences with a paired bootstrap interval, and the settings that differ.

    Of runs without test pictures: how many labels seem wrong, how many are listed, and how many by both.
    """
    from labelsieve.cli.report import refuse_other_files
    from labelsieve.reproduce.compare import (
        compare_csv,
        compare_lists,
        compare_page,
        compare_runs,
        differing_settings,
        without_tests,
    )
    from labelsieve.runs import atomic
    from labelsieve.terminal.console import check_new, console

    as_table = out is not None and out.suffix.lower() == ".csv"
    if as_table:
        check_new("--out", out)
    elif out is not None:
        refuse_other_files(out)
    if without_tests(runs):
        if out is not None:
            raise UsageError("--out: these runs have no test pictures, so there are no numbers to write; leave it out")
        lists = compare_lists(runs)
        _say_lists(lists, differing_settings(lists), as_json)
        return
    found = compare_runs(runs, seed)
    settings = differing_settings(found)
    if out is not None and as_table:
        atomic.write_new_text(out, compare_csv(found))
    elif out is not None:
        atomic.write_text(out, compare_page(found))
    if as_json:
        typer.echo(json.dumps({"runs": [_facts(run) for run in found], "settings_that_differ": settings}))
        return
    _say_runs(found)
    _say_settings(settings)
    if out is not None:
        console.print(f"{'table' if as_table else 'page'}: {out}")


def _say_settings(settings: "Mapping[str, Sequence[str]]") -> None:
    from labelsieve.terminal.console import console

    if settings:
        console.print("\nsettings that differ, run by run:")
    for key, values in settings.items():
        console.print(f"  {key}: {' | '.join(values)}")


def _say_lists(found: "Sequence[Listed]", settings: "Mapping[str, Sequence[str]]", as_json: bool) -> None:
    """Of runs without test pictures: what they say of the labels."""
    from labelsieve.issues.estimate import sentence
    from labelsieve.terminal.console import console

    if as_json:
        facts = [
            {
                "run": str(run.path),
                "epochs": run.record.epochs_done,
                "wrong_share": [run.share.share, run.share.low, run.share.high] if run.share.known else None,
                "listed": run.listed,
                "listed_by_first": run.by_first,
            }
            for run in found
        ]
        typer.echo(json.dumps({"runs": facts, "settings_that_differ": settings}))
        return
    console.print("No test pictures, so no accuracy (train with --val PATH to have one). What the runs say of the labels:")
    for place, run in enumerate(found, 1):
        too = "" if place == 1 else f", {run.by_first:,} of them by run 1 as well"
        console.print(f"{place}: {run.path}: {run.listed:,} listed{too}. {sentence(run.share)}")
    _say_settings(settings)


def _facts(run: "Compared") -> dict[str, Any]:
    """What `--json` prints of a run."""
    from dataclasses import asdict

    return {
        "run": str(run.path),
        "epochs": run.record.epochs_done,
        "done": run.done,
        "final": None if run.final is None else asdict(run.final),
        "accuracy": run.accuracy,
        "interval": run.between,
        "auc": run.auc,
        "against_first": None if run.against is None else asdict(run.against),
    }


def _say_runs(found: "Sequence[Compared]") -> None:
    """The runs' places by number, then two narrow tables, for terminals are."""
    from rich.table import Table

    from labelsieve.reproduce.compare import HEADER, row_of
    from labelsieve.terminal.console import console

    for place, run in enumerate(found, 1):
        console.print(f"{place}: {run.path}")
    rows = [[str(place), *row_of(run)[1:]] for place, run in enumerate(found, 1)]
    titles = {"test accuracy, percent": (0, 1, 2, 3, 4, 5), "difference, and ranking of labels": (0, 6, 7)}
    for title, columns in titles.items():
        grid = Table(title=f"\n{title}", title_justify="left")
        for column in columns:
            grid.add_column(HEADER[column], justify="left" if column == 7 else "right")
        for row in rows:
            grid.add_row(*(row[column] for column in columns))
        console.print(grid)
    console.print(
        "intervals (95 %): over draws of the test pictures, paired with the first run; another seed may change more than that"
    )
