"""The table against cleanlab from what other machines measured: folds (see folds.py) and runs (see known_noise.py).

`python -m studies.comparison FOLDS.npz=RUN.json ...` scores each file of out-of-sample probabilities with cleanlab
and sets it beside the run on the same data, noise and seed. Both must hold the same number of wrong labels.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from labelsieve.benchmark.against_cleanlab import CLEANLAB_SCORES, average_precision, recall_at_true_count
from labelsieve.data.npz import read_npz
from labelsieve.errors import ToolError, UsageError
from labelsieve.terminal.console import as_command, console


@dataclass(frozen=True)
class Row:
    """One line of the table: average precision, recall at the true number of wrong labels, CPU seconds, MiB; theirs and ours."""

    name: str
    theirs: tuple[float, float, float, float]
    best: float  # average precision of the best of cleanlab's scores, which only the true labels tell
    ours: tuple[float, float, float, float]

    def verdict(self) -> str:
        """Of the error (1 - average precision) that cleanlab's best score leaves, what labelsieve leaves."""
        left = (1 - self.ours[0]) / max(1 - self.best, 1e-12)
        return "lost" if left >= 1 else f"{left:.2f} of the error" + (" (over half)" if left > 0.5 else "")


def scored(folds: Path) -> tuple[dict[str, float], float, dict[str, np.ndarray]]:
    """Average precision by each of cleanlab's scores, recall of its default one, and the file's arrays."""
    try:
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        raise ToolError('cleanlab is not installed: pip install "labelsieve[compare]"') from None
    held = read_npz(folds)
    probs = held["probs"].astype(np.float64)
    probs /= probs.sum(1, keepdims=True)
    scores = {name: get_label_quality_scores(held["labels"], probs, method=name) for name in CLEANLAB_SCORES}
    found = {name: average_precision(score, held["wrong"]) for name, score in scores.items()}
    return found, recall_at_true_count(scores[CLEANLAB_SCORES[0]], held["wrong"]), held


def row_of(folds: Path, run: Path) -> Row:
    found, recall, held = scored(folds)
    facts: dict[str, Any] = json.loads(run.read_text(encoding="utf-8"))
    wrong = int(held["wrong"].sum())
    if wrong != round(facts["wrong"] * facts["samples"]):
        raise UsageError(f"{folds} and {run} are of different noise: {wrong} wrong labels against {facts['wrong']:.4f} of all")
    cost = float(held["cpu_seconds"]), float(held["peak_mib"])
    ours = facts["average_precision"], facts["recall"], facts["cpu_seconds"], facts["peak_mib"]
    name = f"{facts['data']}, {facts['noise']}, seed {facts['seed']}"
    return Row(name, (found[CLEANLAB_SCORES[0]], recall, *cost), max(found.values()), ours)


def main(pairs: Annotated[list[str], typer.Argument(help="FOLDS.npz=RUN.json, for each row.")]) -> None:
    """Print the table as Markdown."""
    heads = ("", "cleanlab AP (best of its scores)", "labelsieve AP", "recall", "CPU s", "MiB", "left of cleanlab's error")
    console.print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|", markup=False)
    for pair in pairs:
        folds, equals, run = pair.partition("=")
        if not equals:
            raise UsageError(f'"{pair}" is not of the form FOLDS.npz=RUN.json')
        row = row_of(Path(folds), Path(run))
        (ap, recall, cpu, mib), (our_ap, our_recall, our_cpu, our_mib) = row.theirs, row.ours
        cells = (
            row.name,
            f"{ap:.4f} ({row.best:.4f})",
            f"{our_ap:.4f}",
            f"{recall:.3f} / {our_recall:.3f}",
            f"{cpu:.0f} / {our_cpu:.0f}",
            f"{mib:.0f} / {our_mib:.0f}",
            row.verdict(),
        )
        console.print("| " + " | ".join(cells) + " |", markup=False)


if __name__ == "__main__":
    as_command(main)
