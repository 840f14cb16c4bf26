"""A method's own settings out of a configuration, and how many epochs it has.

Most methods have a section that bears their name; the first ones read the keys training.* and cleaning.*.
"""

import re
from dataclasses import asdict, fields, replace
from typing import Any, get_type_hints

from labelsieve.config.presets import rate_of
from labelsieve.config.schema import Config
from labelsieve.config.setting import check
from labelsieve.errors import UsageError, suggest
from labelsieve.methods import PROTOTYPES
from labelsieve.methods.ce import CrossEntropy
from labelsieve.methods.cpc import Cpc
from labelsieve.methods.dividemix import DivideMix
from labelsieve.methods.parts.estimate import mixed_epochs_for
from labelsieve.methods.registry import METHODS, method_named


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


MEMORY = 5  # scores that prototypes average, as the mixture does with losses at 90 % noise; chosen by benchmark/judges.py


def section_of(config: Config) -> Any:
    """The method's settings, checked; what was not said has its default."""
    method = method_named(config.method)
    hints = get_type_hints(method.Config)
    unknown = [name for name in config.own if name not in hints]
    if unknown:
        key = f"{config.method}.{unknown[0]}"
        known = [f"{config.method}.{name}" for name in hints]
        raise UsageError(f'setting "{key}" is not known{suggest(key, known)}; there are: {", ".join(known)}')
    section = method.Config(**config.own)
    check(section, f"{config.method}.")
    return section


def with_section(config: Config) -> Config:
    """The configuration with all of the method's own settings in it, as a run folder keeps it."""
    return replace(config, own=asdict(section_of(config))) if method_named(config.method).own_section else config


def cell_settings(name: str, named: str | None, source: str, noise: str) -> dict[str, Any]:
    """What the method's authors set for a preset, or for the data set and noise that it would stand for; of rates the nearest."""
    cells, data = method_named(name).cells, source.partition(":")[0]
    cell = data if named is None else named.partition("+")[0]
    if named is None and data in ("cifar10", "cifar100"):
        kind, _, rate = noise.partition(":")
        known = [each for each in cells if each.startswith(f"{data}-")]
        alike = [each for each in known if each.startswith(f"{data}-{kind}")] or known
        cell = min(alike, key=lambda each: abs(int(re.sub(r".*\D", "", each)) - 100 * rate_of(rate)), default=data)
    if cell not in cells:
        return {}
    return {"method": name, **cells[cell].settings, **{f"{name}.{key}": value for key, value in cells[cell].own.items()}}


def settings_for(config: Config, epochs: int | None = None) -> Any:
    """The method's `Config`; `epochs` are those that were decided on."""
    method = method_named(config.method)
    if method.own_section:
        return section_of(config)
    if issubclass(method, CrossEntropy):
        return method.Config(entropy_penalty=config.training.entropy_penalty)
    if not issubclass(method, DivideMix):
        raise NotImplementedError(f'the settings of method "{config.method}" are in no section')
    known = _dividing(config, epochs) | (_by_prototypes(config, epochs) if issubclass(method, Cpc) else {})
    return method.Config(**{field.name: known[field.name] for field in fields(method.Config) if field.name in known})


def _dividing(config: Config, epochs: int | None) -> dict[str, Any]:
    t, c = config.training, config.cleaning
    return {
        "cleaner": config.cleaner,
        "warmup": min(t.warmup, epochs_of(config, epochs)),
        "entropy_penalty": t.entropy_penalty,
        "mixture_threshold": 0.5 if c.mixture_threshold is None else c.mixture_threshold,
        "mixture_memory": c.mixture_memory or 1,
        "mixture_range": c.mixture_range,
        "least_clean": c.least_clean or 0.0,
        "mixed": t.mixed is not False,
        "lambda_u": 0.0 if t.lambda_u is None else t.lambda_u,
        "ramp_epochs": t.ramp_epochs,
        "temperature": t.temperature,
        "beta": 4.0 if t.beta is None else t.beta,
        "prior_weight": t.prior_weight,
        "guess_passes": t.guess_passes,
        "train_unlabelled": t.train_unlabelled,
        "strong_views": config.views.policy != "none",
    }


def _by_prototypes(config: Config, epochs: int | None) -> dict[str, Any]:
    c = config.cleaning
    return {
        "prototype_warmup": prototype_warmup_for(config, epochs),
        "tau": c.tau,
        "prototype_teacher": c.prototype_teacher,
        "judge_first": c.judge_first,
        "prototype_views": c.prototype_views,
        "numbers": _numbers(config),
    }


def _numbers(config: Config) -> dict[str, Any]:
    """What the cleaner is built with; a user's own has numbers of its own."""
    c, t = config.cleaning, config.training
    if config.cleaner not in (*PROTOTYPES, "contrastive"):
        return {}
    lr = t.lr if c.prototype_lr is None else c.prototype_lr
    shared = {"dim": c.dim, "lr": lr, "momentum": t.momentum, "weight_decay": t.weight_decay, "batch": t.batch}
    if config.cleaner == "contrastive":
        return shared
    memory = prototype_memory_for(config)
    own = {"alpha": c.alpha, "passes": c.passes, "depth": c.projector_depth, "cosine": c.cosine, "prior": c.prototype_prior}
    return shared | own | {"memory": memory}


def prototype_warmup_for(config: Config, epochs: int | None = None) -> int:
    """e, in epochs."""
    share = config.cleaning.prototype_warmup
    return max(2, round(share * epochs_of(config, epochs))) if share else 0


def prototype_memory_for(config: Config) -> int:
    """Scores are averaged only if prototypes warm up long enough to forget their first ones before they divide.

    A run that finds its own length does not, nor one that sees other rows in each epoch.
    """
    said, known = config.cleaning.prototype_memory, config.training.epochs is not None and not config.training.epoch_batches
    return said or (MEMORY if known and prototype_warmup_for(config) >= MEMORY else 1)
