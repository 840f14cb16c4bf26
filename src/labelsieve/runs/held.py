"""Locks among processes that share a folder: a name goes in, the lock is held or it is not. It falls when its owner dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labelsieve.locks import hold
from labelsieve.runs import atomic


@contextmanager
def held(place: Path, wait: bool = False) -> Iterator[bool]:
    """True inside where no other process holds the lock file `place`; the kernel lets go of it with the process, killed or not.

    The file itself stays: removing it would let two processes hold two files of one name. On a file system that cannot
    lock, it is always True.
    """
    with atomic.disk_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield _taken(handle, wait)
    finally:
        os.close(handle)


def _taken(handle: int, wait: bool) -> bool:
    try:
        hold(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
