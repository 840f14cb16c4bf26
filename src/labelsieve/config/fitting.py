"""Settings that follow from the data: network, batches and mixing by size, and --quick's few epochs."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from labelsieve.config.method_settings import all_warm_up
from labelsieve.config.presets import LITTLE_MIXING, OPEN_MIXING, PUBLISHED_MIXING, Settings
from labelsieve.config.schema import Config, override, value_at
from labelsieve.data.augment.strong import SHIFTED_FROM
from labelsieve.errors import UsageError
from labelsieve.methods import PROTOTYPES
from labelsieve.methods.registry import method_named

TINY, SMALL, LARGE = 16, 64, 160  # sides in pixels
MANY, VERY_MANY = 20_000, 100_000  # samples
LARGEST, SMALLEST = 128, 8
STEPS_OF_VECTORS = 12  # likewise of vectors: there a step costs little, and more of them memorise
STEPS = 50  # batches that an epoch should have at least: with 16 of 128, six epochs on 2,000 garments learnt half as much
BATCHES = ((128, 32), (64, 64))  # (from this side in pixels on, the largest batch)
LITTLE_WORDS = {  # what it is, and how to have it as published
    "training.beta": ("Beta(0.5, 0.5)", "--set training.beta=4"),
    "views.policy": ("weak views", "--set views.policy=auto"),
}
FEW = 5_000  # pictures
HEADS_WORDS = (
    "judges: heads on patches of the pictures and networks in five folds, none of which has seen the label it judges "
    "({samples:,} pictures are few); otherwise with --set cleaning.judge=networks"
)
EVAL_VALUES = 512 * 64 * 64  # pixels a channel that are looked at in one go
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


@dataclass(frozen=True)
class Choice:
    name: str
    why: str


def choose_network(size: int, samples: int, cuda: bool) -> Choice:
    """The network that `--network auto` stands for. `size` is a picture's shorter side.

    On a CPU: up to 64 px `small`, from 20,000 samples on `small-wide`; above 64 px `resnet18`.
    On CUDA: under 16 px `small-wide`, under 64 px `preact-resnet18`, from 64 px on `resnet18`, and `resnet50` for pictures
    of 160 px and more when there are at least 100,000 of them.
    """
    if cuda:
        if size < TINY:
            return Choice("small-wide", f"pictures under {TINY} px on a GPU")
        if size < SMALL:
            return Choice("preact-resnet18", f"pictures of {TINY} to {SMALL - 1} px on a GPU")
        if size >= LARGE and samples >= VERY_MANY:
            return Choice("resnet50", f"at least {VERY_MANY:,} pictures of {LARGE} px or more on a GPU")
        return Choice("resnet18", f"pictures of {SMALL} px or more on a GPU")
    if size > SMALL:
        return Choice("resnet18", f"pictures above {SMALL} px")
    if samples >= MANY:
        return Choice("small-wide", f"pictures up to {SMALL} px, at least {MANY:,} of them, on a CPU")
    return Choice("small", f"pictures up to {SMALL} px, under {MANY:,} of them, on a CPU")


def network_for(shape: Sequence[int], samples: int, cuda: bool) -> Choice:
    """The network for samples of one `shape`: (C, H, W), or (D,) for vectors."""
    if len(shape) == 1:
        return Choice("mlp", "vectors, no pictures")
    return choose_network(min(shape[1:]), samples, cuda)


def batch_for(shape: Sequence[int], samples: int) -> int:
    """A power of two: at most 128 (64 from 64 px on, 32 from 128 px on), at least 8, and 50 batches in an epoch if possible.

    Of vectors 12: more steps in an epoch would memorise wrong labels.
    """
    side = min(shape[1:]) if len(shape) == 3 else 0
    largest = next((batch for least, batch in BATCHES if side >= least), LARGEST)
    steps = STEPS if len(shape) == 3 else STEPS_OF_VECTORS
    fitting = 2 ** max(0, (samples // steps).bit_length() - 1)
    return max(min(largest, fitting), min(SMALLEST, samples))


def eval_batch_for(shape: Sequence[int]) -> int:
    """512 up to 64 px, fewer for larger pictures: a pass over them should not need more memory than training does."""
    side = min(shape[1:]) if len(shape) == 3 else 1
    return max(16, min(512, EVAL_VALUES // side**2))


def heads_for(shape: Sequence[int], samples: int) -> bool:
    """Are these pictures too few for networks to judge labels that they trained on? Tiny ones have too few patches."""
    return len(shape) == 3 and min(shape[1:]) >= SHIFTED_FROM and samples <= FEW


def may_be_judged_by_heads(config: Config) -> bool:
    """The baselines and a user's own cleaner judge by themselves."""
    return method_named(config.method).heads_judge and config.cleaner in PROTOTYPES


