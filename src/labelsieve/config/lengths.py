"""How many epochs a run has, by its configuration and by what was decided after the warm-up."""

from labelsieve.config.schema import Config
from labelsieve.methods.parts.estimate import mixed_epochs_for
from labelsieve.methods.registry import METHODS


def divides(config: Config) -> bool:
    """Does the method divide labels, after a warm-up of plain cross-entropy?"""
    method = METHODS.get(config.method)  # a report may be of a method that is not registered here
    return method is not None and method.warms_up


def method_words(config: Config) -> str:
    """The method, and its cleaner if it has one."""
    method = METHODS.get(config.method)
    return config.method if method is None or not method.cleaners else f"{config.method} ({config.cleaner})"


def all_warm_up(config: Config, decided: int | None = None) -> str:
    """What to say where a method that divides labels never gets to it; "" where it does, or is not meant to."""
    epochs, warmup = epochs_of(config, decided), config.training.warmup
    if not divides(config) or config.training.quick or epochs > warmup:
        return ""
    return (
        f"All {epochs} epochs are warm-up (training.warmup is {warmup}): plain cross-entropy, which learns wrong labels, too; "
        f"{config.method} itself never trains. Give more epochs than that, or a shorter warm-up (--set training.warmup=N, in "
        f"Python warmup=N)."
    )


def epochs_of(config: Config, decided: int | None = None) -> int:
    """As decided, else as configured; while they are open, as many as half the labels wrong would ask for."""
    return decided or config.training.epochs or config.training.warmup + mixed_epochs_for(0.5)
