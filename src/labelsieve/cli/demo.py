"""`labelsieve demo`: two minutes that show what the tool is for, on data that is inside the install."""

import json
from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Where to write the two runs, the report and the summary.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(help="Random seed: weights, order, views and noise.")] = 0,
    epochs: Annotated[int | None, typer.Option(help="Epochs of each of the two runs.")] = None,
) -> None:
    """Compare plain training with labelsieve on digits. 40 % of their labels are made wrong."""
    from labelsieve.benchmark.demo import METHODS, NAMES, demo_config, summarise
    from labelsieve.report.run import run_page
    from labelsieve.results.reporting import run_report
    from labelsieve.runs import atomic
    from labelsieve.terminal.console import console, interruptible, stopped_at_once
    from labelsieve.terminal.training import opened, show_epochs
    from labelsieve.train.loop import Stopper

    runs, stopper = {}, Stopper()
    for method in METHODS:
        run = runs[method] = opened(out / method, demo_config(method, seed, epochs), resume=True)
        if run.done:
            console.print(f"{run.home.path}: already done, taken as it is (remove it to train again)")
            continue
        with interruptible(stopped_at_once(out)):
            done = show_epochs(run, stopper, f"{NAMES[method]}:")
        if not done:
            console.print("stopped; run the same command again to continue")
            raise typer.Exit(stopper.exit_code)
    summary = summarise(runs)
    atomic.write_text(out / "summary.json", json.dumps(summary, indent=1) + "\n")
    atomic.write_text(out / "report.html", run_page(run_report(out / "cpc")[0]))
    say(summary)
    console.print(f"report: {out / 'report.html'}    wrong labels: {runs['cpc'].home.issues}")


def say(summary: dict[str, dict[str, float | None]]) -> None:
    from rich.table import Table

    from labelsieve.benchmark.demo import NAMES
    from labelsieve.terminal.console import console

    table = Table(title="digits, 40 % symmetric noise: test accuracy, and the wrong labels found", title_justify="left")
    for head in ("", "last", "best", "AUC", "precision", "recall"):
        table.add_column(head, justify="left" if not head else "right")
    for method, figures in summary.items():
        shares = [(figures.get(name), digits) for name, digits in (("auc", 4), ("issue_precision", 3), ("issue_recall", 3))]
        table.add_row(
            f"{NAMES[method]} ({method})",
            f"{figures['accuracy_last']:.1f} %",
            f"{figures['accuracy_best']:.1f} %",
            *("" if share is None else f"{share:.{digits}f}" for share, digits in shares),
        )
    console.print(table)
