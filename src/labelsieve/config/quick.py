"""`--quick`: settings for the fewest epochs that rank labels well, by the number of samples. No full training.

Networks that have made enough plain steps, the last of them at a small learning rate, rank labels well as they are, together with
prototypes learnt on their features; mixed epochs would have to go on for long to be ahead again. Small sets make few steps in
ten epochs: there mixed epochs are what teaches the networks, and cost seconds. LOG.md has the figures.
"""

import math
from collections.abc import Collection
from typing import Any

from labelsieve.errors import UsageError

PLAIN = 10  # epochs
ENOUGH = 1000  # steps
LATE_LR = 0.02  # of the prototypes: they learn once, at the end
LATE_STEPS = 300
WARMUP, MIXED = 3, 6  # epochs, of sets too small for that
DECIDED = (
    "training.epochs",
    "training.warmup",
    "training.lr_drop",
    "training.lr_drop_factor",
    "cleaning.prototype_lr",
    "cleaning.prototype_warmup",
    "cleaning.passes",
)


def quick_settings(samples: int, warmup_batch: int, batch: int) -> dict[str, Any]:
    """By key."""
    if PLAIN * math.ceil(samples / warmup_batch) < ENOUGH:
        # Too short for the learning rate to drop.
        lengths = {"training.warmup": WARMUP, "training.epochs": WARMUP + MIXED, "training.lr_drop": 1.0}
        return lengths | {"cleaning.prototype_warmup": 0.0}
    drop = 10.0  # the prototypes' rate drops with the networks'
    return {
        "training.warmup": PLAIN,
        "training.epochs": PLAIN,
        "training.lr_drop": 0.7,
        "training.lr_drop_factor": drop,
        "cleaning.prototype_lr": LATE_LR * drop,
        "cleaning.passes": math.ceil(LATE_STEPS * batch / samples),
    }


def check_quick(told: Collection[str]) -> None:
    """What `--quick` decides cannot be told as well, or one of both would be ignored in silence."""
    twice = [key for key in DECIDED if key in told]
    if twice:
        raise UsageError(f'--quick decides "{twice[0]}": leave out that setting, or --quick (--set training.quick=false)')


def quick_words(settings: dict[str, Any]) -> str:
    plain = settings["training.warmup"]
    mixed = settings["training.epochs"] - plain
    rest = f"{mixed} mixed ones" if mixed else "no mixed ones"
    return f"quick: {plain} plain epochs and {rest}, enough to rank labels; for a robust model train without --quick"
