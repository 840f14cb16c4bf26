"""Chooses which epoch's networks become the model, and measures them on the test pictures.

By the rule `best-val` the epoch that does best on the validation pictures is kept; nothing is ever chosen on test pictures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labelsieve.config.schema import Config
from labelsieve.errors import ToolError
from labelsieve.methods.contract import Method
from labelsieve.predict.evaluate import measured
from labelsieve.predict.model import Model, built
from labelsieve.results.outcome import model_facts, model_tensors
from labelsieve.runs.rows import Rows


@dataclass(frozen=True)
class Chosen:
    """The best epoch so far, counted from 1, its percentage on the validation pictures, and its networks on the host."""

    epoch: int
    accuracy: float
    tensors: Mapping[str, Tensor]

    def facts(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "accuracy": self.accuracy}


def check_choice(config: Config, rows: Rows) -> None:
    """A `ToolError` where the rule asks for validation pictures and there are none."""
    if config.output.model == "best-val" and rows.val is None:
        raise ToolError(
            f"{config.data.source}: it has no validation pictures to choose a model with; "
            f"add some, or keep the last epoch with --set output.model=last"
        )


def better(best: Chosen | None, record: Mapping[str, Any], method: Method) -> Chosen | None:
    """The best epoch after this one; of equal ones the first."""
    if "validation" not in record or (best is not None and record["validation"]["both"] <= best.accuracy):
        return best
    tensors = {name: value.clone() for name, value in model_tensors(method).items()}
    return Chosen(record["epoch"], record["validation"]["both"], tensors)


def model_of(chosen: Chosen, config: Config, rows: Rows, method: Method, device: torch.device) -> Model:
    """The chosen networks, ready to look at pictures."""
    return built(model_facts(config, method, rows.collection), dict(chosen.tensors), device)


def tested(chosen: Chosen, config: Config, rows: Rows, method: Method, device: torch.device) -> dict[str, Any]:
    """What the final record says of the chosen model: its epoch, and its accuracy on the test pictures, met here only."""
    record: dict[str, Any] = {"chosen_epoch": chosen.epoch, "chosen_validation": chosen.accuracy}
    model, batch = model_of(chosen, config, rows, method, device), config.engine.eval_batch
    if rows.test is not None and rows.test is not rows.val:
        record["accuracy"] = measured(model, rows.test, batch)
    if rows.collection.also:
        record["also"] = {name: measured(model, held, batch) for name, held in rows.collection.also.items()}
    return record
