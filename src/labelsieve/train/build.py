"""From a configuration to the objects of a run: data with its noise, recipe, two learners, an engine. No training here."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from labelsieve import nets
from labelsieve.config.lengths import epochs_of
from labelsieve.config.own_cleaners import REGISTERED, check_cleaner, own_cleaner
from labelsieve.config.presets import MIXTURES, PROTOTYPES
from labelsieve.config.schema import Config, ViewsConfig
from labelsieve.data.augment import VectorViews, Views, vector_views, views_for
from labelsieve.data.frequencies import read_frequencies
from labelsieve.data.noisy_data import Collection, NoisyData
from labelsieve.engine.device import choose_device, set_threads
from labelsieve.engine.fast import FastEngine, Speed, be_deterministic, speed_for
from labelsieve.engine.plain import PlainEngine
from labelsieve.errors import UsageError
from labelsieve.methods.learner import Judge, Learner
from labelsieve.methods.parts.cleaners import ContrastiveCleaner, MixtureCleaner, PrototypeCleaner
from labelsieve.methods.parts.dropout import torchs_own
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.heads import HeldOut, held_out
from labelsieve.methods.parts.parted import can_part, normalising
from labelsieve.methods.parts.scaling import compact
from labelsieve.methods.parts.subsets import BalancedBatches, EveryRow, RandomBatches, Sampler
from labelsieve.methods.recipe import Recipe
from labelsieve.predict.model import seen_shape
from labelsieve.runs.rows import Rows

MEMORY = 5  # scores that prototypes average, as the mixture does with losses at 90 % noise; chosen by benchmark/judges.py


@dataclass(frozen=True)
class Parts:
    """All that `learn` needs."""

    recipe: Recipe
    learners: tuple[Learner, Learner]
    engine: PlainEngine
    prior: Tensor
    pinned: Tensor | None = None
    held: HeldOut | None = None  # of vectors: what heads that have not seen a sample say of it

    def witnesses(self, seen: Sequence[Evidence]) -> Sequence[Evidence]:
        """Whom to ask how many labels are wrong: those who have not seen the labels that they judge, where there are any."""
        return seen if self.held is None else [self.held.evidence(seen[0].labels.cpu())]


def recipe_for(config: Config, epochs: int | None = None) -> Recipe:
    """The method's numbers; `epochs` are those that were decided on."""
    t, c = config.training, config.cleaning
    epochs = epochs_of(config, epochs)
    return Recipe(
        epochs=epochs,
        warmup=epochs if config.method == "ce" else min(t.warmup, epochs),
        prototype_warmup=max(2, round(c.prototype_warmup * epochs)) if c.prototype_warmup else 0,
        batch=t.batch,
        warmup_batch=t.warmup_batch,
        lr=t.lr,
        lr_drop_epoch=round(t.lr_drop * epochs),
        lr_drop_factor=t.lr_drop_factor,
        momentum=t.momentum,
        weight_decay=t.weight_decay,
        lambda_u=0.0 if t.lambda_u is None else t.lambda_u,
        ramp_epochs=t.ramp_epochs,
        temperature=t.temperature,
        beta=4.0 if t.beta is None else t.beta,
        prior_weight=t.prior_weight,
        guess_passes=t.guess_passes,
        norm_devices=t.norm_devices,
        entropy_penalty=t.entropy_penalty,
        train_unlabelled=t.train_unlabelled,
        mixture_threshold=0.5 if c.mixture_threshold is None else c.mixture_threshold,
        tau=c.tau,
        prototype_teacher=c.prototype_teacher,
        judge_first=c.judge_first,
        prototype_views=c.prototype_views,
        least_clean=c.least_clean or 0.0,
        mixed=t.mixed is not False,
        strong_views=config.method != "dividemix" and config.views.policy != "none",
        sampler=sampler_for(config),
        seed=config.seed,
    )


def sampler_for(config: Config) -> Sampler:
    """Which rows an epoch sees."""
    if not config.training.epoch_batches:
        return EveryRow()
    kind = BalancedBatches if config.training.epoch_draw == "balanced" else RandomBatches
    return kind(config.training.epoch_batches)


def prototype_memory_for(config: Config) -> int:
    """Scores are averaged only if prototypes warm up long enough to forget their first ones before they divide.

    A run that finds its own length does not, nor one that sees other rows in each epoch.
    """
    said, known = config.cleaning.prototype_memory, config.training.epochs is not None and not config.training.epoch_batches
    return said or (MEMORY if known and recipe_for(config).prototype_warmup >= MEMORY else 1)


