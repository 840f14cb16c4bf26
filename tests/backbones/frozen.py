"""A small run on frozen features: photos of two classes, a tiny backbone, two epochs."""

from pathlib import Path
from typing import Any

from backbones.conftest import TINY
from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config

SETTINGS = {
    "training.epochs": 2,
    "training.warmup": 1,
    "training.batch": 8,
    "training.warmup_batch": 8,
    "cleaning.dim": 8,
    "engine.threads": 1,
    "output.checkpoint_seconds": 0,
    "pictures.size": 32,
    "device": "cpu",
}
OPTIONS = tuple(word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}"))


def config_for(root: Path, weights: Path, **more: Any) -> Config:
    told = {"features.use": "frozen", "features.backbone": TINY, "features.weights": str(weights)}
    return resolve(root, options=SETTINGS | told | {key.replace("__", "."): value for key, value in more.items()})
