"""Shows a run's epochs: a bar on a terminal, one plain line per epoch elsewhere."""

from collections.abc import Callable, Mapping
from typing import Any

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from labelsieve.results.tail import opinion, rankings, tail
from labelsieve.terminal.console import console, say_duration
from labelsieve.texts import rounded
from labelsieve.train.loop import Progress, each_epoch
from labelsieve.train.run import Run
from labelsieve.train.stop import Stopper


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
    words.append(f"{step.seconds:.1f} s" + (f", about {say_duration(step.left)} left{which}" if step.left else ""))
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
