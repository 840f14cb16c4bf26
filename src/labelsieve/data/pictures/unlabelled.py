"""Opens new pictures without labels, in chunks, and says what could not be read."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.pictures.decoding import Plan, Read, decoded
from labelsieve.data.pictures.folders import OUT, holds_picture, left_out, walk
from labelsieve.data.pictures.listing import Listing
from labelsieve.data.pictures.manifest import unlabelled_manifest
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.origins import Files, Origin
from labelsieve.data.pictures.stored import is_saved, shard_files, unlabelled_stored
from labelsieve.data.pictures.tables import SUFFIXES
from labelsieve.doors import is_folder, reading
from labelsieve.errors import ToolError

CHUNK_BYTES = 256 * 2**20
FILES = (*SUFFIXES, ".npz", ".npy")


@dataclass(frozen=True)
class Unlabelled:
    """Pictures by the names they go by (N,), in order; `problems` {row: reason} are those not worth opening.

    `ignored` counts what was passed over; `notes` should be said.
    """

    origin: Origin
    names: Sequence[str]
    problems: dict[int, str]
    ignored: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Chunk:
    """Some rows: names (M,), pixels uint8 (R, C, S, S) of those without an error, and the errors by place in `names`.

    Vectors float32 (M, D) stand where pictures stand.
    """

    names: Sequence[str]
    pixels: NDArray[Any]
    errors: dict[int, str] = field(default_factory=dict)


def find_pictures(paths: Sequence[Path], outside: bool = False) -> Unlabelled:
    """Files as they are named, and every picture below the folders, each name once; `outside` follows links to other folders."""
    ignored: Counter[str] = Counter()
    names: dict[str, None] = {}
    for path in paths:
        path = path.expanduser()
        if is_folder(path):
            names |= dict.fromkeys(str(path / below) for below in walk(path, path, ignored, outside))
        else:
            names[str(path)] = None
    if not names:
        listed = ", ".join(map(str, paths[:3])) or "nothing"
        remedy = left_out(ignored) if ignored[OUT] else "give picture files, or folders that hold some"
        raise ToolError(f"{listed}: no picture is there; {remedy}")
    # The names start from the working folder; links may lead anywhere, for the user asked for these very files.
    files, problems = Files(Path(os.curdir), list(names), outside=True).examined()
    return Unlabelled(files, files.paths, problems, ignored, (left_out(ignored),) if ignored[OUT] else ())


def in_chunks(found: Unlabelled, plan: Plan, workers: int | None = None, read: Read = decoded) -> Iterator[Chunk]:
    """The pictures, decoded a stretch at a time into a temporary folder, so that any number of them can be looked at."""
    size = max(64, CHUNK_BYTES // (plan.channels * plan.size**2))
    with tempfile.TemporaryDirectory(prefix="labelsieve-") as folder:
        for first in range(0, len(found), size):
            rows = np.arange(first, min(first + size, len(found)), dtype=np.int64)
            errors = {int(row) - first: found.problems[int(row)] for row in rows if int(row) in found.problems}
            open_rows = np.array([row for row in rows if int(row) not in found.problems], np.int64)
            part = found.origin.take(open_rows)
            place = Path(folder) / str(first)
            pixels: NDArray[Any] = np.empty((0, plan.channels, plan.size, plan.size), np.uint8)
            if len(part):
                count = len(part)
                names = [found.names[row] for row in open_rows.tolist()]
                listing = Listing(place, part, names, np.zeros(count, np.int64), (), np.zeros(count, np.int8))
                taken = read(listing, replace(plan, count=count), place, workers, None)
                pixels = taken.values
                errors |= {int(open_rows[row]) - first: why for row, why in taken.reasons.items()}
            yield Chunk([found.names[row] for row in rows.tolist()], pixels, errors)
            del pixels
            shutil.rmtree(place, ignore_errors=True)


def is_set(path: Path) -> bool:
    """Whether pictures are rows of the data set at `path`, rather than itself or the files below it."""
    if is_folder(path):
        try:
            return is_saved(path) or (not holds_picture(path) and bool(shard_files(path)))
        except (OSError, ToolError):  # one that may not be looked into is passed over, and counted, by `find_pictures`
            return False
    return path.suffix.lower() in FILES


def unlabelled_set(kind: str, path: Path, options: PictureOptions) -> Unlabelled:
    """The pictures of a table, a saved data set or Parquet files, `kind` as `recognise` calls it; all splits, each row once."""
    if kind == "manifest":
        with reading(path, "write or fetch the table again"):
            named = unlabelled_manifest(path, options)
        files, problems = named.files.examined()
        return Unlabelled(files, named.ids, problems, notes=named.notes)
    with reading(path, "write or fetch the data set again"):
        rows = unlabelled_stored(path, options)
    return Unlabelled(rows.origin, rows.ids, {})
