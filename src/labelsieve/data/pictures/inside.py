"""Opens a picture of the data, a plain file below the root. Whatever is decoded, copied, linked or shown is opened here.

The file is found without following a link, or by what its links lead to, which must lie below the root, too. What you get is
the opened file, so nobody can put another in its place between looking and reading.
"""

import os
from pathlib import Path
from typing import BinaryIO

from labelsieve import doors
from labelsieve.data.pictures.decode import PictureError

LEAVES = "it leads out of the root folder"


def open_inside(root: str | Path, path: str, outside: bool = False) -> BinaryIO:
    """The file at `root`/`path`; a `PictureError` or an `OSError` says why not. `outside` allows it to lie anywhere."""
    full = os.path.join(root, path)  # noqa: PTH118 - a million of them
    if "\0" in path:
        raise PictureError("its name has a NUL in it")
    if outside:
        return doors.open_plain(Path(full), follow=True)
    if path[:1] != "/" and ".." not in path:
        try:
            return doors.open_plain(Path(full), top=Path(root))
        except doors.Refusal:  # perhaps a link that stays inside
            pass
    real, top = os.path.realpath(full), os.path.realpath(root)
    if not is_below(real, top):
        raise PictureError(LEAVES)
    return doors.open_plain(Path(real), top=Path(top))


def is_below(real: str, top: str) -> bool:
    """Both without links in them."""
    return real == top or real.startswith(top.rstrip(os.sep) + os.sep)
