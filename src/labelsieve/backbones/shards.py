"""Features by the part: each machine looks at its stretch of the pictures, and parts are joined by row number.

Parts name the data by their ids and labels and the backbone by its weights, so that those of others are refused.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, from_numpy

from labelsieve.backbones.backbone import Backbone
from labelsieve.backbones.embedding import Embedder
from labelsieve.data.npz import read_npz
from labelsieve.data.pictures.decoding import Plan, Progress, Taken
from labelsieve.data.pictures.listing import Listing
from labelsieve.data.pictures.looks import LOOK
from labelsieve.errors import ToolError, UsageError

FORM = "labelsieve-features-part-1"
BLOCK = 1 << 26  # bytes of arrays that are hashed in one go


@dataclass(frozen=True)
class Stretch:
    """What a part has of one list of pictures: rows from `first` on of `count`, and why some of these cannot be read."""

    digest: str
    count: int
    first: int
    features: NDArray[np.float32]
    looks: NDArray[np.uint8]
    reasons: Mapping[int, str]


def shard_of(text: str) -> tuple[int, int]:
    """`2/8` is the second of eight."""
    number, slash, count = text.partition("/")
    if not (slash and number.isascii() and number.isdigit() and count.isascii() and count.isdigit()):
        raise UsageError(f"--shard {text}: write which part of how many, such as 1/8")
    if not 1 <= int(number) <= int(count):
        raise UsageError(f"--shard {text}: parts are numbered from 1 to {count}")
    return int(number), int(count)


@dataclass(frozen=True)
class ShardEmbedder(Embedder):
    """Looks at the `number`th of `parts` stretches of every list; other rows are zeros. `found` has what it looked at."""

    number: int = 1
    parts: int = 1
    found: list[Stretch] = field(default_factory=list)

    def span(self, count: int) -> range:
        return range((self.number - 1) * count // self.parts, self.number * count // self.parts)

    def of_listing(
        self, listing: Listing, plan: Plan, folder: Path, workers: int | None = None, progress: Progress | None = None
    ) -> Taken:
        mine, count = self.span(len(listing)), len(listing)
        some = Taken(np.zeros((0, self.width), np.float32), {})
        if mine:  # there may be more parts than pictures
            some = super().of_listing(listing.take(np.arange(mine.start, mine.stop)), plan, folder, workers, progress)
        reasons = {mine.start + row: why for row, why in some.reasons.items()}
        self.found.append(self._stretch(listing_digest(listing), count, mine, some, reasons))
        return whole([self.found[-1]], self.width)

    def of_arrays(self, images: Tensor, place: str, progress: Progress | None = None) -> Tensor:
        mine, count = self.span(len(images)), len(images)
        values = np.zeros((0, self.width), np.float32)
        if mine:
            values = super().of_arrays(images[mine.start : mine.stop], place, progress).numpy()
        self.found.append(self._stretch(array_digest(images), count, mine, Taken(values, {}), {}))
        return from_numpy(whole([self.found[-1]], self.width).values)

    @staticmethod
    def _stretch(digest: str, count: int, mine: range, some: Taken, reasons: Mapping[int, str]) -> Stretch:
        looks = np.zeros((len(some.values), LOOK), np.uint8) if some.looks is None else some.looks
        return Stretch(digest, count, mine.start, some.values, looks, reasons)

    def arrays(self) -> dict[str, Any]:
        """The part as arrays of a file."""
        facts = {
            "form": FORM,
            "number": self.number,
            "parts": self.parts,
            "backbone": self.backbone.key,
            "name": self.backbone.name,
            "lists": [
                {"digest": one.digest, "count": one.count, "first": one.first, "reasons": list(one.reasons.items())}
                for one in self.found
            ],
        }
        kept: dict[str, Any] = {"part": np.array(json.dumps(facts))}
        for i, one in enumerate(self.found):
            kept |= {f"features{i}": one.features, f"looks{i}": one.looks}
        return kept


@dataclass(frozen=True)
class JoinedEmbedder(Embedder):
    """Takes features from parts that were looked at elsewhere: {number: its stretches}."""

    stretches: Mapping[int, Sequence[Stretch]] = field(default_factory=dict)
    place: Path = Path()
    asked: list[str] = field(default_factory=list)  # digests of the lists so far

    def of_listing(
        self, listing: Listing, plan: Plan, folder: Path, workers: int | None = None, progress: Progress | None = None
    ) -> Taken:
        return self._joined(listing_digest(listing))

    def of_arrays(self, images: Tensor, place: str, progress: Progress | None = None) -> Tensor:
        return from_numpy(self._joined(array_digest(images)).values)

    def _joined(self, digest: str) -> Taken:
        at = len(self.asked)
        self.asked.append(digest)
        for number, lists in self.stretches.items():
            if at >= len(lists) or lists[at].digest != digest:
                raise ToolError(
                    f"{self.place}: part {number} is of other data, or of these with other options (ids or labels differ); "
                    f"make it again with this command's data and options"
                )
        return whole([lists[at] for _, lists in sorted(self.stretches.items())], self.width)


def whole(stretches: Sequence[Stretch], width: int) -> Taken:
    """The rows that can be read of a list, by the stretches that are there; zeros where there is none."""
    count = stretches[0].count
    reasons = {row: why for one in stretches for row, why in one.reasons.items()}
    values, looks = np.zeros((count, width), np.float32), np.zeros((count, LOOK), np.uint8)
    for one in stretches:
        rows = [row for row in range(one.first, one.first + len(one.features) + len(one.reasons)) if row not in one.reasons]
        values[rows], looks[rows] = one.features, one.looks
    if reasons:
        keep = [row for row in range(count) if row not in reasons]
        values, looks = values[keep], looks[keep]
    return Taken(values, reasons, looks)


def listing_digest(listing: Listing) -> str:
    """Of what names the pictures: ids, labels, classes and splits."""
    total = hashlib.sha256(json.dumps([list(listing.ids), list(listing.classes)]).encode())
    total.update(listing.labels.tobytes())
    total.update(listing.splits.tobytes())
    return total.hexdigest()


def array_digest(images: Tensor) -> str:
    total = hashlib.sha256(str((tuple(images.shape), images.dtype)).encode())
    for some in images.split(max(1, BLOCK // max(1, images[:1].nbytes))):
        total.update(some.contiguous().numpy().tobytes())
    return total.hexdigest()


def read_parts(folder: Path, backbone: Backbone) -> dict[int, list[Stretch]]:
    """All parts in a folder, or a `ToolError` that names the one that is missing, twice there, or another backbone's."""
    if not folder.is_dir():
        raise UsageError(f"--merge {folder}: it is no folder; name the one with all parts in it")
    files = sorted(folder.glob("*.npz"))
    found: dict[int, tuple[Path, list[Stretch]]] = {}
    counts: dict[int, Path] = {}
    for file in files:
        facts, stretches = _read_part(file)
        if facts["backbone"] != backbone.key:
            raise ToolError(
                f"{file}: its features are by {facts['name']} with other weights or another size of pictures than this command "
                f"names ({backbone.name}); merge parts by one backbone"
            )
        number = facts["number"]
        if number in found:
            raise ToolError(f"{file}: part {number} is in {found[number][0].name}, too; leave one of them in the folder")
        found[number] = (file, stretches)
        counts.setdefault(facts["parts"], file)
    if not found:
        raise UsageError(f"--merge {folder}: there are no parts in it; write them with --shard 1/N --out {folder / '1.npz'}")
    if len(counts) > 1:
        one, other = list(counts.items())[:2]
        raise ToolError(
            f"{other[1]}: it is one of {other[0]} parts, and {one[1].name} one of {one[0]}; merge parts of one division"
        )
    (parts,) = counts
    missing = [number for number in range(1, parts + 1) if number not in found]
    if missing:
        listed = ", ".join(map(str, missing[:10])) + (" ..." if len(missing) > 10 else "")
        raise ToolError(
            f"{folder}: of {parts} parts {len(missing)} are missing: {listed}; write them with --shard {missing[0]}/{parts}"
        )
    return {number: stretches for number, (_, stretches) in found.items()}


def _read_part(file: Path) -> tuple[dict[str, Any], list[Stretch]]:
    arrays = read_npz(file)
    try:
        facts = json.loads(str(arrays["part"]))
        if facts["form"] != FORM or not isinstance(facts["number"], int) or not isinstance(facts["parts"], int):
            raise ValueError
        stretches = []
        for i, one in enumerate(facts["lists"]):
            features, looks = arrays[f"features{i}"], arrays[f"looks{i}"]
            reasons = {int(row): str(why) for row, why in one["reasons"]}
            last = one["first"] + len(features) + len(reasons)
            if features.ndim != 2 or looks.shape != (len(features), LOOK) or not 0 <= one["first"] <= last <= one["count"]:
                raise ValueError
            if not all(one["first"] <= row < last for row in reasons) or not np.isfinite(features).all():
                raise ValueError
            stretches.append(Stretch(one["digest"], one["count"], one["first"], features, looks, reasons))
    except (KeyError, ValueError, TypeError):
        raise ToolError(
            f"{file}: it is no part of `labelsieve embed --shard`, or it is damaged; take it out of the folder, or write it again"
        ) from None
    return facts, stretches
