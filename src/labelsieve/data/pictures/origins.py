"""Knows where each row's picture is: files below a root, or rows of Arrow or Parquet files.

A stamp tells whether a picture has changed: its relative path, size and time, or its content.
"""

import hashlib
import os
import stat
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from labelsieve import doors
from labelsieve.data.pictures.decode import PictureError, reason
from labelsieve.data.pictures.fetch import LEAVES, Reference, is_below, open_inside
from labelsieve.data.pictures.paths import is_web_address

Index = NDArray[np.int64]
Place = TypeVar("Place")
NO_FILE = "there is no such file"


class Origin(Protocol):
    """One entry a row."""

    def __len__(self) -> int: ...

    def take(self, index: Index) -> "Origin": ...

    def reference(self, row: int) -> Reference: ...

    def path(self, row: int) -> str: ...

    def examined(self) -> "tuple[Origin, dict[int, str]]": ...

    def digest(self, by_content: bool) -> str: ...

    def identities(self, by_content: bool) -> Iterator[bytes]: ...


@dataclass(frozen=True)
class Files:
    """Pictures at `root`/`paths[row]`; paths use "/" and are absolute only where `outside` allows it."""

    root: Path
    paths: Sequence[str]
    outside: bool = False
    stamps: NDArray[np.int64] | None = None  # (N, 2): size and time

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, index: Index) -> "Files":
        stamps = None if self.stamps is None else self.stamps[index]
        return replace(self, paths=[self.paths[row] for row in index.tolist()], stamps=stamps)

    def reference(self, row: int) -> Reference:
        return ["file", str(self.root), self.paths[row], self.outside]

    def full(self, row: int) -> str:
        return os.path.join(self.root, self.paths[row])  # noqa: PTH118 - a million of them

    def open(self, row: int) -> BinaryIO:
        """The picture itself, examined; a `PictureError` or an `OSError` says why not."""
        return open_inside(self.root, self.paths[row], self.outside)

    def path(self, row: int) -> str:
        return self.paths[row]

    def examined(self) -> tuple["Files", dict[int, str]]:
        """With stamps; and the rows whose file is missing, no plain file, or outside of the root: {row: reason}."""
        found: dict[int, str] = {}
        stamps = array("q", bytes(16 * len(self.paths)))  # written one by one, which NumPy is slow at
        top, start = os.path.realpath(self.root), f"{self.root}{os.sep}"
        inside: dict[str, bool] = {}
        for row, path in enumerate(self.paths):
            full = path if path[:1] == "/" else start + path
            folder = path.rpartition("/")[0]
            if folder not in inside:  # links are looked up once for each folder, not for each file
                inside[folder] = self.outside or _within(os.path.dirname(full), top)  # noqa: PTH120
            seen = None
            try:
                seen = os.lstat(full)
                if stat.S_ISLNK(seen.st_mode):
                    inside_too = self.outside or _within(full, top)
                    seen = os.stat(full)  # noqa: PTH116 - as text, for speed
                    found |= {} if inside_too else {row: LEAVES}
                if not inside[folder]:
                    found[row] = LEAVES
                elif not stat.S_ISREG(seen.st_mode):
                    found[row] = "it is not a plain file"
                elif not seen.st_size:
                    found.setdefault(row, "the file is empty")
                stamps[2 * row] = seen.st_size
                stamps[2 * row + 1] = seen.st_mtime_ns
            except FileNotFoundError:
                found[row] = _absence(path, seen is not None) if inside[folder] else LEAVES
            except (OSError, ValueError) as error:  # loops of links, names too long or with a NUL
                found[row] = f"it cannot be reached ({getattr(error, 'strerror', None) or error})"
        return replace(self, stamps=np.frombuffer(stamps, np.int64).reshape(-1, 2)), found

    def digest(self, by_content: bool) -> str:
        total = hashlib.sha256()
        for start in range(0, len(self.paths), 4096):
            total.update(os.fsencode("\0".join(self.paths[start : start + 4096])) + b"\0")
        if by_content:
            for row in range(len(self.paths)):
                total.update(_content(self.open, row))
        else:
            stamps = self.examined()[0].stamps if self.stamps is None else self.stamps
            total.update(os.fsencode(os.path.realpath(self.root)) + np.ascontiguousarray(stamps).tobytes())
        return total.hexdigest()

    def identities(self, by_content: bool) -> Iterator[bytes]:
        """What tells each picture from all others, wherever they are listed: its place, size and time, or its content."""
        stamps = self.examined()[0].stamps if self.stamps is None else self.stamps
        assert stamps is not None
        top = os.fsencode(os.path.realpath(self.root))
        for row, path in enumerate(self.paths):
            place = os.path.join(top, os.fsencode(path))  # noqa: PTH118 - a million of them
            yield _content(self.open, row) if by_content else place + b"\0" + stamps[row].tobytes()


@dataclass(frozen=True)
class ArrowRows:
    """Pictures in `column` of Arrow or Parquet files: row r is `rows[r]` of `files[shards[r]]`."""

    files: tuple[Path, ...]
    shards: Index
    rows: Index
    column: str
    outside: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, index: Index) -> "ArrowRows":
        return replace(self, shards=self.shards[index], rows=self.rows[index])

    def reference(self, row: int) -> Reference:
        return ["row", str(self.files[self.shards[row]]), int(self.rows[row]), self.column, self.outside]

    def path(self, row: int) -> str:
        return f"{self.files[self.shards[row]].name}#{int(self.rows[row])}"

    def examined(self) -> "tuple[ArrowRows, dict[int, str]]":
        """Nothing to find out before the files are read."""
        return self, {}

    def digest(self, by_content: bool) -> str:
        total = hashlib.sha256(f"{self.column} {self.outside}".encode())
        for file in self.files:
            total.update((b"\0" if by_content else b"") + self._identity(file, by_content))
        total.update(self.shards.tobytes() + self.rows.tobytes())
        return total.hexdigest()

    def identities(self, by_content: bool) -> Iterator[bytes]:
        """The same of rows: their file's identity, and which row of which column it is."""
        files = [self._identity(file, by_content) for file in self.files]
        for shard, row in zip(self.shards.tolist(), self.rows.tolist()):
            yield files[shard] + f"\0{row} {self.column} {self.outside}".encode()

    def _identity(self, file: Path, by_content: bool) -> bytes:
        if by_content:
            return _content(partial(doors.open_plain, follow=True), file)
        return os.fsencode(file.resolve()) + b"\0" + _stamp(str(file))


def _absence(path: str, is_link: bool) -> str:
    """Why there is no file at `path`."""
    if "://" in path and is_web_address(path):
        return "it is a web address that was not copied"
    return "it is a link to a file that is not there" if is_link else NO_FILE


def _within(path: str, top: str) -> bool:
    try:
        return is_below(os.path.realpath(path), top)
    except ValueError:  # a NUL in it: nothing is there
        return False


def _stamp(path: str) -> bytes:
    try:
        seen = os.stat(path)  # noqa: PTH116 - as text, as in `Files`
    except (OSError, ValueError):
        return b"gone\n"
    return b"%d %d\n" % (seen.st_size, seen.st_mtime_ns)


def _content(opened: Callable[[Place], BinaryIO], place: Place) -> bytes:
    try:
        with opened(place) as stream:
            return hashlib.file_digest(cast(Any, stream), "sha256").digest()
    except (PictureError, OSError) as error:
        return reason(error).encode()
