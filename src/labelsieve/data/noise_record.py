"""Labels after noise, kept in a file: a `Noise` goes to an .npz and comes back; plain lists are read too.

Hashes are SHA-256 over the labels as little-endian int64, so they name a labelling on every machine.
"""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from labelsieve import doors
from labelsieve.data.npz import Array, read_npy, read_npz
from labelsieve.doors import open_plain, reading
from labelsieve.errors import ToolError

LARGEST_JSON = 2**30  # bytes
KEYS = ("labels", "flipped", "spec", "seed", "sha256", "original_sha256")


@dataclass(frozen=True)
class Noise:
    """Noisy labels (N,), how they were made, where they differ from the original (N,) and their hash."""

    labels: Tensor
    spec: str
    seed: int
    flipped: Tensor
    sha256: str


def label_hash(labels: Tensor) -> str:
    """SHA-256 of labels (N,), as 64 hexadecimal digits."""
    return hashlib.sha256(labels.cpu().numpy().astype("<i8").tobytes()).hexdigest()


def save(path: Path | str, noise: Noise, true_labels: Tensor) -> None:
    """Writes the noise beside the hash of the labels it was made from; a reader never sees half a file."""
    target = Path(path)
    half = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with half.open("wb") as stream:
            np.savez_compressed(
                stream,
                labels=noise.labels.numpy(),
                flipped=noise.flipped.numpy(),
                spec=np.array(noise.spec),
                seed=np.array(noise.seed, np.int64),
                sha256=np.array(noise.sha256),
                original_sha256=np.array(label_hash(true_labels)),
            )
        half.replace(target)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise ToolError(f"{target}: cannot be written ({error}); check the folder and the disk") from error


def load(path: Path | str, of_run: bool = False) -> Noise:
    """The noise that `save` wrote, its labels checked against their hash."""
    place = Path(path)
    arrays = read_npz(place, of_run)
    missing = [key for key in KEYS if key not in arrays]
    if missing:
        raise ToolError(f"{place}: {', '.join(missing)} missing; it was not written by labelsieve as a noise file")
    labels = _whole(arrays["labels"], place)
    _check_hash(arrays, "sha256", label_hash(labels), "its own labels", place)
    flipped = arrays["flipped"]
    if flipped.dtype != np.bool_ or flipped.shape != tuple(labels.shape):
        raise ToolError(f"{place}: flipped is {flipped.dtype} {flipped.shape}, not bool ({len(labels)},); make it again")
    with reading(place, "make it again"):
        seed = int(arrays["seed"])
    return Noise(labels, str(arrays["spec"]), seed, torch.from_numpy(flipped), str(arrays["sha256"]))


def made_as(spec: str) -> str:
    """What noise `file:FILE` holds, where labelsieve wrote the file: `sym:0.9`. Others, and files that cannot be read, stay."""
    seen: set[str] = set()
    while spec.startswith("file:") and spec not in seen:
        seen.add(spec)
        path = Path(spec.removeprefix("file:")).expanduser()
        with suppress(ToolError):  # whoever reads its labels says it
            spec = str(read_npz(path).get("spec", spec)) if path.suffix == ".npz" else spec
    return spec


def read_labels(path: Path, original: Tensor, classes: int, key: str = "labels") -> Tensor:
    """Labels (N,) of a noise file, .npy, .npz with an array called `key`, or JSON list, checked to fit `original` (N,)."""
    arrays: dict[str, Array] = {}
    if path.suffix == ".json" or _begins_as_list(path):
        found = _json_labels(path)
    elif path.suffix == ".npy":
        found = read_npy(path)
    else:
        arrays = read_npz(path)
        if key not in arrays:
            remedy = f"name one of them: file:{path}:KEY" if arrays else "it is empty"
            raise ToolError(f'{path}: it has no key "{key}" (but {", ".join(arrays) or "nothing"}); {remedy}')
        found = arrays[key]
    labels = _whole(found, path)
    if "sha256" in arrays:
        _check_hash(arrays, "sha256", label_hash(labels), "its own labels", path)
    if "original_sha256" in arrays:
        _check_hash(arrays, "original_sha256", label_hash(original), "the labels of this data set", path)
    if len(labels) != len(original):
        raise ToolError(
            f"{path}: {len(labels)} labels for {len(original)} samples; use the file made for this data, "
            f"and all of the data (no --limit)"
        )
    outside = torch.nonzero((labels < 0) | (labels >= classes)).flatten()
    if len(outside):
        row = int(outside[0])
        raise ToolError(f"{path}: row {row} has label {int(labels[row])}, outside 0..{classes - 1}; mend the file")
    return labels


def _check_hash(arrays: dict[str, Array], key: str, actual: str, whose: str, path: Path) -> None:
    recorded = str(arrays[key])
    if recorded != actual:
        raise ToolError(
            f"{path}: {key} is {recorded}, but {whose} have {actual}; "
            f"use the noise file that belongs to this data, or make it again"
        )


def _whole(values: Array, path: Path) -> Tensor:
    if values.ndim != 1 or values.dtype.kind not in "ui":
        raise ToolError(f"{path}: labels are {values.dtype} {values.shape}; they must be whole numbers (N,)")
    return torch.from_numpy(values.astype(np.int64))


def _begins_as_list(path: Path) -> bool:
    """The published scripts write JSON under any name: noise files such as cifar10_0.5_sym."""
    try:
        with open_plain(path, follow=True) as stream:
            return stream.read(64).lstrip()[:1] == b"["
    except OSError:
        return False


def _json_labels(path: Path) -> Array:
    content = read_json(path)
    if not isinstance(content, list) or not all(type(label) is int and abs(label) < 2**31 for label in content):
        raise ToolError(f"{path}: it is not a JSON list of whole numbers; write [3, 0, 7, ...]")
    return np.array(content, np.int64)


def read_json(path: Path) -> object:
    with reading(path, "check the path, or write the JSON file again"):
        return doors.read_json(path, LARGEST_JSON, follow=True)
