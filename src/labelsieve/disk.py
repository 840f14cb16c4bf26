"""Flushes files to the disk, and reads from a place in a file."""

import os
from pathlib import Path


def flush(path: Path) -> None:
    """Return when it would outlive a power cut: of a file its content, of a folder the names in it.

    Windows cannot do that for folders, and writes names down by itself; there files must be open for writing.
    """
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_at(handle: int, size: int, at: int) -> bytes:
    """Up to `size` bytes from place `at`; fewer only where the file ends."""
    if hasattr(os, "pread"):
        found = os.pread(handle, size, at)
    else:  # Windows
        os.lseek(handle, at, os.SEEK_SET)
        found = os.read(handle, size)
    return found
