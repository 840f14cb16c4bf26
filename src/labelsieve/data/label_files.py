"""Reads and writes files of labels: noise that labelsieve made, plain lists, and the labels people gave CIFAR's pictures.

A hash is SHA-256 over labels as little-endian int64, so it names a labelling on every machine.
"""

import hashlib
import io
import os
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelsieve import doors
from labelsieve.data.draws import IntArray
from labelsieve.data.npz import Array, read_npy, read_npz
from labelsieve.data.safe_pickle import read_plain
from labelsieve.doors import open_plain, reading
from labelsieve.errors import ToolError, UsageError, suggest

LARGEST_JSON = 2**30  # bytes
LARGEST_PICKLE = 2**28  # bytes: a label file has a few million
LEGACY = 3  # pickles before the content in torch's older form: a magic number, a version, facts of the machine
CLEAN = "clean_label"
COLUMNS = {
    "aggre": "aggre_label",
    "worse": "worse_label",
    "random1": "random_label1",
    "random2": "random_label2",
    "random3": "random_label3",
    "noisy": "noisy_label",
    "fine": "noisy_label",
}
HUMAN_FORM = "cifar-n:FILE:KIND"
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
        raise ToolError(f"{path}: row {row} has label {int(labels[row])}, outside 0..{classes - 1}; fix the file")
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


def human_labels(argument: str, true: IntArray, classes: int) -> IntArray:
    """Labels (N,) of one kind of CIFAR-10N or CIFAR-100N; `argument` is FILE:KIND, `true` (N,) are the data set's own labels.

    The official file holds CIFAR's own labels, too. They must be the data set's: else the file is for another set or order.
    """
    file, _, kind = argument.rpartition(":")
    if not file or kind not in COLUMNS:
        raise UsageError(
            f'cifar-n needs a file and a kind of labels, not "{argument}"{suggest(kind, COLUMNS)}; write {HUMAN_FORM} with one '
            f"of {', '.join(COLUMNS)}"
        )
    path = Path(file).expanduser()
    content = read_saved(path)
    key = COLUMNS[kind]
    if CLEAN not in content or key not in content:
        missing = key if CLEAN in content else CLEAN
        raise ToolError(
            f'{path}: it has no "{missing}", only {", ".join(sorted(content)) or "nothing"}; CIFAR-10N has aggre, worse and '
            f"random1 to random3, CIFAR-100N has noisy"
        )
    clean, noisy = (_column(content[name], name, len(true), classes, path) for name in (CLEAN, key))
    other = np.flatnonzero(clean != true)
    if len(other):
        raise ToolError(
            f"{path}: its clean labels differ from the data set's in {len(other):,} of {len(true):,} rows, "
            f"first in row {other[0]} ({clean[other[0]]}, here {true[other[0]]}); "
            f"the file is of another data set, or of another order of it"
        )
    return noisy


def _column(values: Any, name: str, rows: int, classes: int, path: Path) -> IntArray:
    if not isinstance(values, np.ndarray) and not (isinstance(values, list) and all(type(value) is int for value in values)):
        raise ToolError(f'{path}: "{name}" is no list of whole numbers; fetch the file again')
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "ui":
        raise ToolError(f'{path}: "{name}" is {found.dtype} {found.shape}; it must be whole numbers (N,); fetch the file again')
    if len(found) != rows:
        raise ToolError(
            f'{path}: "{name}" has {len(found):,} labels for {rows:,} samples; use the file made for this data set, '
            f"and the whole data set (no --limit)"
        )
    labels = found.astype(np.int64)
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(outside):
        row = outside[0]
        raise ToolError(f'{path}: row {row} of "{name}" is {labels[row]}, outside 0..{classes - 1}; is it for this data set?')
    return labels


def read_saved(path: Path) -> dict[str, Any]:
    """The dict that was saved, its keys as text; a `ToolError` for anything else."""
    with doors.reading(path, "fetch it again"):
        content = doors.read_bytes(path, LARGEST_PICKLE, follow=True)
        if zipfile.is_zipfile(io.BytesIO(content)):
            return read_plain(_pickle_inside(content), str(path))
        return read_plain(content, str(path), skip=LEGACY)


def _pickle_inside(content: bytes) -> bytes:
    """The one data.pkl of the archive. Tensors would lie in other members: label files have none."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        found = [entry for entry in archive.infolist() if entry.filename.rpartition("/")[2] == "data.pkl"]
        if len(found) != 1:
            raise doors.Damage("a zip archive without the data.pkl of torch.save; is it the right file?")
        if found[0].file_size > LARGEST_PICKLE:
            raise doors.Damage(f"it unpacks to {found[0].file_size:,} bytes, which no label file does")
        return archive.read(found[0])
