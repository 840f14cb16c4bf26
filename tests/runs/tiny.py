"""Runs of a fraction of a second: a few striped 8x8 pictures, two or three epochs; and what a finished run folder holds."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config
from labelsieve.train.loop import each_epoch
from labelsieve.train.run import Run
from labelsieve.train.start import resume, start

SETTINGS = {
    "training.epochs": 2,
    "training.warmup": 1,
    "training.batch": 16,
    "training.warmup_batch": 16,
    "training.lr_drop": 0.6,  # before the last epoch, so that a resumed run must find the dropped rate
    "cleaning.prototype_warmup": 0.0,
    "cleaning.mixture_memory": 2,
    "cleaning.dim": 8,
    "engine.threads": 1,
    "output.checkpoint_seconds": 0,
    "device": "cpu",
    "data.noise": "sym:0.3",
}
# What a finished run holds, as bytes that must not depend on how often it was killed. Timings are not among them.
SAME = (
    "config.yaml",
    "noise.npz",
    "environment.json",
    "metrics.jsonl",
    "issues.csv",
    "issues.parquet",
    "model.safetensors",
    "model.json",
    "early_losses.npz",
    "predictions.npz",
)
FILES = {*SAME, "neighbours.npz", "map.npz", "estimate.json", "README.md", "scores.npz", "timings.jsonl", "checkpoint"}


def pictures(count: int = 48, classes: int = 3, seed: int = 0) -> dict[str, Any]:
    """Pictures (count, 8, 8) with a bright stripe where their class says; the first third again as test set."""
    labels = np.arange(count) % classes
    images = np.random.default_rng(seed).integers(0, 60, (count, 8, 8)).astype(np.uint8)
    for image, label in zip(images, labels):
        image[2 * label : 2 * label + 2] += 150
    held = slice(0, count // 3)
    return {
        "images": images,
        "labels": labels,
        "test_images": images[held],
        "test_labels": labels[held],
        "mirror": np.array(False),
    }


def arrays_file(path: Path, **changes: Any) -> str:
    """The pictures as an .npz, some of its arrays replaced; the source as the command line names it."""
    np.savez(path, **(pictures() | changes))
    return f"arrays:{path}"


def tiny_config(source: str, **changes: Any) -> Config:
    """`__` stands for the dot: training__lr=1."""
    return resolve(source, options=SETTINGS | {key.replace("__", "."): value for key, value in changes.items()})


def whole(path: Path, config: Config) -> Run:
    """A new run, trained to its end."""
    run = start(path, config)
    for _ in each_epoch(run):
        pass
    return run


def to_the_end(path: Path) -> Run:
    """A run taken up and trained to its end."""
    run = resume(path)
    for _ in each_epoch(run):
        pass
    return run


def without_commit(environment: bytes) -> list[tuple[str, Any]]:
    """All other facts, in their order: processes of one test may see two commits, where one is made while it runs."""
    return [pair for pair in json.loads(environment).items() if pair[0] not in ("commit", "commit_differs")]


def contents(path: Path) -> dict[str, Any]:
    """Everything of a finished run that must not depend on how it got there."""
    found: dict[str, Any] = {name: (path / name).read_bytes() for name in SAME if (path / name).exists()}
    if "environment.json" in found:
        found["environment.json"] = without_commit(found["environment.json"])
    with np.load(path / "scores.npz", allow_pickle=False) as arrays:
        found |= {f"scores.{name}": (arrays[name].dtype.str, arrays[name].shape, arrays[name].tobytes()) for name in arrays.files}
    found["checkpoints"] = [folder.name for folder in (path / "checkpoint").iterdir()]
    found["state"] = (next((path / "checkpoint").iterdir()) / "state.safetensors").read_bytes()
    return found
