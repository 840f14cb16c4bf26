"""Shows a run from what was read to what it found, and how to resume it where it stopped; `train` and `resume` share it."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from labelsieve.config.lengths import method_words
from labelsieve.config.schema import Config
from labelsieve.issues.estimate import BY_THE_RUN, sentence
from labelsieve.issues.rules import ACTIONS
from labelsieve.results.cautions import cautions
from labelsieve.runs.findings import things_of
from labelsieve.runs.rounds import round_of, rounds_up_to
from labelsieve.runs.rows import Rows
from labelsieve.terminal.console import console
from labelsieve.terminal.ending import interruptible
from labelsieve.terminal.looking import Looking, say_rows
from labelsieve.terminal.progress import say_summary, show_epochs
from labelsieve.train.loop import each_epoch
from labelsieve.train.ranks import Meeting, run_together
from labelsieve.train.run import Run
from labelsieve.train.start import start, start_or_resume
from labelsieve.train.stop import Stopper

if TYPE_CHECKING:
    from labelsieve.runs.rounds import RoundFacts

TOO_EARLY = "interrupted before the first epoch; nothing is lost, give the command again"


def opened(out: Path, config: Config, resume: bool = True, met: Meeting | None = None) -> Run:
    """A new run in `out`, or with `resume` the one that is there; the reading of its data is shown."""
    with interruptible(TOO_EARLY), Looking().shown() as watch:
        begins = start_or_resume if resume else start
        return run_together(met, lambda: begins(out, config, watch), out, device=config.device, watch=watch)


def made_wrong(rows: Rows) -> str:
    """What share of the labels was made wrong on purpose, and how, as more words on the data; "" where none was."""
    return (
        "" if rows.noise is None else f", {100 * float(rows.noise.flipped.double().mean()):.1f} % made wrong ({rows.noise.spec})"
    )


def show_training(run: Run, limit: float | None, began: float | None = None) -> None:
    """Train to the end or to the limit (seconds since `began`), and say what came out. A signal ends it with its exit code."""
    if run.parts.engine.ranks.rank:
        train_along(run)
        return
    folder, path = run.home, run.home.path
    if run.done:
        console.print(f"{path}: already done, {run.epoch} epochs")
        return
    say_rows(run.rows, run.choices, folder.left_out if folder.left_out.exists() else None)
    epochs = run.parts.method.training.epochs
    where = f"epoch {run.epoch} of {epochs}" if run.epoch else f"{epochs} epochs"
    count = f"{len(run.rows.data):,} {things_of(run.config.data.source)}"
    console.print(
        f"{method_words(run.config)} on {run.config.data.source}: {count}, "
        f"{len(run.rows.data.classes)} classes{made_wrong(run.rows)}, {where}, {run.parts.engine.device}"
    )
    stopper = Stopper(limit, began)
    again = f"labelsieve resume {shlex.quote(str(path))}"
    with interruptible(f"stopped at once; resume from the last checkpoint with:\n  {again}"):
        done = show_epochs(run, stopper)
    if done:
        say_summary(run)
        _say_findings(run)
        begun = round_of(run.config)
        if begun is not None:
            say_rounds(rounds_up_to(path, begun, run.found, run.record))
        console.print(f"done: {path}; most suspicious labels first in {folder.issues}")
    else:
        console.print(f"stopped after epoch {run.epoch} of {run.parts.method.training.epochs}; resume with:")
        console.print(f"  {again}")
        raise typer.Exit(stopper.exit_code)


def train_along(run: Run) -> None:
    """Train as another process does that says how it goes; a signal here stops them all."""
    stopper = Stopper()
    with stopper.listening(lambda words: None):
        for _ in each_epoch(run, stopper):
            pass


def _say_findings(run: Run) -> None:
    """How many labels seem wrong, what to do about those that are listed, and when not to trust it; as card and report say."""
    found = run.found
    issues = int(found.is_issue.sum())
    actions = ", ".join(f"{found.issue_actions[name]:,} to {name}" for name in ACTIONS if found.issue_actions[name])
    listed = "is listed as an issue" if issues == 1 else "are listed as issues"
    lead = f"{sentence(found.share)} " if found.share.known else ""  # else a caution says so
    console.print(f"{lead}{issues:,} of {len(found.score):,} labels {listed}{': ' if actions else ''}{actions}")
    if found.odd_words:
        console.print(f"odd samples, whatever their labels: {found.odd_words}; review shows them")
    for caution in cautions(found, run.record):
        console.print(f"caution: {caution}", style="yellow")


def say_rounds(found: "Sequence[RoundFacts]") -> None:
    """What is not measured in any round has no column."""
    from labelsieve.runs.rounds import table_of

    header, rows = table_of(found)
    table = Table(title="rounds", title_justify="left")
    for name in header:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(BY_THE_RUN)
