"""Writes the features of labelled pictures to one .npz, as `labelsieve embed` does."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.backbones.embedding import Embedder
from labelsieve.backbones.shards import JoinedEmbedder, ShardEmbedder, read_parts
from labelsieve.config.schema import Config
from labelsieve.data.noisy_data import Held
from labelsieve.runs import atomic
from labelsieve.runs.checks import check_names
from labelsieve.runs.features import backbone_of
from labelsieve.runs.rows import Watch, open_rows

SHOWN = 10  # pictures that cannot be read, of which each is named


@dataclass(frozen=True)
class Embedded:
    """What is in the file, and what should be said."""

    rows: int
    words: tuple[str, ...]


def embed_data(config: Config, out: Path, watch: Watch) -> Embedded:
    """Write the features that the configuration names into the new file `out`.

    features (N, D), labels, ids, classes; of test and val pictures the same; paths of files; and what is left out, and why.
    """
    check_names(config)
    opened = open_rows(config, watch)
    found, left, backbone = opened.collection, opened.left_out, backbone_of(config)
    names = np.array(found.train.classes)
    arrays: dict[str, Any] = {
        "features": found.train.images.numpy(),
        "labels": names[found.train.labels.numpy()],
        "ids": np.array(found.train.ids),
        "classes": names,
        "backbone": np.array(json.dumps(backbone.facts())),
    }
    if found.paths is not None:
        arrays["paths"] = np.array(found.paths)
    if left:
        arrays["left_out"] = np.array([(one.id, one.path, one.reason) for one in left])
    val = None if config.pictures.val is not None else opened.val
    for split, held in (("test", found.test), ("val", val)):
        arrays |= _held(split, held, names)

    write_arrays(out, arrays)
    about = _about_rows(out, found.train.images.shape, arrays)
    return Embedded(len(found.train), (*_about_left(left), about, *backbone.notes, *opened.notes))


def write_arrays(out: Path, arrays: Mapping[str, Any]) -> None:
    """A new .npz with these arrays, whole or not at all."""

    def write(draft: Path) -> None:
        with draft.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)

    atomic.write_new(out, write)


def embed_part(config: Config, number: int, parts: int, out: Path, watch: Watch) -> Embedded:
    """Write the features of one of so many parts of the pictures into the new file `out`, for `merge_parts`."""
    check_names(config)
    made: list[ShardEmbedder] = []

    def by(usual: Embedder) -> Embedder:
        found = made[0].found if made else []
        known = (usual.backbone, usual.device, usual.cache, usual.threads, usual.by_content, usual.tell)
        made.append(ShardEmbedder(*known, number=number, parts=parts, found=found))
        return made[-1]

    opened = open_rows(config, replace(watch, shown=replace(watch.shown, by=by)))
    shard = made[0]
    write_arrays(out, shard.arrays())
    count = sum(len(one.features) for one in shard.found)
    about = f"{out}: part {number} of {parts}, {count:,} pictures with {shard.width:,} features each"
    return Embedded(count, (*_about_left(opened.left_out), about, *shard.backbone.notes))


def merge_parts(config: Config, folder: Path, out: Path, watch: Watch) -> Embedded:
    """Write the features that parts in `folder` have of the data into the new file `out`, as one machine would have."""
    check_names(config)
    stretches = read_parts(folder, backbone_of(config))
    asked: list[str] = []

    def by(usual: Embedder) -> Embedder:
        known = (usual.backbone, usual.device, usual.cache, usual.threads, usual.by_content)
        return JoinedEmbedder(*known, stretches=stretches, place=folder, asked=asked)

    return embed_data(config, out, replace(watch, shown=replace(watch.shown, by=by)))


def _held(split: str, held: Held | None, names: Any) -> dict[str, Any]:
    if held is None:
        return {}
    return {f"{split}_features": held.images.numpy(), f"{split}_labels": names[held.labels.numpy()]}


def _about_rows(out: Path, shape: Any, arrays: dict[str, Any]) -> str:
    test = f", and {len(arrays['test_labels']):,} to measure on" if "test_labels" in arrays else ""
    return f"{out}: {shape[0]:,} pictures with {shape[1]:,} features each{test}"


def _about_left(left: Any) -> list[str]:
    lines = [f"left out: {one.path}: {one.reason}" for one in left[:SHOWN]]
    return (
        [*lines, f"left out: {len(left) - SHOWN:,} more, all of them in the file under left_out"] if len(left) > SHOWN else lines
    )
