"""How well each method ranks wrong labels, by what it knows.

`python -m studies.method_scores DATA --noise sym:0.4 --seeds 3` trains every method as `labelsieve train` would and takes the
order of its list of issues. The test set is not looked at before the end. Processes that share a core would slow each other
down, so `--processes` is how many cores there are to spare.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer

from labelsieve.benchmark.against_cleanlab import Task, by_labelsieve, check_some_wrong, end_with_parent
from labelsieve.cli.bench import write_json
from labelsieve.config.resolve import resolve
from labelsieve.methods.registry import METHODS
from labelsieve.runs.rows import rows_for
from labelsieve.terminal.console import as_command, check_new, console


def main(
    data: Annotated[str, typer.Argument(help="As for `labelsieve train`.")],
    noise: Annotated[list[str], typer.Option(help="Wrong labels to make on purpose; repeatable.")],
    seeds: Annotated[int, typer.Option(min=1, help="How many, from 0.")] = 1,
    methods: Annotated[str, typer.Option(help="Which, with commas; default: all.")] = "",
    limit: Annotated[int | None, typer.Option(help="A fixed subset of this size.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Default: as the data have it.")] = None,
    processes: Annotated[int, typer.Option(min=1)] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file as well.")] = None,
) -> None:
    """Average precision of the wrong labels, method by method."""
    check_new("--json", json_file)
    asked = [
        {"data": data, "method": method, "noise": spec, "seed": seed, "limit": limit, "epochs": epochs}
        for seed in range(seeds)
        for spec in noise
        for method in (methods.split(",") if methods else METHODS)
    ]
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=end_with_parent) as pool:
        for row in pool.map(measured, asked):
            rows.append(row)
            console.print(
                f"{row['method']} {row['noise']} seed {row['seed']}: {row['score']:.3f}, {row['cpu_seconds']:.0f} CPU s"
            )
            write_json(json_file, {"data": data, "limit": limit, "epochs": epochs, "rows": rows})
    console.print("\n".join(table(rows)))


def measured(asked: dict[str, Any]) -> dict[str, Any]:
    """One run: of the list's order, and of the opinion alone that counts for the method."""
    options = {"method": asked["method"], "data.noise": asked["noise"], "seed": asked["seed"]}
    options |= {"data.limit": asked["limit"], "training.epochs": asked["epochs"], "device": "cpu", "engine.threads": 1}
    config = resolve(asked["data"], options={key: value for key, value in options.items() if value is not None})
    check_some_wrong(rows_for(config))
    found = by_labelsieve(Task(config, 0, 0))
    opinion = found.other["scores"]["last chance"]
    return asked | {
        "score": found.average_precision,
        "opinion": opinion,
        "recall": found.recall,
        "cpu_seconds": found.cpu_seconds,
    }


def table(rows: list[dict[str, Any]]) -> list[str]:
    """A row for each method, means over seeds, as Markdown: the list's average precision, and in brackets the opinion's."""
    noises = list(dict.fromkeys(row["noise"] for row in rows))
    lines = [f"| | {' | '.join(noises)} | CPU s of a run |", "|---" * (len(noises) + 2) + "|"]
    for method in dict.fromkeys(row["method"] for row in rows):
        its = [row for row in rows if row["method"] == method]
        cells = [[row for row in its if row["noise"] == spec] for spec in noises]
        said = [f"{mean(r['score'] for r in cell):.3f} ({mean(r['opinion'] for r in cell):.3f})" for cell in cells]
        lines.append(f"| `{method}` | {' | '.join(said)} | {mean(row['cpu_seconds'] for row in its):.0f} |")
    return lines


if __name__ == "__main__":
    as_command(main)
