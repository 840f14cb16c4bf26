"""The training half of cleanlab's row, for machines without cleanlab: out-of-sample probabilities go into an npz.

`python -m studies.folds DATA --noise SPEC --out FILE.npz` trains the folds of `labelsieve bench-cleanlab`;
`studies.comparison` scores what they left, with cleanlab, anywhere.
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from labelsieve.benchmark.against_cleanlab import Task, Watch, out_of_sample, peak_mib, wrong_labels
from labelsieve.engine.device import choose_device
from labelsieve.runs.rows import rows_for
from labelsieve.terminal.console import as_command
from studies.scores_study import write_arrays


def folds_of(task: Task) -> dict[str, np.ndarray]:
    """Probabilities (N, K), given labels (N,), what is wrong (N,), and the cost."""
    rows = rows_for(task.config)
    watch = Watch(choose_device(task.config.device))
    probs = out_of_sample(task, rows).numpy()
    cost = {"seconds": watch.seconds(), "cpu_seconds": watch.cpu_seconds(), "peak_mib": peak_mib()}
    found = {"probs": probs, "labels": rows.data.labels.numpy(), "wrong": wrong_labels(rows)}
    return found | {name: np.array(value) for name, value in cost.items()}


def main(
    data: Annotated[str, typer.Argument(help="As for `labelsieve train`.")],
    out: Annotated[Path, typer.Option(help="The npz file to write; one that is there is not trained again.")],
    noise: Annotated[str, typer.Option(help="Wrong labels to make on purpose.")],
    seed: Annotated[int, typer.Option(help="Of weights, order, views and noise.")] = 0,
    limit: Annotated[int | None, typer.Option(help="Use a fixed subset of this size.")] = None,
    folds: Annotated[int, typer.Option(min=2, help="How many folds.")] = 5,
    fold_epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of plain training in each fold.")] = None,
    folds_network: Annotated[str, typer.Option(help="As for `labelsieve bench-cleanlab`.")] = "same",
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, any setting.")] = None,
) -> None:
    """Train the folds and keep their probabilities."""
    from labelsieve.config.resolve import resolve

    if not out.exists():
        options = {"data.noise": noise, "seed": seed, "data.limit": limit}
        config = resolve(data, options=options, settings=settings or ())
        write_arrays(out, folds_of(Task(config, folds, fold_epochs, folds_network)))


if __name__ == "__main__":
    as_command(main)
