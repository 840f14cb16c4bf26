"""How long may networks learn on all labels before they memorise the wrong ones? A trial on held-out vectors tells.

On frozen features a small network fits any labels within a few epochs. So before a run begins, networks train on four fifths of
the vectors at several learning rates, and the rest tell when they stop learning what holds for others too: that rate and that
number of epochs make the warm-up. Seconds, for vectors are small.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from labelsieve.config.schema import Config, override
from labelsieve.engine.device import choose_device
from labelsieve.methods.epochs import Diverged, learn
from labelsieve.methods.parts.streams import PLAN, seeded
from labelsieve.runs.rows import Rows
from labelsieve.train.build import engine_for, make_for, method_for, only, views_of

RATES = (0.05, 0.015, 0.005, 0.0015)
FOLDS = 5  # one of which is held out
LARGEST = 20_000  # vectors: more settle nothing that so many leave open
PATIENCE = 2  # epochs without a better one, after which a rate has shown what it can
PLAIN = "ce"
THIRD = 2  # the number of the network that tries: neither of the run's own two


@dataclass(frozen=True)
class WarmUp:
    epochs: int
    lr: float
    loss: float  # of labels that were held out

    def settings(self) -> dict[str, float]:
        return {"training.warmup": self.epochs, "training.lr": self.lr}

    def words(self) -> str:
        epochs = "1 epoch" if self.epochs == 1 else f"{self.epochs} epochs"
        return (
            f"warm-up: {epochs} at learning rate {self.lr:g}, after which held-out labels are no longer learnt better; "
            f"otherwise with --set training.warmup=N --set training.lr=X"
        )


def tried(config: Config, rows: Rows) -> WarmUp:
    """The best of all rates, within the epochs that the configuration allows for the warm-up."""
    least = min(config.training.warmup, 1)
    found = [each for rate in RATES for each in _course(config, rows, rate)]
    return min(found, key=lambda each: each.loss) if least and found else WarmUp(config.training.warmup, RATES[-1], 0.0)


def _course(config: Config, rows: Rows, rate: float) -> Iterator[WarmUp]:
    """A network's loss on held-out vectors after each epoch, until it has been getting worse."""
    config = override(config, {"training.lr": rate, "training.lr_drop": 1.0, "method": PLAIN, "training.schedule": "step"})
    order = torch.randperm(len(rows.data), generator=seeded(config.seed, PLAN))[:LARGEST]
    held, taken = order[: len(order) // FOLDS], order[len(order) // FOLDS :]
    if len(held) == 0 or len(taken) < 2:
        return
    config = override(config, {"training.warmup_batch": min(config.training.warmup_batch, len(taken))})
    device, data, epochs = choose_device(config.device), rows.data.rows(taken), config.training.warmup
    engine = engine_for(config, data, views_of(rows.collection, config.views), device)
    method = method_for(config, data, only(make_for(config, rows.collection, device), THIRD), device)
    engine.adopt(method)
    values, labels = engine.place(rows.data.images[held]), rows.data.labels[held]
    best = WarmUp(0, rate, torch.inf)
    with suppress(Diverged):  # this rate is too high
        for epoch in learn(method, engine, stop=epochs):
            latest = WarmUp(epoch.index + 1, rate, _loss(engine.predict(method.nets[0], values).logits, labels))
            yield latest
            best = min(best, latest, key=lambda each: each.loss)
            if latest.epochs - best.epochs >= PATIENCE:
                return


def _loss(logits: Tensor, labels: Tensor) -> float:
    loss = float(F.cross_entropy(logits.float().cpu(), labels))
    return loss if loss == loss else torch.inf
