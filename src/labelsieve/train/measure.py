"""Measures each epoch against true labels and held-out samples, and chooses which epoch becomes the model.

By the rule `best-val` the epoch that does best on the validation samples is kept; nothing is ever chosen on test samples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from labelsieve.config.schema import Config
from labelsieve.data.noisy_data import Held, NoisyData, Truth
from labelsieve.engine.plain import PlainEngine, Prediction
from labelsieve.errors import ToolError
from labelsieve.methods.contract import Method, Verdict
from labelsieve.methods.epochs import FINAL, Epoch
from labelsieve.methods.parts import diagnostics
from labelsieve.predict.evaluate import accuracies, measured
from labelsieve.predict.model import Model, built
from labelsieve.results.outcome import model_facts, model_tensors
from labelsieve.runs.rows import Rows


@dataclass(frozen=True)
class Measure:
    """Holds what an epoch is held against. Nothing of it goes back into training."""

    data: NoisyData
    truth: Truth | None
    test: Held | None
    method: Method
    engine: PlainEngine
    val: Held | None = None  # where given, epochs are measured on these, for a choice between them, and not on test pictures
    also: Mapping[str, Held] = field(default_factory=dict)  # further test sets, by name

    def record(self, epoch: Epoch) -> dict[str, Any]:
        epochs = self.method.training.epochs
        line: dict[str, Any] = {"epoch": min(epoch.index + 1, epochs), "phase": epoch.phase}
        line["lr"] = self.method.lr_at(min(epoch.index, epochs - 1))
        if epoch.trained:
            names = dict.fromkeys(name for each in epoch.trained for name in each.terms)
            line["loss"] = {name: _means(epoch, name) for name in names}
            line["steps"] = [len(each.values) for each in epoch.trained]
        if epoch.verdict is not None:
            line |= self._cleaning(epoch.verdict)
        return line if epoch.phase == FINAL else line | self._accuracies()

    def _accuracies(self) -> dict[str, Any]:
        if self.val is not None:
            return {"validation": self.accuracy_on(self.val)}
        line: dict[str, Any] = {} if self.test is None else {"accuracy": self.accuracy_on(self.test)}
        return line | ({"also": {name: self.accuracy_on(held) for name, held in self.also.items()}} if self.also else {})

    def accuracy_on(self, held: Held) -> dict[str, float]:
        """Percent on held pictures: each network, both (sum of logits), and the prototypes where there are any."""
        seen = [self.engine.predict(eye, held.images) for eye in self.method.model]
        scores = [prototype_scores(self.method, r, prediction) for r, prediction in enumerate(seen)]
        return accuracies([prediction.logits for prediction in seen], scores, held.labels)

    def _cleaning(self, verdict: Verdict) -> dict[str, Any]:
        line: dict[str, Any] = {"clean_share": [float(mask.double().mean()) for mask in verdict.clean]}
        if len(verdict.opinions) > 1:
            first, last = next(iter(verdict.opinions)), verdict.counts
            pairs = list(zip(verdict.opinions[first], verdict.opinions[last]))
            thresholds = verdict.thresholds[first], verdict.thresholds[last]
            line["divergence"] = [diagnostics.divergence(a, b) for a, b in pairs]
            line["consistency"] = [diagnostics.consistency(a, b, *thresholds) for a, b in pairs]
        line |= self._against_truth(verdict)
        return line | ({"notes": list(verdict.notes)} if verdict.notes else {})

    def _against_truth(self, verdict: Verdict) -> dict[str, Any]:
        if self.truth is None:
            return {}
        whole = self.truth.labels == self.data.labels
        right = [whole[rows] for rows in verdict.rows] or [whole] * len(verdict.clean)
        line: dict[str, Any] = {"wrong_labels": int((~whole).sum())}
        for name, chances in verdict.opinions.items():
            line[f"auc_{name}"] = [diagnostics.auc(*pair) for pair in zip(chances, right)]
        measured = [diagnostics.precision_recall(*pair) for pair in zip(verdict.clean, right)]
        line["clean_precision"] = [precision for precision, _ in measured]
        line["clean_recall"] = [recall for _, recall in measured]
        return line


def _means(epoch: Epoch, name: str) -> list[float]:
    """The mean of a loss term over each phase that has it."""
    having = [each for each in epoch.trained if name in each.terms]
    return [float(each.values[:, each.terms.index(name)].mean()) for each in having]


@torch.no_grad()
def prototype_scores(method: Method, r: int, seen: Prediction) -> Tensor | None:
    """The class scores of network r's prototypes, once they have learnt."""
    prototypes = method.prototypes(r)
    return None if prototypes is None else prototypes.classify(seen.features)


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
