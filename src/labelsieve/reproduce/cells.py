"""What a table is made of: a `Job` is a run without its seed, a `Cell` is one number of the paper and where ours comes from.

One job may stand behind cells of several tables; its name is its folder, so a sweep runs it once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from labelsieve.config.presets import preset
from labelsieve.errors import UsageError, suggest

DEFAULTS = {"cleaning.prototype_warmup": 0.05, "cleaning.tau": 0.5, "cleaning.alpha": 0.0}


@dataclass(frozen=True)
class Job:
    """`preset` as `labelsieve train --preset` takes it, `options` by dotted key; `source` names the data set."""

    name: str
    source: str
    preset: str
    epochs: int  # in the paper
    options: tuple[tuple[str, Any], ...] = ()
    samples: int = 50_000  # that the paper trains on
    length: int | None = None  # epochs here, where the job is shortened by itself


@dataclass(frozen=True)
class Cell:
    """`paper` in percent with its standard deviation over seeds, None where the paper has none.

    `measure` is where ours stands in a line of metrics.jsonl.
    """

    row: str
    column: str
    job: Job
    paper: float | None
    spread: float | None = None
    measure: str = "accuracy.both"
    reported: bool = False  # taken by the paper from others' work


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    cells: tuple[Cell, ...]
    note: str = ""

    @property
    def jobs(self) -> list[Job]:
        """Each job once, in the order of the cells."""
        return list(dict.fromkeys(cell.job for cell in self.cells))


SOURCES = {"cifar10": 50_000, "cifar100": 50_000, "clothing1m": 1_000_000, "webvision": 65_944}


def job(
    cell: str,
    cleaner: str | None = None,
    *,
    called: str | None = None,
    e: int | None = None,
    tau: float | None = None,
    alpha: float | None = None,
    **options: Any,
) -> Job:
    """A benchmark cell crossed with a cleaner or a study; a number that the cell has anyway gives the cell itself.

    More `options` (by key) make another job, `called` after the cell's name. Prototypes judge at even odds, as published.
    """
    settings = preset(cell)
    studies = {
        f"e{e}": ("cleaning.prototype_warmup", None if e is None else e / 100),
        f"tau{tau}": ("cleaning.tau", tau),
        f"alpha{alpha:g}" if alpha is not None else "alpha": ("cleaning.alpha", alpha),
    }
    other = [word for word, (key, value) in studies.items() if value is not None and value != settings.get(key, DEFAULTS[key])]
    cleaner = cleaner or str(settings["cleaner"])
    named = "+".join([cell, cleaner, *other])
    odds = "" if preset(named).get("cleaning.prototype_prior", 0.5) == 0.5 else "+prior0.5"
    source = cell.partition("-")[0]
    epochs = int(options["epochs"] if "epochs" in options else settings["training.epochs"])
    name = f"{cell}+{called}" if called else named
    return Job(name, source, named + odds, epochs, tuple(options.items()), SOURCES[source])


def words_of(cell: Cell) -> set[str]:
    """What a cell may be called: its job, the parts of its name, its row and its column."""
    parts = {cell.job.name, cell.job.source, *cell.job.name.split("+")}
    return {word.lower() for word in (*parts, cell.row, cell.column, f"{cell.row}/{cell.column}")}


def chosen(table: Table, wanted: Sequence[str]) -> list[Cell]:
    """The cells that match all words of at least one pattern: `gmm-agn`, `cifar100-sym90+cpc*`, `webvision cpc-agn`."""
    patterns = [text.strip().lower() for texts in wanted for text in texts.split(",") if text.strip()]
    if not patterns:
        return list(table.cells)
    found: dict[Cell, None] = {}
    for pattern in patterns:
        matching = [cell for cell in table.cells if _matches(cell, pattern)]
        if not matching:
            known = sorted({word for cell in table.cells for word in words_of(cell) if "/" not in word})
            raise UsageError(f'--cells "{pattern}" matches nothing in {table.name}{suggest(pattern, known)}; {_list(known)}')
        found |= dict.fromkeys(matching)
    return [cell for cell in table.cells if cell in found]


def _matches(cell: Cell, pattern: str) -> bool:
    words = words_of(cell)
    if any(fnmatchcase(word, pattern) for word in words):
        return True
    return all(any(fnmatchcase(word, part) for word in words) for part in pattern.split())


def _list(words: Iterable[str]) -> str:
    return f"there are: {', '.join(words)}"
