"""Refuses packed files that unpack to more than memory can hold."""

import os
from functools import cache
from pathlib import Path

from labelsieve.errors import ToolError

CONTAINER = Path("/sys/fs/cgroup/memory.max")


@cache
def memory() -> int | None:
    """The bytes of memory that this machine, or the container we are in, has; None where it does not say."""
    found = []
    try:
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        found.append(int(CONTAINER.read_text("ascii")))
    except (OSError, ValueError, AttributeError):  # no such limit, or no such system
        pass
    return min((count for count in found if count > 0), default=None)


def refuse_beyond_memory(count: int, place: str) -> None:
    """A few megabytes of packed zeros can be as many gigabytes; better told than killed."""
    there = memory()
    if there is not None and count > there:
        raise ToolError(
            f"{place}: it unpacks to {count / 2**30:,.1f} GiB, and this machine has {there / 2**30:,.1f} GiB of memory; "
            f"take fewer samples into it, or picture files, which need not fit"
        )
