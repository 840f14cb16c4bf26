"""What `train` and `resume` share: open a run, follow it to its end or to a stop, say what is there and how to go on."""

import shlex
from dataclasses import replace
from pathlib import Path

import typer

from labelsieve.config.fitting import mixed_as_published
from labelsieve.config.schema import Config
from labelsieve.errors import UsageError, command
from labelsieve.issues.estimate import in_words
from labelsieve.issues.rules import ACTIONS
from labelsieve.results.cautions import cautions
from labelsieve.runs.data_facts import known_files
from labelsieve.runs.findings import read_findings, read_record
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.own import Watch
from labelsieve.runs.rounds import round_of, rounds
from labelsieve.runs.rows import Rows, rows_for
from labelsieve.terminal.console import console
from labelsieve.terminal.ending import interruptible
from labelsieve.terminal.looking import Looking, say_rows
from labelsieve.terminal.progress import Stopper, follow, say_summary
from labelsieve.terminal.rounds import say_rounds
from labelsieve.train.loop import Run, begin, settled, take_up

TOO_EARLY = "interrupted before the first epoch; nothing is lost, give the command again"


def going(out: Path, config: Config, resume: bool) -> Run:
    """A new run in `out`, or with `resume` the one that is there, which must have been told the same."""
    with interruptible(TOO_EARLY), Looking().shown() as watch:
        if not (resume and RunFolder(out).config.exists()):
            return begin(out, config, watch)
        before = RunFolder.open(out).read_config()
        return take_up(out, watch=watch, rows=_compared(before, config, out, watch))


def _compared(before: Config, config: Config, out: Path, watch: Watch) -> Rows | None:
    """Settings that were left open are the same when the data settle them the same; decisions, when they are of one run.

    The data, where they had to be read for that.
    """
    begun = round_of(before)
    if begun is not None and config.data.decisions == begun.parent:  # as they were when the run began
        config = replace(config, data=replace(config.data, decisions=before.data.decisions))
    same = (config, mixed_as_published(config))  # runs from before the network had a say in mixing go on as they began
    if before in same:
        return None
    rows = rows_for(config, watch, known_files(RunFolder(out)))
    if before not in [settled(one, rows)[0] for one in same]:
        raise UsageError(
            f"{out}: the run there has other settings than this command; use {command('resume', out)} to go on with it as "
            f"it is, or another --out"
        )
    return rows


def made_wrong(rows: Rows) -> str:
    """What share of the labels was made wrong on purpose, and how, as more words on the data; "" where none was."""
    return (
        "" if rows.noise is None else f", {100 * float(rows.noise.flipped.double().mean()):.1f} % made wrong ({rows.noise.spec})"
    )


def finish(run: Run, limit: float | None, began: float | None = None) -> None:
    """Train to the end or to the limit (seconds since `began`), and say what came out. A signal ends it with its exit code."""
    path = run.folder.path
    if run.done:
        console.print(f"{path}: already done, {run.epoch} epochs")
        return
    say_rows(run.rows, run.choices, run.folder.left_out if run.folder.left_out.exists() else None)
    where = f"epoch {run.epoch} of {run.parts.recipe.epochs}" if run.epoch else f"{run.parts.recipe.epochs} epochs"
    console.print(
        f"{run.config.method} ({run.config.cleaner}) on {run.config.data.source}: {len(run.rows.data):,} {run.rows.data.things}, "
        f"{len(run.rows.data.classes)} classes{made_wrong(run.rows)}, {where}, {run.parts.engine.device}"
    )
    stopper = Stopper(limit, began)
    go_on = f"labelsieve resume {shlex.quote(str(path))}"
    with interruptible(f"stopped at once; go on from the last checkpoint with:\n  {go_on}"):
        done = follow(run, stopper)
    if done:
        say_summary(run)
        if run.folder.issues.exists():
            _say_findings(run.folder)
        if run.rows.decided is not None:
            say_rounds(rounds(run.folder))
        listed = f"; most suspicious labels first in {run.folder.issues}" if run.folder.issues.exists() else ""
        console.print(f"done: {path}{listed}")
    else:
        console.print(f"stopped after epoch {run.epoch} of {run.parts.recipe.epochs}; go on with:")
        console.print(f"  {go_on}")
        raise typer.Exit(stopper.exit_code)


def _say_findings(folder: RunFolder) -> None:
    """How many labels seem wrong, what to do about those that are listed, and when not to trust it; as card and report say."""
    found = read_findings(folder)
    issues = int(found.is_issue.sum())
    lead, aside = in_words(found.share.share, found.share.low, found.share.high)
    actions = ", ".join(f"{found.issue_actions[name]:,} to {name}" for name in ACTIONS if found.issue_actions[name])
    listed = "is listed as an issue" if issues == 1 else "are listed as issues"
    console.print(
        f"{lead} of the labels seem to be wrong ({aside}); "
        f"{issues:,} of {len(found.score):,} {listed}{': ' if actions else ''}{actions}"
    )
    for caution in cautions(found, read_record(folder)):
        console.print(f"caution: {caution}", style="yellow")
