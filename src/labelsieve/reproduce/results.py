"""What finished runs measured: last, mean of the last 10 and best, per run and over seeds; written as Markdown, CSV and HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from labelsieve.config.method_settings import epochs_of
from labelsieve.methods import MIXTURES
from labelsieve.report.page import Section, commands, page, paragraph, table
from labelsieve.reproduce.paper import Cell, Table
from labelsieve.reproduce.tasks import Task
from labelsieve.runs import atomic
from labelsieve.runs.findings import TAIL, Record, fewer, measured, read_record, tail
from labelsieve.texts import as_csv

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


HEADER = ("method", "data", "paper", "best", "difference", "last", "mean of last 10", "seeds", "epochs", "minutes", "mark")
SPREADS = ("last", "mean_last_10", "best")
COLUMNS = (
    *("row", "column", "job", "measure", "paper", "paper_std"),
    *(f"{name}{suffix}" for name in SPREADS for suffix in ("", "_std")),
    *("difference", "seeds", "seeds_wanted", "epochs", "paper_epochs", "minutes", "mark", "mean_last_10_epochs"),
)
OTHER = "*"  # on a number that is no reproduction of the paper's
EXPLAINED = (
    "Accuracy in percent on test pictures, both networks together unless a row says otherwise. Cited: the paper took "
    "the number from others' work. Ours: mean ± standard deviation over seeds. Best is the best epoch, chosen on the test set as "
    "the paper's protocol has it, so it flatters: go by last. Difference: best minus the paper's. The mean of the last 10 epochs "
    "leaves the warm-up out; of fewer, it says of how many. Minutes: of one run, its warm-up included. Runs marked SHORT, "
    "LONGER, SUBSET or SET are of another length, smaller or set otherwise than the paper's, and their numbers are not a "
    "reproduction of it. MIXTURE: such short runs of a cleaner with prototypes show nothing of them. WARM-UP: the best epoch "
    "came before any label was divided, so it says nothing of the cleaner."
)


def write_table(folder: Path, spec: Table, results: Sequence[CellResult], command: str, made_with: str) -> list[Path]:
    """NAME.md, NAME.csv and NAME.html in `folder`."""
    files = {
        "md": as_markdown(spec, results, command, made_with),
        "csv": as_rows(results),
        "html": as_page(spec, results, command, made_with),
    }
    places = []
    for suffix, text in files.items():
        places.append(folder / f"{spec.name}.{suffix}")
        atomic.write_text(places[-1], text)
    return places


def said(value: Spread | None) -> str:
    if value is None:
        return ""
    return f"{value.mean:.2f}" + (f" ± {value.std:.2f}" if value.std is not None else "")


def tail_said(result: CellResult) -> str:
    return said(result.tail) + (fewer(result.tail_epochs) if result.tail else "")


def cells_of(result: CellResult) -> list[str]:
    cell = result.cell
    paper = "" if cell.paper is None else said(Spread(cell.paper, cell.spread)) + (" (cited)" if cell.reported else "")
    difference = "" if result.difference is None else f"{result.difference:+.2f}"
    epochs = f"{result.epochs}" if result.epochs == cell.job.epochs else f"{result.epochs} of {cell.job.epochs}"
    minutes = "" if result.minutes is None else f"{result.minutes:.1f}"
    seeds = f"{result.seeds} of {result.wanted}"
    numbers = [said(result.best), difference, said(result.last), tail_said(result)]
    return [cell.row, cell.column, paper, *numbers, seeds, epochs, minutes, result.mark]


def as_markdown(spec: Table, results: Sequence[CellResult], command: str, made_with: str) -> str:
    lines = [HEADER, ["---"] * len(HEADER), *(cells_of(result) for result in results)]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    note = f"\n\n{spec.note}" if spec.note else ""
    return f"# {spec.title}\n\n{body}\n\n{EXPLAINED}{note}\n\nMade with `{command}`; {made_with}.\n"


def as_rows(results: Sequence[CellResult]) -> str:
    return as_csv(COLUMNS, [_row(result) for result in results])


def _row(result: CellResult) -> list[str]:
    cell = result.cell
    spreads = [part for value in (result.last, result.tail, result.best) for part in _parts(value)]
    counts = (result.seeds, result.wanted, result.epochs, cell.job.epochs)
    return [
        *(cell.row, cell.column, cell.job.name, cell.measure),
        *(_number(cell.paper), _number(cell.spread)),
        *spreads,
        _number(result.difference),
        *map(str, counts),
        _number(result.minutes),
        result.mark,
        str(result.tail_epochs) if result.tail else "",
    ]


def _parts(value: Spread | None) -> tuple[str, str]:
    return ("", "") if value is None else (_number(value.mean), _number(value.std))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")


def as_page(spec: Table, results: Sequence[CellResult], command: str, made_with: str) -> str:
    shown = [[_unbroken(cell, place) or None for place, cell in enumerate(cells_of(result))] for result in results]
    # Two tables, for one of eleven columns fits no page.
    numbers = table(("cell", *HEADER[2:7]), [[f"{row[0]}, {row[1]}", *row[2:7]] for row in shown])
    runs = table(("cell", *HEADER[7:]), [[f"{row[0]}, {row[1]}", *row[7:]] for row in shown], words=(0, 4))
    header, rows = grid(results)
    words = "Paper / best of ours; a dash: not published, or not run."
    if any(result.is_other for result in results):
        words += f" {OTHER}: of another length, smaller or set otherwise than the paper's, so no reproduction; marks say how."
    sections = [
        Section("Paper and ours", table(header, rows) + paragraph(words, "note")),
        Section("Cell by cell", numbers + paragraph(EXPLAINED, "note")),
        Section("How they were run", runs),
        Section("Command", commands([command]) + paragraph(f"{made_with}.", "note")),
    ]
    return page(spec.title, spec.note or lead(results), sections)


def _unbroken(text: str, column: int) -> str:
    """A number keeps its deviation, and a count its whole, on one line; a mean may part from what it is of."""
    kept = text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    return kept.replace(" of ", "\N{NO-BREAK SPACE}of\N{NO-BREAK SPACE}") if HEADER[column] in ("seeds", "epochs") else kept


def lead(results: Sequence[CellResult]) -> str:
    done = sum(result.seeds > 0 for result in results)
    other = sum(result.is_other for result in results)
    words = f"{done} of {len(results)} cells measured"
    return (
        f"{words}, {other} of them in runs of another length, smaller or set otherwise than the paper's."
        if other
        else f"{words}."
    )


def grid(results: Sequence[CellResult]) -> tuple[list[str], list[list[str | None]]]:
    """In the paper's shape: a row a method, a column a data set, paper's number and ours in each."""
    columns = list(dict.fromkeys(result.cell.column for result in results))
    by_place = {(result.cell.row, result.cell.column): result for result in results}
    rows = list(dict.fromkeys(result.cell.row for result in results))
    return ["", *columns], [[row, *(_pair(by_place.get((row, column))) for column in columns)] for row in rows]


def _pair(result: CellResult | None) -> str | None:
    if result is None:
        return None
    paper = "–" if result.cell.paper is None else f"{result.cell.paper:g}"
    ours = "–" if result.best is None else f"{result.best.mean:.2f}"
    return f"{paper} / {ours}{OTHER if result.best and result.is_other else ''}"
