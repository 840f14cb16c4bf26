"""What does a setting do from some epoch on? One run up to there, and several that go on from it, each in its own way.

`python -m studies.branches DATA --at 76 --branch as-it-is --branch cleaning.prototype_prior=0.1 --out DIR` trains
DIR/trunk to that epoch and then, from its state, a run for each branch: the same networks, prototypes and draws, so that what
differs afterwards is the setting's doing (on a GPU, rounding's too). All are ordinary runs. Given again, the command goes on;
several processes share the work. DIR/branches.csv has every epoch of all.
"""

import csv
import io
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from labelsieve import run_files
from labelsieve.benchmark.against_cleanlab import check_some_wrong
from labelsieve.config.resolve import parse_settings, resolve, unheeded
from labelsieve.config.schema import Config
from labelsieve.errors import ToolError, UsageError
from labelsieve.methods import MIXTURES, PROTOTYPES
from labelsieve.reproduce.tasks import held
from labelsieve.runs import atomic
from labelsieve.runs.checkpoint import Checkpoint
from labelsieve.runs.findings import number
from labelsieve.runs.folder import RunFolder
from labelsieve.terminal.console import as_command, console, parse_duration
from labelsieve.terminal.training import opened, show_epochs
from labelsieve.train.loop import Stopper
from labelsieve.train.run import Run, state_of
from labelsieve.train.start import start_from_state

UNCHANGED, TRUNK, TABLE = "as-it-is", "trunk", "branches.csv"
# column -> where a line of metrics.jsonl has it, one number or one for each network, and how many decimals it is given
MEASURES = {
    "accuracy": ("accuracy.both", 2),
    "accuracy_1": ("accuracy.first", 2),
    "accuracy_2": ("accuracy.second", 2),
    "clean_share": ("clean_share", 4),
    "precision": ("clean_precision", 4),
    "recall": ("clean_recall", 4),
    "auc_mixture": ("auc_loss", 4),
    "auc_prototypes": ("auc_prototype", 4),
}
# column -> its head on a terminal, where lines are short
SHOWN = {
    "accuracy": "accuracy",
    "clean_share": "share",
    "precision": "precision",
    "recall": "recall",
    "auc_mixture": "AUC mix.",
    "auc_prototypes": "AUC prot.",
}


@dataclass(frozen=True)
class Branch:
    """A way to go on: what it is called, and the whole configuration."""

    name: str
    config: Config


@dataclass(frozen=True)
class Clock:
    """How long the command may take, in seconds since it began; None: as long as it takes."""

    limit: float | None
    began: float

    @property
    def is_over(self) -> bool:
        return self.limit is not None and time.monotonic() - self.began >= self.limit


class StopAt(Stopper):
    """Stops after an epoch, too; the run's last is not one to stop after, for a division follows it."""

    def __init__(self, run: Run, epoch: int | None, clock: Clock) -> None:
        super().__init__(clock.limit, clock.began)
        self.run, self.epoch = run, epoch

    def __call__(self) -> bool:
        there = self.epoch is not None and self.epoch <= self.run.epoch < self.run.parts.method.training.epochs
        return super().__call__() or there


def branches_of(texts: Sequence[str], configured: Callable[[Sequence[str]], Config], at: int) -> list[Branch]:
    """Each text, KEY=VALUE once or several times with spaces between, as a branch that parts after epoch `at`.

    `configured` gives settings their place.
    """
    found: dict[str, Branch] = {}
    for text in texts:
        settings = [] if text.strip() == UNCHANGED else text.split()
        table = parse_settings(settings)
        name = "+".join(f"{key.rpartition('.')[2]}={value}" for key, value in table.items()) or UNCHANGED
        name = re.sub(r"[^\w.=+-]", "-", name)
        if name in found or name == TRUNK:
            raise UsageError(f'--branch "{text}": another is called {name}, too; say each way to go on once')
        config = configured(settings)
        unread = unheeded(config, table.keys())
        if unread:
            raise UsageError(f'--branch "{text}": {unread}; leave it out')
        if config.training.epochs is not None and config.training.epochs <= at:
            raise UsageError(f'--branch "{text}": it would be over before it begins, after epoch {at}; give it more epochs')
        found[name] = Branch(name, config)
    return list(found.values())


