"""What `train --dry-run` shows: the resolved configuration, and what would be made from which data."""

from pathlib import Path

from rich.console import Console

from labelsieve.cli.console import console
from labelsieve.cli.looking import Looking
from labelsieve.runs.assemble import recipe_for, rows_for
from labelsieve.runs.config import Config, to_yaml
from labelsieve.runs.own import Watch, check_names
from labelsieve.runs.train import settled


def say_plan(config: Config, out: Path | None) -> None:
    check_names(config)
    with Looking(Console(stderr=True, soft_wrap=True)).shown() as watch:
        rows = rows_for(config, Watch(watch.progress))
    config, choices = settled(config, rows)
    recipe = recipe_for(config)
    console.print(to_yaml(config), end="")
    wrong = "" if rows.noise is None else f", {100 * float(rows.noise.flipped.double().mean()):.1f} % made wrong"
    test = 0 if rows.test is None else len(rows.test.labels)
    console.print(
        f"# data: {len(rows.data)} pictures {rows.data.shape}, {len(rows.data.classes)} classes{wrong}; {test} test pictures"
    )
    judged = min(recipe.warmup + recipe.prototype_warmup, recipe.epochs)
    prototypes = "" if config.cleaner.startswith("gmm") else f", divided by prototypes from epoch {judged + 1}"
    mixed = f"{recipe.epochs - recipe.warmup} of mixed training{prototypes}"
    if config.training.epochs is None and config.method != "ce":
        mixed = "20 to 70 of mixed training, by the noise found after it; another number in all with --epochs"
    console.print(f"# plan: {recipe.warmup} epochs of warm-up, {mixed}")
    for choice in choices:
        console.print(f"# {choice}")
    if rows.left_out:
        console.print(f"# left out: {len(rows.left_out):,} pictures; `labelsieve inspect` names them")
    if out is not None:
        state = "exists already: choose another or use --resume" if out.exists() else "would be made"
        console.print(f"# run folder: {out} {state}")
