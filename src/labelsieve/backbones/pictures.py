"""What a backbone looks at: picture files or arrays, each with a key of its own, framed a block at a time; and the features kept.

The store is a folder of small files, each written whole, that any number of runs add to. A file is never changed. Whatever
happens to a process, the files before stay; one that a crash of the machine damaged is passed over, and its pictures are looked
at again.
"""

import hashlib
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from labelsieve.data.npz import read_npz
from labelsieve.data.pictures.cache import cache_errors, make_folder
from labelsieve.data.pictures.decode import WHITEST, eight_bit
from labelsieve.data.pictures.framing import Frame, framed
from labelsieve.data.pictures.looks import LOOK, unknown
from labelsieve.data.pictures.origins import Origin
from labelsieve.data.pictures.pool import Task, run_tasks, worker_count
from labelsieve.disk import flush
from labelsieve.errors import ToolError

Keys = Sequence[bytes]  # 16 bytes a picture
KEY = 16
SUFFIX = ".npz"


@dataclass
class FeatureStore:
    """The features (D,) of pictures that one backbone has seen; `known` says which file and row has them, once read."""

    folder: Path
    known: dict[bytes, tuple[Path, int]] = field(default_factory=dict)

    def read(self) -> None:
        """Find out what is there."""
        self.known = {}
        for file in sorted(self.folder.glob(f"*{SUFFIX}")) if self.folder.is_dir() else ():
            keys = _array(file, "keys")
            if keys is not None and keys.dtype == np.uint8 and keys.ndim == 2 and keys.shape[1] == KEY:
                self.known |= {key.tobytes(): (file, row) for row, key in enumerate(keys)}

    def sweep(self) -> None:
        """Clear away what killed processes were writing. Only for who holds the folder's lock."""
        for draft in self.folder.glob("*.draft"):
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def add(self, keys: Keys, features: NDArray[np.float32], looks: NDArray[np.uint8]) -> None:
        """Put the features (M, D) of pictures on the disk, and what they look like (M, LOOK)."""
        if not keys:
            return
        place = self.folder / f"{uuid.uuid4().hex}{SUFFIX}"
        draft = place.with_suffix(f".{os.getpid()}.draft")
        with cache_errors(self.folder):
            make_folder(self.folder)
            try:
                with draft.open("xb") as stream:
                    names = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY)
                    np.savez(stream, keys=names, looks=looks, features=features)
                flush(draft)
                draft.replace(place)
            finally:
                with suppress(OSError):
                    draft.unlink(missing_ok=True)
        self.known |= {key: (place, row) for row, key in enumerate(keys)}

    def gather(self, keys: Keys, width: int) -> tuple[NDArray[np.float32], NDArray[np.uint8], list[int]]:
        """The features (N, width) and looks of pictures in their order; and the rows that are not there, or in a damaged file.

        Those have zeros. Files of older versions have no looks: these are unknown.
        """
        found, seen = np.zeros((len(keys), width), np.float32), unknown(len(keys))
        missing, wanted = [], dict[Path, list[tuple[int, int]]]()
        for row, key in enumerate(keys):
            if key in self.known:
                file, place = self.known[key]
                wanted.setdefault(file, []).append((row, place))
            else:
                missing.append(row)
        for file, pairs in wanted.items():
            rows, places = (list(some) for some in zip(*pairs))
            values = _array(file, "features")
            is_whole = values is not None and values.shape[1:] == (width,) and len(values) > max(places)
            if values is None or not is_whole or values.dtype != np.float32 or not np.isfinite(values[places]).all():
                missing += rows
                self._forget(file)
            else:
                found[rows] = values[places]
                looks = _array(file, "looks")
                if looks is not None and looks.dtype == np.uint8 and looks.shape == (len(values), LOOK):
                    seen[rows] = looks[places]
        return found, seen, sorted(missing)

    def _forget(self, file: Path) -> None:
        self.known = {key: place for key, place in self.known.items() if place[0] != file}
        with suppress(OSError):  # in a cache that others own it stays
            file.unlink(missing_ok=True)


def _array(file: Path, name: str) -> NDArray | None:
    """An array of the file; None where the file is damaged. Its own checksum tells."""
    try:
        return read_npz(file, of_run=True, only=name).get(name)
    except ToolError:
        return None


@dataclass(frozen=True)
class Block:
    """Rows of which those without a reason in `reasons` {place: why not} are framed: `pixels` uint8 (M, 3, H, W)."""

    rows: Sequence[int]
    pixels: Tensor
    reasons: dict[int, str]


class Pictures(Protocol):
    def keys(self) -> list[bytes]: ...

    def blocks(self, rows: Sequence[int], frame: Frame, size: int, scratch: Path) -> Iterator[Block]: ...


