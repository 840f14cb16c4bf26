"""What a run decides for itself once the warm-up is over: settings that were left open follow from the noise it estimates.

Rules (each overridden by giving the setting): `training.lambda_u` by `lambda_for`; from an estimate of 78 % wrong labels on, the
mixture sees the mean of the last 5 losses and asks for 0.6, otherwise of one and 0.5.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from labelsieve.method.estimate import NoiseEstimate, estimate_noise, lambda_for
from labelsieve.method.evidence import Evidence
from labelsieve.method.learner import Learner
from labelsieve.method.recipe import Recipe
from labelsieve.method.stages import Engine, drawn
from labelsieve.runs.config import Config

EXTREME = 0.78  # 90 % symmetric noise on 10 classes is 81 % wrong labels


@dataclass(frozen=True)
class Decision:
    estimate: NoiseEstimate
    lambda_u: float
    mixture_threshold: float
    mixture_memory: int

    def facts(self) -> dict[str, Any]:
        """As it is kept in checkpoints and in estimate.json."""
        return asdict(self)

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> "Decision":
        estimate = dict(facts["estimate"])
        estimate["by_class"] = tuple(estimate["by_class"])
        return cls(**(facts | {"estimate": NoiseEstimate(**estimate)}))

    def words(self) -> str:
        found = self.estimate
        return (
            f"about {100 * found.share:.0f} % of the labels look wrong ({100 * found.low:.0f} to {100 * found.high:.0f} %): "
            f"lambda_u {self.lambda_u:g}, mixture threshold {self.mixture_threshold:g}, memory {self.mixture_memory}"
        )


def left_open(config: Config) -> bool:
    """Is anything to be decided after the warm-up?"""
    return config.training.lambda_u is None or config.cleaning.mixture_threshold is None or config.cleaning.mixture_memory is None


def seen_after_warm_up(learners: Sequence[Learner], recipe: Recipe, engine: Engine) -> list[Evidence]:
    """What both networks make of the same rows: all, or the draw that comes next."""
    rows = drawn(learners[0], recipe, recipe.warmup, engine, recipe.batch)
    return [engine.gather(learner, rows) for learner in learners]


def decide(config: Config, seen: Sequence[Evidence]) -> Decision:
    found = estimate_noise(seen)
    extreme = found.share >= EXTREME
    remembers = extreme and not config.training.epoch_batches  # the losses of other samples are no past
    given, cleaning = config.training.lambda_u, config.cleaning
    return Decision(
        estimate=found,
        lambda_u=lambda_for(found.share, seen[0].classes) if given is None else given,
        mixture_threshold=(0.6 if extreme else 0.5) if cleaning.mixture_threshold is None else cleaning.mixture_threshold,
        mixture_memory=(5 if remembers else 1) if cleaning.mixture_memory is None else cleaning.mixture_memory,
    )


def decided(recipe: Recipe, decision: Decision) -> Recipe:
    return replace(recipe, lambda_u=decision.lambda_u, mixture_threshold=decision.mixture_threshold)
