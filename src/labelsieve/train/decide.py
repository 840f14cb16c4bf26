"""What a run decides for itself once the warm-up is over: settings that were left open follow from the noise it estimates.

Rules (each overridden by giving the setting): `training.lambda_u` by `lambda_for`, `training.epochs` by `mixed_epochs_for`;
`cleaning.least_clean` by `least_clean_for`; `training.mixed` by `mixes`;
from an estimate of 78 % wrong labels on, the mixture sees the mean of the last 5 losses and asks for 0.6, otherwise of one
and 0.5.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from labelsieve.config.method_settings import settings_for
from labelsieve.config.schema import Config
from labelsieve.methods.contract import Look, Method
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
from labelsieve.methods.parts.streams import DRAW
from labelsieve.methods.registry import method_named
from labelsieve.train.build import training_for

EXTREME = 0.78  # 90 % symmetric noise on 10 classes is 81 % wrong labels


PLAIN = "; plain epochs go on until the networks know the labels that are right"


@dataclass(frozen=True)
class Decision:
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
    def from_facts(cls, facts: dict[str, Any]) -> "Decision":
        estimate = dict(facts["estimate"])
        estimate["by_class"] = tuple(estimate["by_class"])
        return cls(**(facts | {"estimate": NoiseEstimate(**estimate)}))

    def words(self) -> str:
        """Without the estimate it goes by: one that is fit for people is made at the end."""
        length = f" the run takes {self.epochs} epochs" if self.epochs else ""
        return f"the warm-up is over;{length}{'' if self.mixed else PLAIN}" if length or not self.mixed else "the warm-up is over"


def with_decision(record: dict[str, Any], decision: Decision) -> dict[str, Any]:
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


def decide(config: Config, seen: Sequence[Evidence], found: NoiseEstimate | None = None) -> Decision:
    """By what both networks have `seen` after the warm-up; `found` is the noise where somebody else has estimated it."""
    found = found or estimate_noise(seen)
    return by_estimate(config, found, mixes(seen, found))


def by_estimate(config: Config, found: NoiseEstimate, mixed: bool) -> Decision:
    """What was told, and the rest by the rules; `mixed` is whether mixed epochs follow where nothing was told about them."""
    extreme = found.share >= EXTREME
    remembers = extreme and not config.training.epoch_batches  # the losses of other samples are no past
    given, cleaning = config.training.lambda_u, config.cleaning
    epochs = config.training.epochs or config.training.warmup + mixed_epochs_for(found.share)
    return Decision(
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


def decided(config: Config, decision: Decision) -> Any:
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


def settle_method(method: Method, config: Config, decision: Decision) -> None:
    """Give the method what was decided."""
    method.training = training_for(config, decision.epochs)
    method.settle(decided(config, decision))
