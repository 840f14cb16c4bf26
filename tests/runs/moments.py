"""Every state of a folder that a SIGKILL could leave: copies of it, made before each thing a process does to the disk.

What is half-way through being written is cut in half in the copy, for a kill may come inside a write.
"""

import hashlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree"}
_watchers: list["Moments"] = []


class Moments:
    """Copies of `folder` under `shelf`, one for each distinct state, in the order in which they came to be."""

    def __init__(self, folder: Path, shelf: Path) -> None:
        self.folder, self.shelf = folder, shelf
        self.seen: set[str] = set()
        self.copies: list[Path] = []

    def heard(self, path: object) -> None:
        if not isinstance(path, (str, Path)) or not str(path).startswith(str(self.folder)) or not self.folder.exists():
            return
        state = _digest(self.folder)
        if state not in self.seen:
            self.seen.add(state)
            self.copies.append(self.shelf / f"{len(self.copies):03d}")
            shutil.copytree(self.folder, self.copies[-1])
            for draft in (*self.copies[-1].rglob(".*.draft"), *self.copies[-1].rglob(".*.part")):
                for file in draft.rglob("*") if draft.is_dir() else [draft]:
                    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.name != "timings.jsonl":  # the clock's, not the run's
            digest.update(f"{path.relative_to(folder)}\0".encode())
            digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event in EVENTS and _watchers:
        watcher = _watchers.pop()  # what it does itself is not listened to
        watcher.heard(arguments[0])
        _watchers.append(watcher)


sys.addaudithook(_hook)


@contextmanager
def watched(folder: Path, shelf: Path) -> Iterator[Moments]:
    shelf.mkdir()
    moments = Moments(folder, shelf)
    _watchers.append(moments)
    try:
        yield moments
    finally:
        _watchers.clear()
