"""Shows a run as it goes: a bar on a terminal, one plain line an epoch elsewhere. Stops on Ctrl-C, SIGTERM or at a limit."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from labelsieve.issues.percent import rounded
from labelsieve.results.tail import tail
from labelsieve.terminal.console import console
from labelsieve.terminal.durations import say_duration
from labelsieve.train.loop import Progress as Step
from labelsieve.train.loop import Run, drive


class Stopper:
    """Says when to stop after the current epoch: the time limit would be overrun by one more like the last, or a signal came."""

    def __init__(self, limit: float | None = None, began: float | None = None) -> None:
        """`began` is when the limit's clock started (`time.monotonic`), if before now: opening data may take minutes."""
        self.limit = limit
        self.last = time.monotonic()
        self.began = self.last if began is None else began
        self.signal: int | None = None

    def __call__(self) -> bool:
        now = time.monotonic()
        epoch, self.last = now - self.last, now
        return self.signal is not None or (self.limit is not None and now - self.began + epoch > self.limit)

    @property
    def exit_code(self) -> int:
        """As shells say it: 130 for Ctrl-C, 143 for SIGTERM. With 0 a script would go on with a run that is not done."""
        return 0 if self.signal is None else 128 + self.signal

    @contextmanager
    def listening(self) -> Iterator[None]:
        """The first Ctrl-C or SIGTERM (schedulers, `kill`) asks for a stop after this epoch, the second stops at once."""

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        def heard(signum: int, frame: FrameType | None) -> None:
            self.signal = signum
            restore()
            again = "press Ctrl-C" if signum == signal.SIGINT else "send the signal"
            console.print(f"stopping after this epoch; {again} again to stop at once", style="yellow")

        before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            restore()


def follow(run: Run, stopper: Stopper, title: str = "", after: Callable[[Step], None] = lambda step: None) -> bool:
    """Train the run and show it; True when it is done, False when it stopped early and can go on. `after` sees each epoch."""
    with stopper.listening():
        if console.is_terminal:
            _with_bar(run, stopper, title, after)
        else:
            for step in drive(run, stopper):
                after(step)
                if step.record["phase"] != "final":
                    console.print(f"{title}{' ' if title else ''}{line(step)}")
                _say(step)
    return run.done


def _with_bar(run: Run, stopper: Stopper, title: str, after: Callable[[Step], None]) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title or "training", total=run.parts.recipe.epochs, completed=run.epoch, state="")
        for step in drive(run, stopper):
            after(step)
            bar.update(task, completed=step.epoch, state=line(step))
            _say(step)


def _say(step: Step) -> None:
    for note in step.new_notes:
        console.print(f"note (epoch {step.record['epoch']}): {note}", style="yellow")


def line(step: Step) -> str:
    """Epoch, phase, loss, accuracy, share of clean labels, time left."""
    words = said(step.record, step.epoch, step.epochs)
    left = (step.epochs - step.epoch) * step.seconds
    words.append(f"{step.seconds:.1f} s" + (f", about {say_duration(left)} left" if left else ""))
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
    for name in ("auc_loss", "auc_prototype"):
        values = [value for value in final.get(name, ()) if value is not None]
        if values:
            found[name] = sum(values) / len(values)
    return found


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
    for key, words in (("auc_loss", "AUC of the mixture"), ("auc_prototype", "AUC of the prototypes")):
        if key in found:
            table.add_row(words, f"{found[key]:.4f}")
    if table.row_count:
        console.print(table)
