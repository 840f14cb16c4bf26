"""How right is what each judge ranks first? One row per judge, from what a run kept of its last division.

`python -m studies.purity RUN [--share 0.05 ...] [--table FILE.csv]` reads scores.npz and early_losses.npz of a run
on known noise. AUC is about all labels, and no threshold enters it; but networks are trained on the head of a ranking, and two
judges may be level in the one and apart in the other. "Each class": so many of every class in place of so many of all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.table import Table

from labelsieve.benchmark.against_cleanlab import share_among_first
from labelsieve.data.npz import read_npz
from labelsieve.errors import ToolError, UsageError
from labelsieve.methods.parts.diagnostics import auc
from labelsieve.runs import atomic
from labelsieve.runs.folder import RunFolder
from labelsieve.terminal.console import as_command, check_new, console
from labelsieve.texts import as_csv
from studies.known import known_losses
from studies.ranking import count_of, head

SHARES = (0.03, 0.05, 0.1, 0.2, 0.3, 0.5)
# judge -> the array of scores.npz that it ranks by, and whether a high value speaks for a label
JUDGES = {"loss": ("loss", False), "mixture": ("by_loss", True), "prototypes": ("by_prototype", True)}


@dataclass(frozen=True)
class Purity:
    """Means over both networks: how many are right of the first, by share of all labels and by share of each class's."""

    judge: str
    auc: float
    of_all: list[float]
    of_each_class: list[float]


def purities(path: Path, shares: Sequence[float]) -> list[Purity]:
    """A `ToolError` where nothing was divided yet, or where nobody knows which labels are wrong."""
    folder = RunFolder.open(path)
    right = known_losses(folder).right
    scores = read_npz(folder.scores) if folder.scores.is_file() else {}
    found = [(judge, scores[key] if high else -scores[key]) for judge, (key, high) in JUDGES.items() if key in scores]
    if "given" not in scores or not found or any(each.shape != (2, len(right)) for _, each in found):
        raise ToolError(
            f"{folder.scores}: missing, or of other samples than {folder.early_losses.name}; a run that stops or ends writes "
            f"it: put it back, or repeat the run"
        )
    return [_purity(judge, chances, right, scores["given"], shares) for judge, chances in found]


def _purity(judge: str, chances: np.ndarray, right: np.ndarray, given: np.ndarray, shares: Sequence[float]) -> Purity:
    area = [auc(torch.from_numpy(each), torch.from_numpy(right)) for each in chances]
    classes = [np.flatnonzero(given == k) for k in np.unique(given)]
    return Purity(
        judge,
        float(np.mean([float("nan") if one is None else one for one in area])),
        [float(np.mean([head(each, right, share) for each in chances])) for share in shares],
        [float(np.mean([_of_classes(each, right, classes, share) for each in chances])) for share in shares],
    )


def _of_classes(chance: np.ndarray, right: np.ndarray, classes: Sequence[np.ndarray], share: float) -> float:
    counts = [count_of(share, len(rows)) for rows in classes]
    hits = [count * share_among_first(-chance[rows], right[rows], count) for rows, count in zip(classes, counts)]
    return float(sum(hits) / sum(counts))


def rows_of(found: Sequence[Purity]) -> list[tuple[str, ...]]:
    """Judge, of what, the shares of right labels, AUC (of all labels only)."""
    rows = []
    for one in found:
        rows.append((one.judge, "all labels", *(f"{value:.3f}" for value in one.of_all), f"{one.auc:.4f}"))
        rows.append((one.judge, "each class", *(f"{value:.3f}" for value in one.of_each_class), ""))
    return rows


def main(
    run: Annotated[Path, typer.Argument(help="The folder of a run whose noise was made on purpose, or is known.")],
    share: Annotated[list[float] | None, typer.Option(help="Of the labels, the first so many: 0.05. Repeat.")] = None,
    table: Annotated[Path | None, typer.Option(help="A CSV file to write as well; it must not exist.")] = None,
) -> None:
    """Print how many of the labels that losses, mixture and prototypes rank first are right."""
    shares = share or SHARES
    if not all(0 < one <= 1 for one in shares):
        raise UsageError("--share is a part of all labels, above 0 and at most 1: 0.05")
    check_new("--table", table)
    rows = rows_of(purities(run, shares))
    if table is not None:
        atomic.write_text(table, as_csv(("judge", "first of", *(f"{one:g}" for one in shares), "auc"), rows))
    shown = Table("right of the first", "of", *(f"{100 * one:g} %" for one in shares), "AUC", box=None, padding=(0, 2, 0, 0))
    for row in rows:
        shown.add_row(*row)
    console.print(shown)


if __name__ == "__main__":
    as_command(main)
