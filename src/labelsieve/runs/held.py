"""Lock files, for processes that share a folder. A lock falls when its owner dies."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from labelsieve.doors import FLAGS
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
        handle = os.open(place, os.O_RDWR | os.O_CREAT | FLAGS, 0o644)
    with ExitStack() as stack:
        stack.callback(os.close, handle)
        try:
            stack.enter_context(hold(handle, place, wait=wait))
        except BlockingIOError:
            yield False
            return
        yield True
