"""Decoded pictures on the disk: uint8 (N, C, S, S) in one .npy that is mapped, and a log of what is done.

The log gets a line for a stretch of rows after its pixels are flushed to the disk, so a killed decode goes on
where it stopped. When all is done, rows that could not be read are taken out of the .npy, in one atomic move.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.pictures.decode import PASSING
from labelsieve.data.pictures.options import named
from labelsieve.disk import hold
from labelsieve.errors import ToolError
from labelsieve.texts import byte_count

HEADER = 128  # bytes before the pixels in an .npy of this kind
STRETCH_BYTES = 8 * 2**20
HELD = 4 * 2**30  # at most so much is ever held in memory instead of mapped


def default_cache_dir() -> Path:
    """XDG_CACHE_HOME/labelsieve, else ~/.cache/labelsieve."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "labelsieve"


def make_folder(folder: Path) -> None:
    """A folder for decoded pictures. Those in the user's own cache are for the user alone; one that was named may be shared."""
    with suppress(RuntimeError):  # no home, so nothing lies below it
        home = default_cache_dir()
        if folder.is_relative_to(home):
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)


def cache_size(count: int, size: int, channels: int) -> int:
    """The bytes that `count` pictures of `channels` x `size` x `size` take on the disk."""
    return HEADER + count * channels * size * size


@dataclass(frozen=True)
class PixelCache:
    """One folder: pixels.npy and done.jsonl, for `shape` (N, C, S, S)."""

    folder: Path
    shape: tuple[int, int, int, int]

    @property
    def file(self) -> Path:
        return self.folder / "pixels.npy"

    @property
    def bytes(self) -> int:
        return cache_size(self.shape[0], self.shape[2], self.shape[1])

    @property
    def stretch(self) -> int:
        """Rows that are decoded, flushed and told as done together: about 8 MiB, 8 to 512 rows."""
        return int(np.clip(STRETCH_BYTES // int(np.prod(self.shape[1:])), 8, 512))

    @property
    def stretches(self) -> int:
        return -(-self.shape[0] // self.stretch)

    def rows(self, stretch: int) -> range:
        return range(stretch * self.stretch, min((stretch + 1) * self.stretch, self.shape[0]))

    def prepare(self) -> None:
        """The folder and an empty pixels.npy, unless they are there."""
        if self.file.exists():
            return
        with cache_errors(self.folder):
            make_folder(self.folder)
            free = shutil.disk_usage(self.folder).free
            if self.bytes > free:
                raise ToolError(
                    f"{self.folder}: the decoded pictures need {byte_count(self.bytes)} and "
                    f"{byte_count(free)} are free; choose a smaller size or another {named('cache_dir')}"
                )
            (self.folder / "done.jsonl").unlink(missing_ok=True)  # it belongs to pixels that are gone
            draft = self.folder / "pixels.draft"
            np.lib.format.open_memmap(draft, "w+", np.uint8, self.shape).flush()
            draft.replace(self.file)

    def discard_damaged(self) -> None:
        """Take pixels away that a crash of the machine or a full disk left short: they are decoded again."""
        if not self.file.exists():
            return
        unreadable = sum(map(len, self.done().values()))
        whole = (self.bytes, cache_size(self.shape[0] - unreadable, self.shape[2], self.shape[1]))
        if self.file.stat().st_size not in whole:
            with cache_errors(self.folder):
                self.file.unlink()

    def done(self) -> dict[int, dict[int, str]]:
        """{stretch: {row: reason}} of what is finished; a line that a kill cut short does not count."""
        found: dict[int, dict[int, str]] = {}
        log = self.folder / "done.jsonl"
        if not (self.file.exists() and log.exists()):
            return found
        for line in log.read_text("ascii", errors="replace").splitlines():
            try:
                entry = json.loads(line)
                found[int(entry["stretch"])] = {int(row): why for row, why in entry["unreadable"]}
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def tell(self, stretch: int, unreadable: dict[int, str]) -> None:
        """Log a stretch whose pixels are on the disk."""
        entry = json.dumps({"stretch": stretch, "unreadable": sorted(unreadable.items())})
        with cache_errors(self.folder), (self.folder / "done.jsonl").open("a", encoding="ascii") as log:
            # The break comes first: a line that a kill cut short must not swallow this one.
            log.write(f"\n{entry}\n")
            log.flush()
            os.fsync(log.fileno())

    def finish(self, unreadable: dict[int, str]) -> NDArray[np.uint8]:
        """The readable rows' pixels, mapped: (N - unreadable, C, S, S). The file is only replaced whole.

        While some rows may be readable another time, the file keeps them all, and a copy in memory is given; of a large
        cache, an error.
        """
        kept = self.shape[0] - len(unreadable)
        pixels = self._mapped()
        if len(pixels) == kept:
            return pixels
        keep = np.setdiff1d(np.arange(self.shape[0]), list(unreadable))
        if PASSING & set(unreadable.values()):
            if self.bytes > HELD:
                row, why = next(item for item in unreadable.items() if item[1] in PASSING)
                raise ToolError(
                    f"{self.folder}: {len(unreadable):,} pictures cannot be read now (row {row}: {why}); fix that and start "
                    f"again: what is decoded is kept"
                )
            return np.ascontiguousarray(pixels[keep])
        draft = self.folder / "readable.draft"
        with cache_errors(self.folder), draft.open("wb") as stream:
            np.lib.format.write_array_header_1_0(
                stream, {"descr": "|u1", "fortran_order": False, "shape": (kept, *self.shape[1:])}
            )
            for start in range(0, kept, self.stretch):
                stream.write(pixels[keep[start : start + self.stretch]].tobytes())
            stream.flush()
            os.fsync(stream.fileno())
        del pixels
        draft.replace(self.file)
        return self._mapped()

    def _mapped(self) -> NDArray[np.uint8]:
        try:
            # Copy on write: whoever changes the pixels in memory never changes the cache.
            return np.load(self.file, mmap_mode="c", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ToolError(f"{self.file}: the cache is damaged ({error}); delete {self.folder}") from None


@contextmanager
def cache_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ToolError(
            f"{folder}: the cache cannot be written ({error.strerror or error}); free some space or "
            f"choose another {named('cache_dir')}"
        ) from None


def _is_writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


def _refuse_links(folder: Path) -> None:
    """A run folder from elsewhere may name a cache of its own, in which links lead to files of the user's, and pipes nowhere."""
    for path in folder.iterdir():
        if path.is_symlink():
            raise ToolError(f"{path}: a link, which no cache has: what is decoded would be written elsewhere; remove it")
        if not path.is_file() and not path.is_dir():
            raise ToolError(f"{path}: a pipe or a device, which no cache has: reading it would never end; remove it")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time decodes into `folder`; another waits and then finds it done. Ends with the process.

    A folder that cannot be written, as a cache that people share often is, needs no lock: nobody here changes it.
    """
    if folder.is_dir() and not _is_writable(folder):
        yield
        return
    with cache_errors(folder):
        make_folder(folder)
        _refuse_links(folder)
        lock = (folder / "lock").open("a")
    with lock, hold(lock.fileno(), folder / "pixels"):
        yield
