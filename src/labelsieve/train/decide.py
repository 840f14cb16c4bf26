"""What a run decides for itself: on vectors the warm-up, by a trial before it; after the warm-up, what follows from the noise.

Each rule gives way to an explicit setting. Over the noise estimated after the warm-up: `training.lambda_u` by `lambda_for`,
`training.epochs` by `mixed_epochs_for`, `cleaning.least_clean` by `least_clean_for`, `training.mixed` by `mixes`; from 78 %
wrong labels on, the mixture sees the mean of the last 5 losses and asks for 0.6, otherwise of one and 0.5.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from labelsieve.config.method_settings import settings_for
from labelsieve.config.schema import Config, override, rules_by_key
from labelsieve.engine.device import choose_device
from labelsieve.methods.contract import Look, Method
from labelsieve.methods.epochs import Diverged, learn
from labelsieve.methods.parts.estimate import (
    NEARLY_NONE,
    NoiseEstimate,
    estimate_noise,
    lag_behind,
    lambda_for,
    least_clean_for,
    mixed_epochs_for,
)
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.streams import DRAW, PLAN, seeded
from labelsieve.methods.registry import method_named
from labelsieve.runs.rows import Rows
from labelsieve.train.build import engine_for, make_for, method_for, only, training_for, views_of

RATES = (0.05, 0.015, 0.005, 0.0015)
FOLDS = 5  # one of which is held out
LARGEST = 20_000  # vectors: more settle nothing that so many leave open
PATIENCE = 2  # epochs without a better one, after which a rate has shown what it can
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
    """The best of all rates, within the epochs that the configuration allows for the warm-up.

    On frozen features a small network memorises any labels within a few epochs. So networks train on four fifths of the vectors,
    and the rest tell when they stop learning what holds for others, too. Seconds, for vectors are small.
    """
    least = min(config.training.warmup, 1)
    found = [each for rate in RATES for each in _course(config, rows, rate)]
    return min(found, key=lambda each: each.loss) if least and found else WarmUp(config.training.warmup, RATES[-1], 0.0)


def _course(config: Config, rows: Rows, rate: float) -> Iterator[WarmUp]:
    """A network's loss on held-out vectors after each epoch, until it has been getting worse."""
    config = override(config, {"training.lr": rate, "training.lr_drop": 1.0, "method": "ce", "training.schedule": "step"})
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


EXTREME = 0.78  # 90 % symmetric noise on 10 classes is 81 % wrong labels


PLAIN = "; plain epochs go on until the networks know the labels that are right"


@dataclass(frozen=True)
class NoiseDecision:
    estimate: NoiseEstimate
    lambda_u: float
    mixture_threshold: float
    mixture_memory: int
    least_clean: float = 0.0
    epochs: int | None = None  # in all; None in checkpoints from before there was a rule for them: as configured
    mixed: bool = True

    def facts(self) -> dict[str, Any]:
        """As it is kept in checkpoints and in estimate.json."""
        return asdict(self)

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> "NoiseDecision":
        """A `UsageError` where something was not decided by us: it is in no range that the setting of its name has."""
        for key, rule in rules_by_key().items():
            rule.check(key, facts.get(key.removeprefix("training.").removeprefix("cleaning.")))
        estimate = dict(facts["estimate"])
        estimate["by_class"] = tuple(estimate["by_class"])
        return cls(**(facts | {"estimate": NoiseEstimate(**estimate)}))

    def words(self) -> str:
        """Without the estimate it goes by: one that is fit for people is made at the end."""
        length = f" the run takes {self.epochs} epochs" if self.epochs else ""
        return f"the warm-up is over;{length}{'' if self.mixed else PLAIN}" if length or not self.mixed else "the warm-up is over"


def with_decision(record: dict[str, Any], decision: NoiseDecision) -> dict[str, Any]:
    """The epoch's line in which it is noted what was decided before it."""
    return record | {"decision": decision.facts(), "notes": [decision.words(), *record.get("notes", ())]}


def left_open(config: Config) -> bool:
    """Is anything to be decided after the warm-up? Methods without one decide nothing."""
    if not method_named(config.method).settles:
        return False
    cleaning, training = config.cleaning, config.training
    thresholds = (cleaning.mixture_threshold, cleaning.mixture_memory, cleaning.least_clean)
    return None in (training.lambda_u, training.epochs, training.mixed, *thresholds)


def seen_after_warm_up(method: Method, look: Look) -> list[Evidence]:
    """What all networks make of the same rows: all, or the draw that comes next."""
    training = method.training
    drawn = training.sampler.rows(method.facts.given, training.batch, method.stream(DRAW, method.c.warmup, method.nets[0]))
    return [look.evidence(net, drawn) for net in method.nets]


def decide(config: Config, seen: Sequence[Evidence], found: NoiseEstimate | None = None) -> NoiseDecision:
    """By what both networks have `seen` after the warm-up; `found` is the noise where somebody else has estimated it."""
    found = found or estimate_noise(seen)
    return by_estimate(config, found, mixes(seen, found))


def by_estimate(config: Config, found: NoiseEstimate, mixed: bool) -> NoiseDecision:
    """What was told, and the rest by the rules; `mixed` is whether mixed epochs follow where nothing was told about them."""
    extreme = found.share >= EXTREME
    remembers = extreme and not config.training.epoch_batches  # the losses of other samples are no past
    given, cleaning = config.training.lambda_u, config.cleaning
    epochs = config.training.epochs or config.training.warmup + mixed_epochs_for(found.share)
    return NoiseDecision(
        estimate=found,
        lambda_u=lambda_by(found) if given is None else given,
        mixture_threshold=(0.6 if extreme else 0.5) if cleaning.mixture_threshold is None else cleaning.mixture_threshold,
        mixture_memory=(5 if remembers else 1) if cleaning.mixture_memory is None else cleaning.mixture_memory,
        least_clean=least_clean_for(found.firm) if cleaning.least_clean is None else cleaning.least_clean,
        epochs=epochs,
        mixed=mixed if config.training.mixed is None else config.training.mixed,
    )


def mixes(seen: Sequence[Evidence], found: NoiseEstimate) -> bool:
    """Not where the labels may all be right and the networks have not learnt them yet: there mixing only slows them down.

    Once they have, epochs are mixed, for they would go on with the wrong ones.
    """
    return found.low >= NEARLY_NONE or not lag_behind(seen, found)


def lambda_by(found: NoiseEstimate) -> float:
    """By `lambda_for`; where the interval reaches down to where it is smallest, that.

    An estimate errs upwards where the networks have learnt little, and too large a lambda_u costs far more than one too small.
    """
    classes = len(found.by_class)
    least = lambda_for(0.0, classes)
    return least if lambda_for(found.low, classes) == least else lambda_for(found.share, classes)


def decided(config: Config, decision: NoiseDecision) -> Any:
    """The method's settings from the end of the warm-up on."""
    return replace(
        settings_for(config, decision.epochs),
        lambda_u=decision.lambda_u,
        mixture_threshold=decision.mixture_threshold,
        mixture_memory=decision.mixture_memory,
        least_clean=decision.least_clean,
        mixed=decision.mixed,
        **({"caught_up": decision.estimate.firm} if config.training.mixed is None else {}),
    )


def settle_method(method: Method, config: Config, decision: NoiseDecision) -> None:
    """Give the method what was decided."""
    method.training = training_for(config, decision.epochs)
    method.settle(decided(config, decision))
