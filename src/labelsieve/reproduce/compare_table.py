"""Writes compared runs as a CSV: one row per run, numbers in full, one column per setting that differs."""

from collections.abc import Sequence

from labelsieve.issues.delimited import as_csv
from labelsieve.reproduce.compare import Compared, differing_settings

AUCS = ("auc_loss", "auc_prototype")
HEADER = (
    *("run", "epochs", "done", "last", "mean_of_last", "mean_of_epochs", "best", "accuracy", "low", "high"),
    *("difference", "difference_low", "difference_high", "only_first_right", "only_this_right", *AUCS),
)


def compare_csv(runs: Sequence[Compared]) -> str:
    """`low` and `high` are ends of 95 % intervals; `difference` is to the first run, in points, and empty in its own row."""
    settings = differing_settings(runs)
    rows = [[*_row(run), *(values[place] for values in settings.values())] for place, run in enumerate(runs)]
    return as_csv((*HEADER, *settings), rows)


def _row(run: Compared) -> list[str]:
    end, against = run.final, run.against
    finals: tuple[float | None, ...] = (None,) * 4
    if end is not None:
        finals = (end.last, end.tail, None if end.tail is None else end.tail_epochs, end.best)
    beside: tuple[float | None, ...] = (None,) * 5
    if against is not None:
        beside = (against.points, against.low, against.high, against.only_first, against.only_second)
    numbers = (*finals, run.accuracy, *run.between, *beside, *(run.auc.get(name) for name in AUCS))
    done = "true" if run.done else "false"
    return [str(run.path), str(run.record.epochs_done), done, *("" if value is None else str(value) for value in numbers)]
