"""What processes share on a disk: locks, flushed files, and reading from a place in a file.

The kernel lets go of a lock when its process ends, killed or not. On a file system that cannot lock (network ones) nothing is
held, and work goes on without the guard.
"""

import errno
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labelsieve.doors import FLAGS, NOFOLLOW


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


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# How file systems say that they cannot lock.
WITHOUT_LOCKS = (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
OFTEN = 0.01  # seconds between two tries where the kernel cannot be told to wait


@contextmanager
def hold(handle: int | None, place: Path, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold the lock of `place`, which `handle` has open; `BlockingIOError` where another has it and you don't `wait`.

    Close the handle right after: the lock goes with it. Windows cannot lock a folder, and cannot move what is open, so without
    flock the lock is a file beside the place, and excludes those who would share it.
    """
    if fcntl is None:
        with _beside(place, wait):
            yield
        return
    assert handle is not None
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno not in WITHOUT_LOCKS:
            raise
    yield


def open_to_hold(place: Path) -> int | None:
    """A handle for `hold`, of a file or a folder; None where locks are files of their own. Close it."""
    return None if fcntl is None else os.open(place, os.O_RDONLY | FLAGS | NOFOLLOW)


def lock_file(place: Path) -> Path:
    """Where the lock of `place` lies without flock."""
    return place.with_name(f".{place.name}.lock")


@contextmanager
def _beside(place: Path, wait: bool) -> Iterator[None]:
    import filelock

    kind: Any = filelock.FileLock
    if issubclass(kind, filelock.SoftFileLock):  # it would outlive a killed process
        warnings.warn("this system has no file locks; don't let two commands work on one run at once", stacklevel=2)
        yield
        return
    lock = kind(lock_file(place), timeout=-1 if wait else 0)
    try:
        lock.acquire(poll_interval=OFTEN)
    except filelock.Timeout:
        raise BlockingIOError(errno.EAGAIN, "another process holds it") from None
    except NotImplementedError:  # a file system without locks
        yield
        return
    except OSError as error:
        if error.errno not in WITHOUT_LOCKS:
            raise
        yield
        return
    try:
        yield
    finally:
        lock.release()
