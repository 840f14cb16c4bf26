"""Puts a picture into a new folder: as a hard link, a symbolic link or a copy.

Each is given the opened file that was examined (`data/pictures/fetch.py`) and its name, and hands on that file or none: by its
name, another may stand there by now.
"""

import errno
import os
from collections.abc import Callable
from typing import BinaryIO

from labelsieve.data.pictures.decode import PictureError
from labelsieve.errors import ToolError

PART = 2**20
NO_PRIVILEGE = 1314  # Windows, unless it is in developer mode
REPLACED = "it was replaced while it was linked"
Put = Callable[[BinaryIO, str, str], None]


def hardlink(opened: BinaryIO, source: str, target: str) -> None:
    try:
        os.link(os.path.realpath(source), target)
    except OSError as error:
        if error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP):
            raise ToolError(
                f"{target}: no hard link to {source} can be made here ({error.strerror}); use --copy, or --symlink"
            ) from None
        raise
    _check_same(opened, os.lstat(target), target)


def symlink(opened: BinaryIO, source: str, target: str) -> None:
    try:
        os.symlink(os.path.abspath(source), target)  # noqa: PTH100, PTH211 - text, for speed
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EOPNOTSUPP) or getattr(error, "winerror", None) == NO_PRIVILEGE:
            raise ToolError(f"{target}: no symbolic link can be made here ({error.strerror}); use --copy") from None
        raise
    _check_same(opened, os.stat(target), target)  # noqa: PTH116


def _check_same(opened: BinaryIO, linked: os.stat_result, target: str) -> None:
    """A link is made by name; one that leads to another file than the examined one goes at once."""
    if not os.path.samestat(os.fstat(opened.fileno()), linked):
        os.unlink(target)  # noqa: PTH108
        raise PictureError(REPLACED)


def copy(opened: BinaryIO, source: str, target: str) -> None:
    with open(target, "xb") as made:  # noqa: PTH123 - text, for speed
        while part := read_part(opened, source):
            made.write(part)
    seen = os.fstat(opened.fileno())
    os.utime(target, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    os.chmod(target, seen.st_mode & 0o777)  # noqa: PTH101


def read_part(opened: BinaryIO, source: str) -> bytes:
    """Whoever makes the new folder takes an `OSError` for one of that folder; so one of the source is a `ToolError`."""
    try:
        return opened.read(PART)
    except OSError as error:
        raise ToolError(
            f"{source}: this picture cannot be read ({error.strerror or error}), so it cannot be copied; mend its disk, or use "
            f"--symlink, which does not read it"
        ) from None


PUTS: dict[str, Put] = {"hardlink": hardlink, "symlink": symlink, "copy": copy}
