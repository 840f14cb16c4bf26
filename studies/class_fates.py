"""Which classes does a run lose, and when? One row per class, from what the run kept; nothing is trained.

`python -m studies.class_fates RUN [--table FILE.csv]` reads early_losses.npz, scores.npz and predictions.npz of a
run on known noise: how well the losses told right labels from wrong ones in each class when the warm-up was over, how pure and
how complete what is taken as clean of the class is at the end, and how many of its test pictures are named right.
"""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.table import Table

from labelsieve.data.npz import read_npz
from labelsieve.errors import ToolError, command
from labelsieve.methods.parts.diagnostics import auc
from labelsieve.methods.parts.evidence import taken
from labelsieve.results.kept import read_answers
from labelsieve.runs import atomic
from labelsieve.runs.findings import Record, read_record
from labelsieve.runs.folder import RunFolder
from labelsieve.terminal.console import as_command, check_new, console
from studies.known import known_losses
from studies.ranking import ranks

SHOWN = 12  # classes on the terminal, the worst first; the table has all
WHOLE = {"taken": 0, "accuracy": 0}  # columns without decimals there
LOST = 0.5  # a class is called lost where fewer of the labels taken as clean are right


@dataclass(frozen=True, eq=False)
class Fates:
    """By class, (K,): NaN where there is nothing to divide by. `taken` counts labels, mean of both networks."""

    classes: tuple[str, ...]
    early_auc: np.ndarray  # of the losses after the warm-up, among the labels of this class
    taken: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    accuracy: np.ndarray | None  # percent of the test pictures of this class; none: there were no test pictures

    @property
    def columns(self) -> dict[str, np.ndarray]:
        found = {"early_auc": self.early_auc, "taken": self.taken, "precision": self.precision, "recall": self.recall}
        return found if self.accuracy is None else found | {"accuracy": self.accuracy}

    @property
    def lost(self) -> np.ndarray:
        """(K,) bool; a class of which nothing is taken as clean is lost, too."""
        return ~(self.precision >= LOST)


def fates_of(path: Path) -> Fates:
    """A `ToolError` where the run has not ended, saw draws of its samples, or where nobody knows which labels are wrong."""
    folder = RunFolder.open(path)
    record = read_record(folder)
    if record.final.get("phase") != "final":
        raise ToolError(f"{path}: the run has not ended, so nothing is decided yet; {command('resume', path)} goes on with it")
    early = known_losses(folder)
    given, clean = _taken_at_the_end(folder, record)
    if clean.shape != early.given.shape or len(given) != clean.shape[1]:
        raise ToolError(f"{folder.scores}: of other samples than {folder.early_losses.name}; put back the file that was changed")
    right, count = early.right, len(early.classes)
    both = clean & right
    counted, hits = (np.stack([np.bincount(given[one], minlength=count) for one in some]).mean(0) for some in (clean, both))
    return Fates(
        early.classes,
        np.array([_early_auc(early.loss[:, given == k], right[given == k]) for k in range(count)]),
        counted,
        _share(hits, counted),
        _share(hits, np.bincount(given[right], minlength=count)),
        _accuracy(folder, count),
    )


def _taken_at_the_end(folder: RunFolder, record: Record) -> tuple[np.ndarray, np.ndarray]:
    """The given labels (N,), and which of them each network's last division takes as clean (2, N), as the run counts it."""
    scores = read_npz(folder.scores) if folder.scores.is_file() else {}
    cleaning, decided = record.config.cleaning, record.decision
    by_prototype = "by_prototype" in scores
    if "given" not in scores or not (by_prototype or "by_loss" in scores):
        raise ToolError(f"{folder.scores}: missing or damaged; put it back, or repeat the run")
    threshold = cleaning.tau if by_prototype else decided.get("mixture_threshold", cleaning.mixture_threshold)
    least = decided.get("least_clean", cleaning.least_clean)
    chances = torch.from_numpy(scores["by_prototype" if by_prototype else "by_loss"])
    each = [taken(chance, 0.5 if threshold is None else threshold, None, least or 0.0).numpy() for chance in chances]
    return scores["given"], np.stack(each)


def _early_auc(losses: np.ndarray, right: np.ndarray) -> float:
    """The mean of both networks' losses (2, M) ranks; NaN in a class whose labels are all of one kind."""
    found = auc(torch.from_numpy(-losses.mean(0)), torch.from_numpy(right))
    return float("nan") if found is None else found


def _accuracy(folder: RunFolder, count: int) -> np.ndarray | None:
    if not folder.predictions.is_file():
        return None
    answers = read_answers(folder)
    each = (np.bincount(some, minlength=count) for some in (answers.label[answers.right], answers.label))
    return 100 * _share(*each)


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float | None:
    """Spearman's, over the classes that have both; None where one of them does not vary."""
    known = ~(np.isnan(first) | np.isnan(second))
    one, other = ranks(first[known]), ranks(second[known])
    return float(np.corrcoef(one, other)[0, 1]) if len(one) > 1 and one.std() and other.std() else None


def written(found: Fates) -> str:
    """The table as CSV, the least pure class first; empty where there is no number."""
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(("class", *found.columns))
    for k in worst_first(found):
        rows.writerow((found.classes[k], *(_number(column[k], 4) for column in found.columns.values())))
    return text.getvalue()


def _number(value: float, decimals: int) -> str:
    return "" if np.isnan(value) else f"{value:.{decimals}f}"


def worst_first(found: Fates) -> list[int]:
    """Classes by the precision of what is taken of them; those of which nothing is taken before all others."""
    return np.argsort(np.where(np.isnan(found.precision), -1, found.precision), kind="stable").tolist()


def say(found: Fates) -> None:
    table = Table("class", *(name.replace("_", " ") for name in found.columns), box=None, padding=(0, 2, 0, 0))
    for k in worst_first(found)[:SHOWN]:
        table.add_row(found.classes[k], *(_number(column[k], WHOLE.get(name, 3)) for name, column in found.columns.items()))
    console.print(table)
    lost = int(found.lost.sum())
    console.print(f"{lost} of {len(found.classes)} classes are lost: under half of what is taken of them is right, or nothing is")
    pairs = [("the AUC after the warm-up", found.early_auc, "precision at the end", found.precision)]
    if found.accuracy is not None:
        pairs.append(("precision at the end", found.precision, "accuracy on test pictures", found.accuracy))
    for first, one, second, other in pairs:
        value = rank_correlation(one, other)
        if value is not None:
            console.print(f"rank correlation over classes of {first} and {second}: {value:.2f}")


def main(
    run: Annotated[Path, typer.Argument(help="The folder of a run whose noise was made on purpose, or is known.")],
    table: Annotated[Path | None, typer.Option(help="A CSV file to write, every class; it must not exist.")] = None,
) -> None:
    """Print the classes that a run lost, and what their fate goes with."""
    check_new("--table", table)
    found = fates_of(run)
    if table is not None:
        atomic.write_text(table, written(found))
    say(found)


if __name__ == "__main__":
    as_command(main)