def trained(run: Run, epoch: int | None, name: str, clock: Clock) -> bool:
    """Train to the epoch, or to the run's end; False where time was over before. A signal ends the command with its exit code."""
    stopper = StopAt(run, epoch, clock)
    if not run.done and (epoch is None or run.epoch < epoch):
        show_epochs(run, stopper, name)
    if stopper.signal is not None:
        console.print(f"stopped after epoch {run.epoch} of {name}; give the command again to go on")
        raise typer.Exit(stopper.exit_code)
    return run.done or (epoch is not None and run.epoch >= epoch)


def trunk_at(place: Path, config: Config, at: int, begun: bool) -> Run:
    """The common run, where it stands. `begun`: branches have parted from it already."""
    run = opened(place, config, resume=True)
    check_some_wrong(run.rows)
    if run.epoch > at or (begun and run.epoch < at):
        raise UsageError(
            f"{place}: the common run stands after epoch {run.epoch}, and this command says --at {at}; use --at {run.epoch}, "
            f"or another --out"
        )
    return run


def grown(place: Path, branch: Branch, trunk: Config, state: Checkpoint, timings: list[dict[str, Any]]) -> Run:
    """The branch's run: where it was left, or where the common run stands. One that cannot stand there leaves no folder."""
    run = opened(place / branch.name, branch.config, resume=True)
    if run.epoch == 0:
        try:
            _check_judge(branch.config, trunk, state)
            early = RunFolder(place / TRUNK).early_losses
            if early.is_file():  # written at the end of the warm-up, which no branch sees again
                atomic.write_bytes(run.home.early_losses, early.read_bytes())
            start_from_state(run, state, timings)
        except (KeyError, RuntimeError, ValueError) as error:
            run.home.discard()
            raise ToolError(
                f"{run.home.path}: it cannot go on from the common run ({type(error).__name__}), for it would have been "
                f"another one from the start; such a setting is none for --branch: train it by itself"
            ) from None
        except ToolError:
            run.home.discard()
            raise
    return run


def _check_judge(config: Config, trunk: Config, state: Checkpoint) -> None:
    """A `ValueError` where one kind of prototypes would go on with what another has learnt: they have the same sizes."""
    here, there = ("cpc" if one.cleaner in PROTOTYPES else one.cleaner for one in (config, trunk))
    if here not in (there, *MIXTURES) and any(name.startswith("method.judge") for name in state.tensors):
        raise ValueError(f"{here} has other prototypes than {there}")


def measures(line: Mapping[str, Any]) -> dict[str, float | None]:
    """The columns of one line of metrics.jsonl, means over both networks; None where it has not been measured."""
    return {name: number(line, key) for name, (key, _) in MEASURES.items()}


def rounded(found: Mapping[str, float | None], columns: Iterable[str]) -> list[str]:
    """The columns as text, each with its decimals; "" where nothing was measured."""
    return ["" if found[name] is None else f"{found[name]:.{MEASURES[name][1]}f}" for name in columns]


def lines_of(place: Path, name: str) -> list[dict[str, Any]]:
    """What the branch has measured so far; the division after the last epoch is none of it."""
    folder = RunFolder(place / name)
    lines = run_files.records(folder.metrics)
    return [line for line in lines if line["phase"] != "final"]


def names_in(place: Path) -> list[str]:
    """The branches that have begun there, also those of other commands."""
    return sorted(path.name for path in place.iterdir() if path.name != TRUNK and RunFolder(path).config.exists())


def written(place: Path, branches: Sequence[Branch]) -> None:
    """DIR/branches.csv anew: these branches, then those of other commands; what is common to all stands in each."""
    named = [branch.name for branch in branches]
    with held(place / ".locks" / "table", wait=True):  # read inside: another process may have gone on meanwhile
        names = [*named, *(name for name in names_in(place) if name not in named)]
        atomic.write_text(place / TABLE, _table(place, names))


