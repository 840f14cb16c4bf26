"""What a run of each method comes to, as numbers that a later version must come to again. `python -m golden.measured` records.

Run it from tests/ (PYTHONPATH=../src:engine) only where results are meant to change, and say why in CHANGELOG.md.
"""

import csv
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from kernel_list import graphs_on_a_cpu
from safetensors.torch import load_file

from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config
from labelsieve.engine.fast import Speed
from labelsieve.train import build as assemble
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.tiny import arrays_file, pictures, tiny_config

FILE = Path(__file__).with_name("golden.json")
METHODS = ("ce", "dividemix", "augdmix", "cpc", "cpc+contrastive")
LONG = {"training.epochs": 10, "training.warmup": 4, "data.limit": 600, "data.noise": "sym:0.4", "seed": 1, "device": "cpu"}


def kind_of_machine() -> str:
    """Kinds of CPU round sums differently, and so do versions of torch: only on one kind are results the same bit for bit."""
    return f"{torch.backends.cpu.get_cpu_capability()} torch {torch.__version__}"


def named(name: str) -> dict[str, Any]:
    """The settings of a method, and of a cleaner after a plus sign."""
    method, _, cleaner = name.partition("+")
    return {"method": method, "cleaner": cleaner or ("cpc-awr" if method == "cpc" else "gmm-awr")}


def steps_config(name: str, folder: Path) -> Config:
    """Some 20 steps for each network: 4 of the warm-up, 4 whose division is by mixture, and more by prototypes."""
    source = arrays_file(folder / "pictures.npz", **pictures(64))
    settings = {"training.epochs": 6, "training.warmup": 1, "training.lambda_u": 5.0, "training.mixed": True}
    settings |= {"cleaning.mixture_threshold": 0.5, "cleaning.least_clean": 0.0, "cleaning.prototype_warmup": 0.4}
    changes = settings | named(name) | ({"cleaning.alpha": 1.0} if name == "cpc" else {})
    return tiny_config(source, **{key.replace(".", "__"): value for key, value in changes.items()})


@contextmanager
def recorded() -> Iterator[None]:
    """Within it runs record their steps as on a GPU, and replay them."""
    with pytest.MonkeyPatch.context() as patch, graphs_on_a_cpu():
        patch.setattr(assemble, "speed_for", lambda *asked: Speed(capture=True))
        yield


def trained(config: Config, folder: Path, pause: int | None = None) -> dict[str, Any]:
    """The numbers of a run; with `pause`, of one that was stopped after so many epochs and resumed."""
    run = start(folder, config)
    if pause is not None:
        for _ in each_epoch(run, stop=lambda: run.epoch >= pause):
            pass
        run = resume(folder)
    for _ in each_epoch(run):
        pass
    return numbers(folder, networks=1 if config.method == "ce" else 2)


def numbers(run: Path, networks: int) -> dict[str, Any]:
    tensors = load_file(run / "model.safetensors")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found: dict[str, Any] = {
        "phases": [line["phase"] for line in lines],
        "losses": [{name: terms[:networks] for name, terms in line.get("loss", {}).items()} for line in lines],
        "steps": [line.get("steps", [])[:networks] for line in lines],
    }
    for number in range(networks):
        mine = {name: value for name, value in sorted(tensors.items()) if name.startswith(f"{number}.")}
        found[f"length {number}"] = float(torch.stack([value.double().norm() for value in mine.values()]).norm())
        found[f"model {number}"] = digest(b"".join(value.contiguous().numpy().tobytes() for value in mine.values()))
    if networks > 1:
        found["clean_share"] = [line.get("clean_share", []) for line in lines]
        found["auc"] = [[line.get(f"auc_{name}", []) for name in ("loss", "prototype")] for line in lines]
        found["accuracy"] = [line.get("accuracy", {}) for line in lines]
        found["issues"] = digest(json.dumps(listed(run)).encode())
        with np.load(run / "scores.npz", allow_pickle=False) as arrays:
            found["scores"] = {name: digest(arrays[name].tobytes()) for name in sorted(arrays.files) if name.startswith("by_")}
    return found


def listed(run: Path) -> list[list[str]]:
    """issues.csv without its sentences, which may get better, and without what is odd about samples, which no method decides."""
    with (run / "issues.csv").open(encoding="utf-8", newline="") as file:
        apart = ("reason", "sample_issue", "copy_of")
        return [[value for name, value in row.items() if name not in apart] for row in csv.DictReader(file)]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def all_numbers() -> dict[str, Any]:
    found: dict[str, Any] = {"machine": kind_of_machine()}
    with TemporaryDirectory() as place:
        folder = Path(place)
        for name in METHODS:
            found[f"steps {name}"] = trained(steps_config(name, folder), folder / f"steps-{name}")
            found[f"digits {name}"] = trained(digits_config(name), folder / f"digits-{name}")
    return found


def digits_config(name: str) -> Config:
    return resolve("digits", options=LONG | named(name))


if __name__ == "__main__":
    torch.set_num_threads(1)
    FILE.write_text(json.dumps(all_numbers(), indent=1) + "\n", encoding="utf-8")
