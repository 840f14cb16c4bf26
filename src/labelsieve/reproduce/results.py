"""What finished runs measured: last, mean of the last 10 and best, per run and over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from labelsieve.config.method_settings import epochs_of
from labelsieve.methods import MIXTURES
from labelsieve.reproduce.cells import Cell
from labelsieve.reproduce.tasks import Task
from labelsieve.results.tail import TAIL, fewer, measured, tail
from labelsieve.runs.findings import Record, read_record

NEVER_JUDGED = "MIXTURE: it divided every epoch, for prototypes were still warming up"


@dataclass(frozen=True)
class Final:
    """Percent: after the last epoch, mean of the last 10 epochs (in short runs of fewer, `tail_epochs`: those after the warm-up),
    best epoch (chosen on the test set: the paper's protocol).

    Where the model was chosen on validation pictures, `best` is the chosen one's test accuracy and there is no other.
    """

    last: float | None
    tail: float | None
    best: float
    tail_epochs: int = TAIL

    @property
    def tail_words(self) -> str:
        return "" if self.tail is None else f"{self.tail:.2f}{fewer(self.tail_epochs)}"


@dataclass(frozen=True)
class Spread:
    """Mean over seeds, and the standard deviation (n - 1) where there are at least two."""

    mean: float
    std: float | None


@dataclass(frozen=True)
class CellResult:
    """A cell with what its finished runs gave; None where none is finished. `mark` says what keeps it from the paper's."""

    cell: Cell
    last: Spread | None
    tail: Spread | None
    best: Spread | None
    seeds: int
    wanted: int
    epochs: int
    minutes: float | None
    mark: str
    tail_epochs: int = TAIL  # the fewest that any seed's mean is of

    @property
    def is_other(self) -> bool:
        """Was it of another length, smaller or set otherwise than the paper's?"""
        return any(word in self.mark for word in ("SHORT:", "LONGER:", "SUBSET:", "SET:"))

    @property
    def difference(self) -> float | None:
        """Best minus the paper's number, for both are chosen on the test set."""
        return None if self.best is None or self.cell.paper is None else self.best.mean - self.cell.paper


def values(record: Record, measure: str) -> list[float]:
    """A measure in percent, epoch by epoch, where it was measured; `measure` as in a `Cell`."""
    return measured(record.metrics, measure)


def final(record: Record, measure: str = "accuracy.both") -> Final | None:
    found, end = values(record, measure), tail(record.metrics, measure)
    if end is None:
        return None
    if any("chosen_epoch" in line for line in record.metrics):
        return Final(None, None, found[-1])
    return Final(found[-1], end.mean, max(found), end.epochs)


def spread(numbers: Sequence[float | None]) -> Spread | None:
    known = [number for number in numbers if number is not None]
    if not known:
        return None
    return Spread(mean(known), stdev(known) if len(known) > 1 else None)


def result(cell: Cell, tasks: Sequence[Task], failed: dict[str, str] | None = None) -> CellResult:
    """`tasks` are the cell's job, seed by seed; only those that are done count."""
    records = [read_record(task.folder) for task in tasks if task.done]
    finals = [one for one in (final(record, cell.measure) for record in records) if one is not None]
    minutes = [record.seconds / 60 for record in records]
    return CellResult(
        cell,
        spread([one.last for one in finals]),
        spread([one.tail for one in finals]),
        spread([one.best for one in finals]),
        len(finals),
        len(tasks),
        epochs_of(tasks[0].config) if tasks else cell.job.epochs,
        mean(minutes) if minutes else None,
        "; ".join(
            (
                *_marks(cell, tasks, len(finals), len(records), failed or {}),
                *_never_judged(tasks, records),
                *_best_of_warm_up(cell, records),
            )
        ),
        min((one.tail_epochs for one in finals), default=TAIL),
    )


def _marks(cell: Cell, tasks: Sequence[Task], measured: int, done: int, failed: dict[str, str]) -> list[str]:
    marks = []
    if measured == 0:
        marks.append(f"not measured: the runs have no {cell.measure}" if done else _where(tasks, failed))
    elif measured < len(tasks):
        marks.append(f"{measured} of {len(tasks)} seeds")
    if not tasks or measured == 0:
        return marks
    config = tasks[0].config
    if epochs_of(config) < cell.job.epochs:
        marks.append(f"SHORT: {epochs_of(config)} of {cell.job.epochs} epochs")
    elif epochs_of(config) > cell.job.epochs:
        marks.append(f"LONGER: {epochs_of(config)} of {cell.job.epochs} epochs")
    if config.data.limit is not None and config.data.limit < cell.job.samples:
        marks.append(f"SUBSET: {config.data.limit:,} of {cell.job.samples:,} pictures")
    if tasks[0].other_settings:
        marks.append(f"SET: {', '.join(tasks[0].other_settings)}")
    return marks


def _never_judged(tasks: Sequence[Task], records: Sequence[Record]) -> list[str]:
    """Of a cleaner with prototypes, whose runs ended before these divided: its number is the mixture's."""
    phases = {line["phase"] for record in records for line in record.metrics}
    alone = bool(tasks) and tasks[0].config.cleaner in MIXTURES
    return [] if alone or "mixture" not in phases or "prototypes" in phases else [NEVER_JUDGED]


def _best_of_warm_up(cell: Cell, records: Sequence[Record]) -> list[str]:
    """Where the best epoch came before any label was divided: runs that share a warm-up have one best, whatever divides."""
    early = 0
    for record in records:
        before = measured([line for line in record.metrics if line["phase"] == "warm-up"], cell.measure)
        later = measured([line for line in record.metrics if line["phase"] != "warm-up"], cell.measure)
        early += bool(before and later) and max(before) > max(later)
    return [f"WARM-UP: the best epoch is one of it in {early} of {len(records)} runs"] if early else []


def _where(tasks: Sequence[Task], failed: dict[str, str]) -> str:
    if any(task.name in failed for task in tasks):
        return "FAILED"
    return "NOT FINISHED" if any(task.begun for task in tasks) else "NOT RUN"
