"""What a study needs of its data and runs: test pictures, every sample in every epoch, known wrong labels. If not, it says so."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labelsieve.config.schema import Config
from labelsieve.data.noisy_data import Held
from labelsieve.errors import ToolError, UsageError
from labelsieve.results.kept import EarlyLosses, read_early_losses
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rows import Rows


def check_every_row(config: Config) -> None:
    """A `UsageError` where networks would see draws of rows: what a study puts side by side would be of different samples."""
    if config.training.epoch_batches:
        raise UsageError(
            f"training.epoch_batches is {config.training.epoch_batches}, and this study looks at every sample in every epoch; "
            f"use --set training.epoch_batches=0"
        )


def known_losses(folder: RunFolder) -> EarlyLosses:
    """A run's losses after the warm-up, of every sample, some of them wrong; a `ToolError` where that is not known of it."""
    path = folder.path
    if folder.read_config().training.epoch_batches:
        raise ToolError(f"{path}: its networks saw draws of the samples; this study needs a run in which they saw all of them")
    early = read_early_losses(folder)
    if early.wrong is None or not early.wrong.any():
        raise ToolError(f"{path}: no label is known to be wrong, so there is nothing to measure; make noise with --noise sym:0.2")
    return early


def held_pictures(rows: Rows) -> Held:
    if rows.test is None:
        raise ToolError("there are no test pictures to measure accuracy on; use data with a test or val split")
    return rows.test


def check_same(path: Path, there: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """A `UsageError` where a file that is not made again was made of other data or with other settings."""
    other = [name for name, value in asked.items() if name in there and there[name] != value]
    if other:
        name = other[0]
        raise UsageError(
            f"{path}: made with {name} {there[name]}, asked for is {asked[name]}; choose another --out, or move it away"
        )
