"""Runs that wait for a GPU: trains the next cell of studies/queue.md for the minutes at hand, and writes down how far it is.

`python -m studies.queue` shows the queue. `python -m studies.queue --minutes 25 --data cifar10=PATH --data cifar100=PATH --noise
FOLDER --keep RUNS` starts or resumes the first cell that is not done, in RUNS/CELL, goes on with the next while there is time,
and stops with a slim checkpoint. Copy RUNS/CELL/config.yaml, metrics.jsonl and slim/ away, and back before you resume elsewhere.
`python -m studies.cell_results RUNS` says what they came to. Commit queue.md afterwards.
"""

import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from labelsieve import run_files
from labelsieve.errors import ToolError, UsageError
from labelsieve.reproduce.tasks import held
from labelsieve.runs import atomic
from labelsieve.runs.environment import source_facts
from labelsieve.runs.folder import RunFolder
from labelsieve.terminal.console import as_command, console

QUEUE = Path(__file__).with_name("queue.md")
COLUMNS = 8
ENOUGH = 2.0  # minutes: with less left no further cell is begun
ENDINGS = (0, 130, 143)  # of a run: done or out of time, interrupted, told to stop


@dataclass(frozen=True)
class Cell:
    """A row of the queue."""

    name: str
    data: str
    noise: str
    settings: str
    minutes: str
    published: str
    state: str
    commit: str

    def row(self) -> str:
        return "| " + " | ".join(vars(self).values()) + " |"


def cells(text: str) -> list[Cell]:
    """The table's rows, without its head."""
    rows = [[part.strip() for part in line.strip().strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [Cell(*row) for row in rows[2:] if len(row) == COLUMNS]


def command(cell: Cell, folder: Path, data: dict[str, str], noise: Path, minutes: float) -> list[str]:
    """What trains the cell: a new run, or the one that is there resumed."""
    limit = ["--time-limit", f"{round(60 * minutes)}s"]
    place = data[cell.data]
    if RunFolder(folder).config.is_file():
        return ["resume", str(folder), "--data", place, *limit]
    labels = f"file:{noise / cell.data}.npz:{cell.noise}"
    return ["train", place, *cell.settings.split(), "--noise", labels, *limit, "--slim-checkpoint", "--out", str(folder)]


def state_of(folder: Path) -> str:
    """How far the run is, by its metrics: the last division is written after the last epoch."""
    lines = run_files.records(RunFolder(folder).metrics)
    if lines and lines[-1].get("phase") == "final":
        return "done"
    return f"at {len(lines)}" if lines else "waiting"


def take(queue: Path, data: dict[str, str], noise: Path, keep: Path, minutes: float, name: str | None) -> Cell:
    """Train the named cell, or the first that is not done, and write its new state into the queue."""
    open_ones = [cell for cell in cells(queue.read_text(encoding="utf-8")) if cell.state != "done" and name in (None, cell.name)]
    if not open_ones:
        raise UsageError(f"{queue}: no cell{f' called {name}' if name else ''} is waiting")
    cell = open_ones[0]
    if cell.data not in data:
        raise UsageError(f"{cell.name} needs {cell.data}; name it: --data {cell.data}=PATH")
    folder = keep / cell.name
    if cell.state != "waiting" and not RunFolder(folder).config.is_file():
        raise UsageError(
            f"{cell.name} is {cell.state}, and {folder} is not there; copy its config.yaml, metrics.jsonl and slim/ there"
        )
    keep.mkdir(parents=True, exist_ok=True)
    words = command(cell, folder, data, noise, minutes)
    console.print(f"{cell.name}: labelsieve {' '.join(words)}")
    with held(keep / ".locks" / cell.name) as ours:
        if not ours:
            raise UsageError(f"{cell.name} is being trained by another process; name another with --cell")
        ended = subprocess.run([sys.executable, "-m", "labelsieve", *words], check=False).returncode
        if ended not in ENDINGS:
            raise ToolError(f"{cell.name} ended with exit code {ended}; the queue stays as it was")
        begun_with = cell.commit or str(source_facts().get("commit") or "unknown")[:9]
        found = replace(cell, state=state_of(folder), commit=begun_with)
        lines = queue.read_text(encoding="utf-8").splitlines()
        mine = next(k for k, line in enumerate(lines) if line.startswith(f"| {cell.name} |"))
        lines[mine] = found.row()
        atomic.write_text(queue, "\n".join(lines) + "\n")
    return found


def main(
    minutes: Annotated[
        float | None,
        typer.Option(help="Train for so long, the next cells as well if there is time; without it, the queue is shown."),
    ] = None,
    data: Annotated[list[str] | None, typer.Option(help="Where a data set is: cifar10=PATH. Repeat.")] = None,
    noise: Annotated[Path, typer.Option(help="The folder with cifar10.npz and cifar100.npz.")] = Path("noise"),
    keep: Annotated[Path, typer.Option(help="Where the runs' folders are kept.")] = Path("runs/queue"),
    cell: Annotated[str | None, typer.Option(help="This cell, in place of the next.")] = None,
    queue: Annotated[Path, typer.Option(help="The table of cells.")] = QUEUE,
) -> None:
    """Show the runs that wait for a GPU, or take the next."""
    if minutes is None:
        for one in cells(queue.read_text(encoding="utf-8")):
            console.print(f"{one.name}: {one.state}, about {one.minutes} minutes in all")
        return
    places = dict(_named(word) for word in data or ())
    end = time.monotonic() + 60 * minutes
    while True:
        found = take(queue, places, noise, keep, (end - time.monotonic()) / 60, cell)
        console.print(f"{found.name}: {found.state}")
        waiting = any(one.state != "done" for one in cells(queue.read_text(encoding="utf-8")))
        if cell is not None or found.state != "done" or not waiting or end - time.monotonic() < 60 * ENOUGH:
            return


def _named(word: str) -> tuple[str, str]:
    """cifar10=PATH gives what the command line takes: cifar10:PATH; a form of data of its own (arrays:FILE) stays."""
    name, _, place = word.partition("=")
    if not place:
        raise UsageError(f"--data {word}: write NAME=PATH, such as cifar10=~/data")
    return name, place if place.partition(":")[0] == "arrays" else f"{name}:{place}"


if __name__ == "__main__":
    as_command(main)
