"""What a measurement must know of its data: true labels, pictures to test on. Where it does not, it says so before it begins."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from labelsieve.data.noisy_data import Held
from labelsieve.errors import ToolError, UsageError
from labelsieve.runs.assemble import Rows
from labelsieve.runs.config import Config
from labelsieve.runs.early import EarlyLosses, read_early_losses
from labelsieve.runs.folder import RunFolder


def right_labels(rows: Rows) -> Tensor:
    """(N,) which given labels are the true ones, on the host."""
    if rows.truth is None:
        raise ToolError(
            "the true labels are not known, so there is nothing to measure; make noise on purpose with --noise sym:0.2"
        )
    return rows.truth.labels == rows.data.labels


def wrong_labels(rows: Rows) -> np.ndarray:
    """(N,) the others."""
    return (~right_labels(rows)).numpy()


def check_some_wrong(rows: Rows) -> None:
    """Of labels that are all right there is no ranking to measure: its average precision would read 0."""
    if not wrong_labels(rows).any():
        raise ToolError("no label is wrong here, so there is nothing to rank; make noise on purpose with --noise sym:0.2")


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
