"""How many epochs a run has: its configuration and what was decided after the warm-up go in, a number comes out."""

from labelsieve.method.estimate import mixed_epochs_for
from labelsieve.runs.config import Config


def epochs_of(config: Config, decided: int | None = None) -> int:
    """As decided, else as configured; while they are open, as many as half the labels wrong would ask for."""
    return decided or config.training.epochs or config.training.warmup + mixed_epochs_for(0.5)
