"""`labelsieve bench-cleanlab DATA... --noise SPEC`: who ranks wrong labels better, what is said of them, and at what cost."""

from pathlib import Path
from typing import Annotated, Any

import typer

from labelsieve.cli.bench import write_json
from labelsieve.cli.picture_options import Settings
from labelsieve.terminal.console import check_new


def bench_cleanlab(
    data: Annotated[list[str], typer.Argument(help="As for `labelsieve train`; several are measured one after the other.")],
    noise: Annotated[list[str] | None, typer.Option(help="Wrong labels to make on purpose, such as sym:0.2; repeatable.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds; each has its own noise.")] = 3,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    folds_network: Annotated[
        str, typer.Option(help="For cleanlab's folds: same (the run's), cnn (three convolutions) or logistic (vectors).")
    ] = "same",
    fold_epochs: Annotated[int | None, typer.Option(min=1, help="Its epochs in each fold; default: 10, of cnn 20.")] = None,
    folds: Annotated[int, typer.Option(min=2, help="How many folds.")] = 5,
    quick: Annotated[bool, typer.Option("--quick", help="Give labelsieve no more time than the folds took.")] = False,
    limit: Annotated[list[int] | None, typer.Option(help="Use a fixed subset of this size; repeatable.")] = None,
    network: Annotated[str | None, typer.Option(help="labelsieve's network; default: chosen by the data.")] = None,
    epochs: Annotated[int | None, typer.Option(help="labelsieve's epochs; default: chosen by the data.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None,
    settings: Settings = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file as well.")] = None,
) -> None:
    """Compare with cleanlab on the same data. Who ranks wrong labels better, in what time and memory?

    A noise that does not fit one of several data sets (asym, votes) is left out there.
    """
    from labelsieve.benchmark.against_cleanlab import Task, check_some_wrong, compare
    from labelsieve.benchmark.comparators import COMPARATORS
    from labelsieve.config.resolve import resolve
    from labelsieve.errors import UsageError, suggest
    from labelsieve.runs.rows import rows_for
    from labelsieve.terminal.console import console

    check_new("--json", json_file)
    if folds_network not in COMPARATORS:
        known = ", ".join(COMPARATORS)
        raise UsageError(
            f'--folds-network "{folds_network}" is not known{suggest(folds_network, COMPARATORS)}; there are: {known}'
        )
    options = {"network": network, "training.epochs": epochs, "device": device}
    sizes: list[int | None] = [*limit] if limit else [None]
    planned = []
    for source in data:
        for size in sizes:
            for spec in noise or ["none"]:
                some = [
                    resolve(
                        source, options=options | {"data.limit": size, "data.noise": spec, "seed": seed}, settings=settings or ()
                    )
                    for seed in range(first_seed, first_seed + seeds)
                ]
                try:
                    check_some_wrong(rows_for(some[0]))  # a misspelt noise is told before the others are measured
                except UsageError as error:
                    if len(data) == 1:
                        raise
                    console.print(f"left out: {source} with {spec}: {error}", markup=False)
                    continue
                planned += [({"data": source, "size": size, "noise": spec}, config) for config in some]
    rows = []
    for named, config in planned:
        rows.append(named | compare(Task(config, folds, fold_epochs, folds_network), quick, console.print))
        # After every seed: what was measured is not lost with what comes after it.
        facts = {"quick": quick, "folds": folds, "folds_network": folds_network, "fold_epochs": fold_epochs, "rows": rows}
        write_json(json_file, facts)
    if not rows:
        raise UsageError("no noise fits any of these data sets; see above")
    say(rows)


def say(rows: list[dict[str, Any]]) -> None:
    """Two lines for each data set, size and noise, means over seeds; then what was said of the labels, and what was lost."""
    from rich.table import Table

    from labelsieve.benchmark.against_cleanlab import means, summary
    from labelsieve.terminal.console import console

    title = "means over seeds; best AP: of the best of its scores, which only the true labels tell"
    table = Table(title=title, title_justify="left")
    heads = ("data", "noise", "", "AP", "best AP", "recall", "list: precision, recall", "s", "CPU s", "MiB")
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place < 3 else "right")
    for case in dict.fromkeys(_case(row) for row in rows):
        for tool in ("cleanlab", "labelsieve"):
            some = [row[tool] for row in rows if _case(row) == case]
            found = means(some)
            shares = (f"{found[name]:.4f}" for name in ("average_precision", "best_score", "recall"))
            costs = (f"{found[name]:.1f}" for name in ("seconds", "cpu_seconds", "peak_mib"))
            table.add_row(*case, tool, *shares, _listed(some), *costs)
    console.print(table)
    for row in rows:
        console.print(_said(row), markup=False)
    for line in summary(rows):
        console.print(line, markup=False)


def _case(row: dict[str, Any]) -> tuple[str, str]:
    size = "" if row["size"] is None else f", {row['size']:,}"
    return f"{row['data']}{size}", row["noise"]


def _listed(some: list[dict[str, Any]]) -> str:
    """Means over the seeds in which there is a list."""

    def mean(name: str) -> str:
        known = [each[name] for each in some if each[name] is not None]
        return f"{sum(known) / len(known):.2f}" if known else "–"

    return f"{mean('flagged_precision')}, {mean('flagged_recall')}"


def _said(row: dict[str, Any]) -> str:
    """A row's interval, yield and corrections, beside the truth."""
    from labelsieve.benchmark.against_cleanlab import name_of

    other = row["labelsieve"]["other"]
    if "interval" not in other:
        return f"{name_of(row)}: stopped by its budget, so nothing is said of the noise"
    truth = 100 * (1 - other["right_before"])
    if other["interval"] is None:
        noise = f"no percentage ({truth:.1f} % are wrong)"
    else:
        low, share, high = (100 * each for each in other["interval"])
        noise = f"{share:.1f} % wrong ({low:.1f} to {high:.1f}; {truth:.1f} are)"
    firsts = "".join(f"; of the first {n}: {low:.0f} to {high:.0f} ({true} are)" for n, low, high, true in other["yield"])
    auto = "refused" if other["auto"]["refused"] else f"{other['auto']['corrections']} corrections"
    right = f"{100 * other['right_before']:.1f} to {100 * other['right_after']:.1f} % right"
    return f"{name_of(row)}: {noise}{firsts}; apply --auto: {auto}, {right}"