def mixing_for(network: str, shape: Sequence[int], little: bool = True) -> Settings:
    """How strongly pictures are mixed and varied: little by `small` from 16 px on, otherwise as published.

    Runs on your own data are short. There `small` learns more from pictures that are hardly mixed and weakly varied (LOG.md);
    larger networks were not measured, and the baselines are what their papers say. Tiny pictures are not shifted in weak views:
    hardly varied at all, a few hundred would be memorised.
    """
    is_shifted = len(shape) == 3 and min(shape[1:]) >= SHIFTED_FROM
    return LITTLE_MIXING if network == "small" and is_shifted and little else PUBLISHED_MIXING


def mixing_words(settings: Settings) -> str:
    """Of little mixing, or of the half of it that was left open."""
    said, otherwise = zip(*(LITTLE_WORDS[key] for key in settings))
    return f"mixing: {', '.join(said)} (short runs of the small network learn more this way); to change it: {' '.join(otherwise)}"


def mixed_as_published(config: Config) -> Config:
    """The configuration with nothing of mixing left to the network."""
    return override(config, _left_open(config, PUBLISHED_MIXING))


def _left_open(config: Config, mixing: Settings) -> Settings:
    """Those of `mixing` about which nothing was said."""
    return {key: value for key, value in mixing.items() if value_at(config, key) == OPEN_MIXING[key]}


def fitted(config: Config, shape: Sequence[int], samples: int, cuda: bool) -> tuple[Config, tuple[str, ...]]:
    """The configuration with nothing left open, and a sentence for each choice. One that leaves nothing open comes back."""
    found: dict[str, Any] = {}
    said = []
    if config.network == "auto":
        choice = network_for(shape, samples, cuda)
        found["network"] = choice.name
        said.append(f"network: {choice.name} ({choice.why}); to change it: --network NAME")
    batch = batch_for(shape, samples)
    open_ones = [key for key in ("batch", "warmup_batch") if getattr(config.training, key) == 0]
    found |= {f"training.{key}": batch for key in open_ones}
    if open_ones and batch < LARGEST:
        said.append(
            f"batch: {batch} ({samples:,} samples of {' x '.join(map(str, shape))}); to change it: --set training.batch=N"
        )
    if config.engine.eval_batch == 0:
        found["engine.eval_batch"] = eval_batch_for(shape)
    if config.cleaning.judge == "auto" and heads_for(shape, samples) and may_be_judged_by_heads(config):
        found["cleaning.judge"] = "heads"
        said.append(HEADS_WORDS.format(samples=samples))
    if config.training.quick:
        warmup_batch, batch = (found.get(f"training.{key}", getattr(config.training, key)) for key in ("warmup_batch", "batch"))
        held = found.get("cleaning.judge", config.cleaning.judge) == "heads"
        quick = quick_settings(samples, warmup_batch, batch, held)
        found |= quick
        said.append(quick_words(quick))
    by_network = mixing_for(found.get("network", config.network), shape, method_named(config.method).mixes_little)
    mixing = _left_open(config, by_network)
    whole = override(config, found | mixing)
    if mixing and by_network == LITTLE_MIXING and has_mixed_epochs(whole):
        said.append(mixing_words(mixing))
    return whole, (*said, *filter(None, [all_warm_up(whole)]))


def has_mixed_epochs(config: Config) -> bool:
    """May there be any? A quick run on many samples has none, and nothing needs to be said of how they would be."""
    return config.training.epochs is None or config.training.epochs > config.training.warmup


def quick_settings(samples: int, warmup_batch: int, batch: int, held: bool = False) -> dict[str, Any]:
    """Settings by key for the fewest epochs that rank labels well.

    Networks that have made enough plain steps, the last of them at a small learning rate, rank labels well as they are, together
    with prototypes learnt on their features; mixed epochs would take long to get ahead again. On a small set ten epochs are few
    steps: there mixed epochs are what teaches the networks, and cost seconds. Where heads that have not seen the labels judge
    them (`held`), networks only become the model, and ten plain epochs do. studies/LOG.md has the figures.
    """
    if PLAIN * math.ceil(samples / warmup_batch) < ENOUGH and not held:
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
