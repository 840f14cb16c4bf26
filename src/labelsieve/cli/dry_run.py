"""What `train --dry-run` shows: what would be made from which data, and with --verbose every setting."""

from pathlib import Path

from rich.console import Console

from labelsieve.config.method_settings import divides, epochs_of, prototype_warmup_for
from labelsieve.config.schema import Config, to_yaml
from labelsieve.data.pictures.options import picture_options
from labelsieve.data.pictures.websets import WEBSETS
from labelsieve.data.web_inspection import web_inspection
from labelsieve.runs.checks import check_names, check_place
from labelsieve.runs.findings import things_of
from labelsieve.runs.rows import Watch, rows_for
from labelsieve.terminal.console import console
from labelsieve.terminal.looking import Looking
from labelsieve.terminal.training import made_wrong
from labelsieve.train.build import prior_for
from labelsieve.train.start import settled


def say_plan(config: Config, out: Path | None, verbose: bool = False) -> None:
    check_names(config)
    if out is not None:
        check_place(out, config)
    if config.data.source.partition(":")[0] in WEBSETS:
        _say_web_plan(config, out)
        _say_settings(config, verbose)
        return
    with Looking(Console(stderr=True, soft_wrap=True)).shown() as watch:
        rows = rows_for(config, Watch(watch.progress, shown=watch.shown))
    config, choices = settled(config, rows)
    test = 0 if rows.test is None else len(rows.test.labels)
    what, classes = things_of(config.data.source), f"{len(rows.data.classes)} classes{made_wrong(rows)}"
    console.print(f"data: {len(rows.data)} {what} {rows.data.shape}, {classes}; {test} test {what}")
    _say_epochs(config)
    for choice in choices:
        console.print(f"{choice}")
    prior_for(config, rows.data)  # so that a table of frequencies that does not fit is found here
    for note in rows.notes:
        console.print(f"note: {note}")
    if rows.left_out:
        console.print(f"left out: {len(rows.left_out):,} pictures; `labelsieve inspect` names them")
    _say_folder(out)
    _say_settings(config, verbose)


def _say_web_plan(config: Config, out: Path | None) -> None:
    """Of a large set only the lists are read: decoding it takes long, and a plan makes nothing."""
    name, _, place = config.data.source.partition(":")
    for line in web_inspection(name, Path(place), picture_options(config.pictures)).lines():
        console.print(f"{line}")
    _say_epochs(config)
    _say_folder(out)


def _say_epochs(config: Config) -> None:
    epochs, warmup = epochs_of(config), config.training.warmup
    if not divides(config):
        console.print(f"plan: {epochs} epochs of {config.method}")
        return
    warmup = min(warmup, epochs)
    judged = min(warmup + prototype_warmup_for(config), epochs)
    prototypes = "" if config.cleaner.startswith("gmm") else _by_prototypes(judged, warmup, epochs)
    batches = config.training.epoch_batches
    drawn = f"; each network draws {batches:,} batches per epoch" if batches else ""
    mixed = f"{epochs - warmup} of mixed training{prototypes}"
    if config.training.epochs is None:
        mixed = "20 to 70 of mixed training, depending on the noise found after it; choose the total with --epochs"
    console.print(f"plan: {warmup} epochs of warm-up, {mixed}{drawn}")


def _by_prototypes(judged: int, warmup: int, epochs: int) -> str:
    """From which mixed epoch on prototypes divide, where there is such an epoch."""
    if judged < epochs:
        return f", divided by prototypes from epoch {judged + 1}"
    return ", too few for prototypes to take over" if warmup < epochs else ""


def _say_folder(out: Path | None) -> None:
    if out is not None:
        state = "exists already: choose another or use --resume" if out.exists() else "would be made"
        console.print(f"run folder: {out} {state}")


def _say_settings(config: Config, verbose: bool) -> None:
    if verbose:
        console.print(f"\n{to_yaml(config)}", end="")
    else:
        console.print("every setting: add --verbose")