@dataclass(frozen=True)
class FilePictures:
    """Pictures in files. A key is a file's place, size and time, or its content."""

    origin: Origin
    white: int = WHITEST
    by_content: bool = False
    workers: int | None = None

    def keys(self) -> list[bytes]:
        more = b"" if self.white == WHITEST else b"%d" % self.white
        return [hashlib.sha256(word + more).digest()[:KEY] for word in self.origin.identities(self.by_content)]

    def blocks(self, rows: Sequence[int], frame: Frame, size: int, scratch: Path) -> Iterator[Block]:
        """Decoded by processes of their own, a few blocks ahead of whoever takes them, in a scratch file that goes at the end."""
        workers = worker_count(self.workers, len(rows))
        slots, block = max(1, workers) + 2, size * 3 * frame.height * frame.width
        file = scratch / f"frames.{os.getpid()}.draft"
        free: SimpleQueue[int | None] = SimpleQueue()
        taken: dict[int, int] = {}
        for slot in range(slots):
            free.put(slot)

        def make(k: int) -> Task:
            slot = free.get()
            if slot is None:
                raise ToolError("the pictures are no longer wanted")
            taken[k] = slot
            some = rows[k * size : (k + 1) * size]
            return {
                "do": "decode",
                "references": [self.origin.reference(row) for row in some],
                "first": 0,
                "frame": frame.facts(),
                "white": self.white,
                "file": str(file),
                "bytes": slots * block,
                "offset": slot * block,
            }

        with cache_errors(scratch):
            make_folder(scratch)
            file.unlink(missing_ok=True)
            with file.open("xb") as new:
                new.write(bytes(block))  # a full disk is told now
                new.truncate(slots * block)
        try:
            # Unbuffered: other processes write here meanwhile, and a buffer would hold what was there before.
            with file.open("rb", buffering=0) as stream:
                for k, answers in run_tasks(-(-len(rows) // size), make, workers):
                    some, slot = rows[k * size : (k + 1) * size], taken.pop(k)
                    stream.seek(slot * block)
                    seen = np.empty(len(some) * block // size, np.uint8)
                    if stream.readinto(seen.data) != len(seen):
                        raise ToolError(f"{file}: it was cut short while pictures were decoded into it; run the command again")
                    free.put(slot)
                    reasons = {place: why for place, why in enumerate(answers) if why is not None}
                    yield Block(some, torch.from_numpy(seen).view(len(some), 3, frame.height, frame.width), reasons)
        finally:
            for _ in range(slots + max(1, workers)):
                free.put(None)  # or threads that wait for a place would wait for ever
            file.unlink(missing_ok=True)


@dataclass(frozen=True)
class ArrayPictures:
    """Pictures as bytes (N, C, H, W), grey or RGB. A key is a picture's content."""

    images: Tensor
    place: str

    def __post_init__(self) -> None:
        if self.images.shape[1] not in (1, 3):
            raise ToolError(f"{self.place}: pictures of {self.images.shape[1]} channels; a backbone looks at grey or RGB ones")

    def keys(self) -> list[bytes]:
        shape = str(tuple(self.images.shape[1:])).encode()
        return [hashlib.sha256(shape + one.numpy().tobytes()).digest()[:KEY] for one in self.images]

    def blocks(self, rows: Sequence[int], frame: Frame, size: int, scratch: Path) -> Iterator[Block]:
        for first in range(0, len(rows), size):
            some = rows[first : first + size]
            yield Block(some, torch.from_numpy(np.stack([framed(as_picture(self.images[row]), frame) for row in some])), {})


@dataclass(frozen=True)
class LoosePictures:
    """Pillow's pictures, each of a size of its own. A key is a picture's content."""

    pictures: Sequence[Image.Image]

    def keys(self) -> list[bytes]:
        facts = (f"{one.mode} {one.size} {one.getpalette()}\0".encode() + one.tobytes() for one in self.pictures)
        return [hashlib.sha256(fact).digest()[:KEY] for fact in facts]

    def blocks(self, rows: Sequence[int], frame: Frame, size: int, scratch: Path) -> Iterator[Block]:
        for first in range(0, len(rows), size):
            some = rows[first : first + size]
            pixels = [framed(eight_bit(self.pictures[row], "RGB"), frame) for row in some]
            yield Block(some, torch.from_numpy(np.stack(pixels)), {})


def as_picture(pixels: Tensor) -> Image.Image:
    """Bytes (C, H, W), grey or RGB, as an RGB picture."""
    plain: NDArray[np.uint8] = pixels.expand(3, *pixels.shape[1:]).permute(1, 2, 0).contiguous().numpy()
    return Image.fromarray(plain)