def _table(place: Path, names: Sequence[str]) -> str:
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(("branch", "epoch", "phase", *MEASURES))
    for name in names:
        for line in lines_of(place, name):
            rows.writerow((name, line["epoch"], line["phase"], *rounded(measures(line), MEASURES)))
    return text.getvalue()


def ends(place: Path, branches: Sequence[Branch]) -> Iterator[tuple[str, int, dict[str, float | None]]]:
    """(branch, epoch, measures) at the last epoch that all which have begun have reached."""
    known = {branch.name: lines for branch in branches if (lines := lines_of(place, branch.name))}
    last = min((lines[-1]["epoch"] for lines in known.values()), default=0)
    for name, lines in known.items():
        yield name, last, measures(next(line for line in lines if line["epoch"] == last))


def say(place: Path, branches: Sequence[Branch]) -> None:
    table = Table(Column("branch", overflow="fold"), "epoch", *SHOWN.values(), box=None, padding=(0, 1, 0, 0))
    for name, epoch, found in ends(place, branches):
        table.add_row(name, str(epoch), *rounded(found, SHOWN))
    console.print(table)
    console.print(f"every epoch: {place / TABLE}")


def main(
    data: Annotated[str, typer.Argument(help="As for `labelsieve train`; the true labels must be known.")],
    at: Annotated[int, typer.Option(help="The epoch after which branches part.")],
    branch: Annotated[
        list[str],
        typer.Option(help=f"What to change from there on: KEY=VALUE, several with spaces between; {UNCHANGED}: nothing. Repeat."),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the runs; made, or gone on with.")],
    until: Annotated[int | None, typer.Option(help="Stop every branch after this epoch.")] = None,
    preset: Annotated[str | None, typer.Option(help="A named group of settings.")] = None,
    noise: Annotated[str | None, typer.Option(help="Wrong labels to make on purpose.")] = None,
    time_limit: Annotated[str | None, typer.Option(help="Stop cleanly before this much time has passed: 9m.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, any setting, of all.")] = None,
) -> None:
    """Train one run to an epoch, go on from there in several ways, and print where they are."""
    clock = Clock(parse_duration(time_limit) if time_limit else None, time.monotonic())

    def configured(more: Sequence[str]) -> Config:
        return resolve(data, named=preset, options={"data.noise": noise}, settings=[*(settings or ()), *more])

    config = configured(())
    _check_epochs(config, at, until)
    branches = branches_of(branch, configured, at)
    _check_place(out)
    with held(out / ".locks" / TRUNK, wait=True):  # other processes wait here until it is trained
        trunk = trunk_at(out / TRUNK, config, at, begun=bool(names_in(out)))
        left = [] if trained(trunk, at, TRUNK, clock) else [TRUNK, *(one.name for one in branches)]
    if trunk.done:  # it found its own length
        raise UsageError(f"--at {at}: the common run had {trunk.epoch} epochs and is over; use an earlier one and another --out")
    state, timings = state_of(trunk), trunk.timings
    del trunk  # a device may have little room for two
    for one in [] if left else branches:
        try:
            with held(out / ".locks" / one.name) as ours:
                if ours and (clock.is_over or not trained(grown(out, one, config, state, timings), until, one.name, clock)):
                    left.append(one.name)
        finally:  # also after a signal: what was measured is in the table
            written(out, branches)
    if left:
        console.print(f"time is over, and left are {', '.join(left)}; give the command again to go on")
    if (out / TABLE).exists():
        say(out, branches)


def _check_epochs(config: Config, at: int, until: int | None) -> None:
    epochs = config.training.epochs
    if at < 1 or (epochs is not None and at >= epochs):
        choice = "choose 1 or a later epoch" if epochs is None else f"choose an epoch from 1 to {epochs - 1}"
        raise UsageError(f"--at {at}: branches part after an epoch of a run and before its last; {choice}")
    if until is not None and until <= at:
        raise UsageError(f"--until {until} is not after --at {at}; leave it out, or choose a later epoch")


def _check_place(out: Path) -> None:
    if out.exists() and not (out / ".locks").is_dir() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out}: it exists and holds no branches; choose another --out")


if __name__ == "__main__":
    as_command(main)