def cleaners_for(config: Config, number: int) -> tuple[MixtureCleaner, Judge | None]:
    """The mixture that teaches and, unless it divides alone, what judges by prototypes or in their place."""
    check_cleaner(config.cleaner)
    c, t = config.cleaning, config.training
    aware, own_range = config.cleaner.endswith("-awr"), c.mixture_range == "class"
    teacher = MixtureCleaner(per_class=aware, memory=c.mixture_memory or 1, own_range=own_range)
    if config.cleaner in MIXTURES:
        return teacher, None
    lr = t.lr if c.prototype_lr is None else c.prototype_lr
    shared = {"dim": c.dim, "lr": lr, "momentum": t.momentum, "weight_decay": t.weight_decay}
    seed = 2 * config.seed + number
    if config.cleaner in REGISTERED:
        return teacher, own_cleaner(config.cleaner, seed)
    if config.cleaner == "contrastive":
        return teacher, ContrastiveCleaner(**shared, batch=t.batch, seed=seed)  # type: ignore[arg-type]
    judge = PrototypeCleaner(
        **shared,  # type: ignore[arg-type]
        alpha=c.alpha,
        passes=c.passes,
        batch=t.batch,
        depth=c.projector_depth,
        cosine=c.cosine,
        memory=prototype_memory_for(config),
        prior=c.prototype_prior,
        seed=seed,
    )
    return teacher, judge


def learner_for(config: Config, found: Collection, recipe: Recipe, number: int, device: torch.device) -> Learner:
    classes, channels = len(found.train.classes), found.train.shape[0]
    seed = (1_000_003 * config.seed + number) % 2**63
    with torchs_own:
        network = nets.build(config.network, channels, classes, seed, seen_shape(found.train.shape, config.views.crop))
    check_shared(config, network)
    teacher, judge = cleaners_for(config, number)
    return Learner(number, network, recipe, found.mean, found.std, teacher, judge, device, axes=len(found.train.shape))


def check_shared(config: Config, network: nn.Module) -> None:
    """A `UsageError` where BatchNorm cannot do as it would on several devices."""
    devices, setting = config.training.norm_devices, f'setting "training.norm_devices" is {config.training.norm_devices}'
    if devices == 1:
        return
    if not (normalising(network) and can_part(network)):
        raise UsageError(f'{setting}, and network "{config.network}" has no BatchNorm, or one of its own; leave it at 1')
    for key in ("batch", "warmup_batch"):
        batch = getattr(config.training, key)
        if batch % devices or batch < 2 * devices:
            raise UsageError(
                f"{setting}, and training.{key}={batch} has no equal parts of two or more for each; change one of them"
            )


def parts_for(config: Config, rows: Rows) -> Parts:
    set_threads(config.engine.threads, 4 * config.training.batch * rows.data.images[0].numel())
    device = choose_device(config.device)
    recipe = recipe_for(config)
    engine = engine_for(config, rows.data, views_of(rows.collection, config.views), device)
    first, second = (learner_for(config, rows.collection, recipe, number, device) for number in (0, 1))
    for learner in (first, second):
        engine.adopt(learner)
    pinned = None if rows.pinned is None else rows.pinned.to(device)
    prior = prior_for(config, rows.data).to(device)
    return Parts(recipe, (first, second), engine, prior, pinned, held_for(config, rows.data))


def held_for(config: Config, data: NoisyData) -> HeldOut | None:
    """Heads on vectors that judge labels they have not seen; the baselines and a user's own cleaner judge by themselves."""
    if not data.are_vectors or config.method != "cpc" or config.cleaner not in PROTOTYPES:
        return None
    spaces = [compact(data.images), compact(data.images, alike=True)]
    return held_out(spaces, data.labels, len(data.classes), config.seed)


def views_of(found: Collection, chosen: ViewsConfig) -> Views | VectorViews:
    """How samples are varied: pictures by the policy, vectors by noise on the scale of each dimension."""
    if found.train.are_vectors:
        return vector_views(found.mean, found.std)
    channels, height, width = found.train.shape
    return views_for((channels, height, width), found.mirror, chosen.policy, chosen.crop)


def engine_for(config: Config, data: NoisyData, views: Views | VectorViews, device: torch.device) -> PlainEngine:
    wanted = config.engine
    if wanted.deterministic:
        be_deterministic()
    speed = speed_for(device, wanted.precision, wanted.compile, wanted.capture)
    if speed == Speed() and device.type == "cpu":
        return PlainEngine(data, views, device, wanted.eval_batch, wanted.pictures)
    return FastEngine(data, views, device, wanted.eval_batch, speed, wanted.pictures)


def prior_for(config: Config, data: NoisyData) -> Tensor:
    """What the prior penalty pulls towards (K,): even shares, how often each label was given, or what a file says."""
    classes = len(data.classes)
    if config.training.prior.startswith("file:"):
        return read_frequencies(Path(config.training.prior.removeprefix("file:")), data.classes)
    if config.training.prior == "uniform":
        return torch.full((classes,), 1 / classes)
    return torch.bincount(data.labels, minlength=classes).float() / len(data)
