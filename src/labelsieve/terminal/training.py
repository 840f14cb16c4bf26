"""Shows a run from what was read, through its epochs, to what it found, and how to resume it."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from labelsieve.config.method_settings import method_words
from labelsieve.config.schema import Config
from labelsieve.issues.estimate import BY_THE_RUN, sentence
from labelsieve.issues.rules import ACTIONS
from labelsieve.results.card import cautions
from labelsieve.runs.findings import opinion, rankings, tail, things_of
from labelsieve.runs.rounds import round_of, rounds_up_to
from labelsieve.runs.rows import Rows
from labelsieve.terminal.console import console, interruptible, say_duration
from labelsieve.terminal.looking import Looking, say_rows
from labelsieve.texts import rounded
from labelsieve.train.loop import Progress, Stopper, each_epoch
from labelsieve.train.ranks import Meeting, run_together
from labelsieve.train.run import Run
from labelsieve.train.start import start, start_or_resume

if TYPE_CHECKING:
    from labelsieve.runs.rounds import RoundFacts


def show_epochs(run: Run, stopper: Stopper, title: str = "", after: Callable[[Progress], None] = lambda step: None) -> bool:
    """Train the run and show it; True when it is done, False when it stopped early and can go on. `after` sees each epoch."""
    with stopper.listening(lambda words: console.print(words, style="yellow")):
        if console.is_terminal:
            _with_bar(run, stopper, title, after)
        else:
            for step in each_epoch(run, stopper):
                after(step)
                if step.record["phase"] != "final":
                    console.print(f"{title}{' ' if title else ''}{line(step)}")
                _say(step)
    return run.done


def _with_bar(run: Run, stopper: Stopper, title: str, after: Callable[[Progress], None]) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console) as bar:
        task = bar.add_task(title or "training", total=run.parts.method.training.epochs, completed=run.epoch, state="")
        for step in each_epoch(run, stopper):
            after(step)
            bar.update(task, completed=step.epoch, state=line(step))
            _say(step)


def _say(step: Progress) -> None:
    for note in step.new_notes:
        console.print(f"note (epoch {step.record['epoch']}): {note}", style="yellow")


def line(step: Progress) -> str:
    """Epoch, phase, loss, accuracy, share of clean labels, time left."""
    words = said(step.record, step.epoch, step.epochs)
    which = " of the warm-up" if step.warming_up else ""
    words.append(f"{step.seconds:.1f} s" + (f", about {say_duration(step.left)} left{which}" if step.left >= 1 else ""))
    return "  ".join(words)


def said(record: Mapping[str, Any], epoch: int, epochs: int) -> list[str]:
    """What an epoch measured, in words."""
    words = [f"epoch {epoch}/{epochs}", record["phase"]]
    if "loss" in record:
        first = next(iter(record["loss"].values()))
        words.append(f"loss {sum(first) / len(first):.3f}")
    if "accuracy" in record:
        words.append(f"accuracy {record['accuracy']['both']:.1f} %")
    if "validation" in record:
        words.append(f"validation {record['validation']['both']:.1f} %")
    if "clean_share" in record:
        words.append(f"clean {rounded(sum(record['clean_share']) / len(record['clean_share']), 0)} %")
    return words


def summary(run: Run) -> dict[str, Any]:
    """Last, mean of the last 10 (in a short run `mean_of`) and best test accuracy, the final AUC: each where it was measured."""
    accuracies, end = [record["accuracy"]["both"] for record in run.metrics if "accuracy" in record], tail(run.metrics)
    found: dict[str, Any] = {}
    final = run.metrics[-1] if run.metrics else {}
    if "chosen_epoch" in final:
        found |= {"chosen_epoch": final["chosen_epoch"], "validation": final["chosen_validation"]}
        found |= {"accuracy_chosen": accuracies[-1]} if accuracies else {}
    elif end is not None:
        found |= {"accuracy_last": accuracies[-1], "accuracy_best": max(accuracies)}
        found |= {"accuracy_mean": end.mean, "mean_of": end.epochs} if end.epochs > 1 else {}
    found |= _further(run)
    return found | {key: sum(values) / len(values) for key, values in rankings(final).items()}


def _further(run: Run) -> dict[str, Any]:
    """Top 5 where there are many classes, and test sets beside the first: by the last epoch that measured them."""
    latest: dict[str, Any] = next((record for record in reversed(run.metrics) if "accuracy" in record), {})
    found = {"accuracy_top5": latest["accuracy"]["both_top5"]} if "both_top5" in latest.get("accuracy", {}) else {}
    for name, measured in latest.get("also", {}).items():
        found |= {f"accuracy_{name}": measured["both"]}
        found |= {f"accuracy_{name}_top5": measured["both_top5"]} if "both_top5" in measured else {}
    return found


def say_summary(run: Run) -> None:
    found = summary(run)
    table = Table(show_header=False, box=None, pad_edge=False)
    names = {
        "validation": f"validation accuracy of epoch {found.get('chosen_epoch')}, the best and the model",
        "accuracy_chosen": "test accuracy of that model, measured once",
        "accuracy_last": "accuracy, last epoch",
        "accuracy_mean": f"accuracy, mean of the last {found.get('mean_of')} epochs",
        "accuracy_best": "accuracy, best (chosen on the test set: the paper's protocol)",
    }
    names |= {key: key.replace("_", " ") for key in found if key.startswith("accuracy_") and key not in names}
    for key, words in names.items():
        if key in found:
            table.add_row(words, f"{found[key]:.2f} %")
    for key in rankings({key: [value] for key, value in found.items()}):
        table.add_row(f"AUC of the {opinion(key)}", f"{found[key]:.4f}")
    if table.row_count:
        console.print(table)


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
    stopper = Stopper(limit, began, run.parts.engine.ranks)
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
    """Train as another process does that says how it goes, and end as it does; a signal here stops them all."""
    stopper = Stopper(ranks=run.parts.engine.ranks)
    with stopper.listening(lambda words: None):
        for _ in each_epoch(run, stopper):
            pass
    if not run.done:
        raise typer.Exit(stopper.exit_code)


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
