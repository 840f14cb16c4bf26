"""Writes that are either whole or absent, also when the process is killed or the disk is full half-way through."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from labelsieve.errors import ToolError


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what the disk refuses into a `ToolError` with the place and the remedy."""
    try:
        yield
    except PermissionError as error:
        raise ToolError(f"{path}: not writable ({error.strerror}); choose another place with --out") from None
    except OSError as error:
        raise ToolError(
            f"{path}: could not be written ({error.strerror or error}); free some space or mend the disk, then run "
            f"`labelsieve resume`: what was written before is whole"
        ) from None


def write_file(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` make the file under another name, flush it to the disk, then put it in place in one move."""
    with disk_errors(path):
        draft = path.with_name(f".{path.name}.draft")
        try:
            write(draft)
            _flush(draft)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        _flush(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    def write(draft: Path) -> None:
        draft.write_bytes(content)

    write_file(path, write)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_folder(path: Path, write: Callable[[Path], None]) -> None:
    """The same for a whole folder, which must not exist yet; drafts of killed processes are cleared away."""
    with disk_errors(path):
        draft = path.with_name(f".{path.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            write(draft)
            for file in draft.iterdir():
                _flush(file)
            _flush(draft)
            draft.rename(path)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        _flush(path.parent)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
