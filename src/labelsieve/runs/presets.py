"""Presets: benchmark cells as functions, `cifar100_sym(rate)`, giving settings by dotted key, with the paper's number.

A preset never names a path. Accuracies are the paper's, "best" by its protocol; what we measured is in RESULTS.md.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from labelsieve.errors import UsageError, suggest

Settings = dict[str, Any]


def cifar() -> Settings:
    """What all CIFAR cells share: PreAct-ResNet-18, 450 epochs, lr 0.02 divided by 10 half-way."""
    return {
        "network": "preact-resnet18",
        "method": "cpc",
        "cleaner": "cpc-awr",
        "training.epochs": 450,
        "training.lr_drop": 0.5,
        "engine.eval_batch": 2000,
    }


def high_noise(rate: float) -> Settings:
    """At 90 % noise losses are averaged over 5 epochs, and the mixture must be surer. The division has its way, as published."""
    memory, threshold = (5, 0.6) if rate >= 0.9 else (1, 0.5)
    return {"cleaning.mixture_memory": memory, "cleaning.mixture_threshold": threshold, "cleaning.least_clean": 0.0}


def cifar10_sym(rate: float) -> Settings:
    """CIFAR-10, symmetric noise. Paper, CPC: 20 % 96.50, 50 % 95.64, 80 % 94.78, 90 % 92.55."""
    lambda_u = 0.0 if rate < 0.35 else 25.0 if rate < 0.85 else 50.0
    return cifar() | {"training.warmup": 10, "training.lambda_u": lambda_u, "data.noise": f"sym:{rate:g}"} | high_noise(rate)


def cifar10_asym(rate: float = 0.4) -> Settings:
    """CIFAR-10, asymmetric noise, class-agnostic teacher. Paper, CPC: 40 % 94.73."""
    return (
        cifar()
        | {
            "cleaner": "cpc-agn",
            "training.warmup": 10,
            "training.lambda_u": 0.0,
            "training.entropy_penalty": True,
            "data.noise": f"asym:{rate:g}",
        }
        | high_noise(0)
    )


def cifar100_sym(rate: float) -> Settings:
    """CIFAR-100, symmetric noise. Paper, CPC: 20 % 80.22, 50 % 79.31, 80 % 69.56, 90 % 54.60."""
    settings = cifar() | {
        "training.warmup": 30,
        "training.lambda_u": 25.0 if rate < 0.35 else 150.0,
        "cleaning.prototype_warmup": 0.1 if rate >= 0.8 else 0.05,
        "data.noise": f"sym:{rate:g}",
    }
    return settings | high_noise(rate)


def digits() -> Settings:
    """scikit-learn's 8x8 digits: a run of half a minute on two cores."""
    return {
        "network": "small",
        "training.epochs": 24,
        "training.warmup": 4,
        "training.batch": 64,
        "training.warmup_batch": 64,
        "training.lr": 0.05,
    }


def fashion_mnist() -> Settings:
    """Fashion-MNIST with the small network: a quarter of an hour on a CPU core for 10,000 pictures."""
    return {
        "network": "small",
        "training.epochs": 20,
        "training.warmup": 6,
        "training.batch": 64,  # with 128 and lr 0.02 the networks have hardly learnt when the warm-up ends (LOG.md)
        "training.warmup_batch": 64,
        "training.lr": 0.05,
        "training.lr_drop": 0.7,
    }


def own() -> Settings:
    """One's own data: network and batches by size and number, epochs by the noise found, classes as often as they were given."""
    return {
        "network": "auto",
        "training.epochs": None,
        "training.batch": 0,
        "training.warmup_batch": 0,
        "engine.eval_batch": 0,
        "training.prior": "given",
    }


def vectors() -> Settings:
    """Vectors (embeddings): a small head on frozen features; seconds for a thousand rows on one core."""
    return own() | {
        "network": "mlp",
        "training.epochs": 20,
        "training.warmup": 5,
        "training.lr": 0.05,
        "training.lr_drop": 0.7,
    }


RATES = (20, 50, 80, 90)
PRESETS: dict[str, Callable[[], Settings]] = {
    "digits": digits,
    "fashion-mnist": fashion_mnist,
    "vectors": vectors,
    **{f"cifar10-sym{rate}": partial(cifar10_sym, rate / 100) for rate in RATES},
    "cifar10-asym40": partial(cifar10_asym, 0.4),
    **{f"cifar100-sym{rate}": partial(cifar100_sym, rate / 100) for rate in RATES},
}


def preset(name: str) -> Settings:
    if name not in PRESETS:
        raise UsageError(f'preset "{name}" is not known{suggest(name, PRESETS)}; `labelsieve presets` lists all')
    return PRESETS[name]()


def describe(name: str) -> str:
    function = PRESETS[name]
    return ((function.func if isinstance(function, partial) else function).__doc__ or "").strip()


def is_own(source: str) -> bool:
    """Whether these are somebody's own data rather than a benchmark set."""
    return source.partition(":")[0] not in ("digits", "fashion-mnist", "cifar10", "cifar100")


def defaults_for(source: str, noise: str) -> Settings:
    """What a data source starts from when no preset is named; a CIFAR cell's numbers follow from the noise that is made."""
    name = source.partition(":")[0]
    kind, _, rate = noise.partition(":")
    share = float(rate) if kind in ("sym", "asym", "sym-other", "pair") and rate.replace(".", "", 1).isdigit() else 0.5
    if name == "cifar10":
        cell = cifar10_asym(share) if kind == "asym" else cifar10_sym(share)
    elif name == "cifar100":
        cell = cifar100_sym(share)
    else:
        return {"digits": digits, "fashion-mnist": fashion_mnist, "embeddings": vectors}.get(name, own)()
    return {key: value for key, value in cell.items() if key != "data.noise"}
