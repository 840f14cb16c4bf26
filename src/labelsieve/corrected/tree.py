"""Makes a new tree of links or copies of pictures, each below its corrected class.

A picture in a class folder that keeps its label keeps its path. One that would land on another gets "-from-FOLDER" in its name.
Each picture is opened and examined first, and that very file is handed on: its name may stand for another one by then.
"""

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from labelsieve.corrected.corrections import Corrections
from labelsieve.data.pictures.decode import PictureError, reason
from labelsieve.data.pictures.listing import SPLITS, TRAIN, LeftOut, Listing
from labelsieve.data.pictures.origins import NO_FILE, Files
from labelsieve.errors import ToolError
from labelsieve.texts import quoted

PART = 2**20
NO_PRIVILEGE = 1314  # Windows, unless it is in developer mode
REPLACED = "it was replaced while it was linked"
Put = Callable[[BinaryIO, str, str], None]
LONGEST = 255  # bytes of a file's name


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
    seen, place = os.fstat(opened.fileno()), 0
    with open(target, "xb") as made:  # noqa: PTH123 - text, for speed
        while (place := _next_data(opened, place, seen.st_size)) < seen.st_size and (part := read_part(opened, source)):
            made.seek(place)
            made.write(part)
            place += len(part)
        made.truncate(place)
    os.utime(target, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    os.chmod(target, seen.st_mode & 0o777)  # noqa: PTH101


def _next_data(opened: BinaryIO, place: int, size: int) -> int:
    """Where the next bytes are, at `place` or behind a hole, and `opened` is then: a hole is not written out as zeros."""
    if hasattr(os, "SEEK_DATA"):
        try:
            place = os.lseek(opened.fileno(), place, os.SEEK_DATA)
        except OSError as error:
            place = size if error.errno == errno.ENXIO else place  # the rest is a hole; or the file system tells of none
    return opened.seek(place)


def read_part(opened: BinaryIO, source: str) -> bytes:
    """Whoever makes the new folder takes an `OSError` for one of that folder; so one of the source is a `ToolError`."""
    try:
        return opened.read(PART)
    except OSError as error:
        raise ToolError(
            f"{source}: this picture cannot be read ({error.strerror or error}), so it cannot be copied; check its disk, or use "
            f"--symlink, which does not read it"
        ) from None


PUTS: dict[str, Put] = {"hardlink": hardlink, "symlink": symlink, "copy": copy}


@dataclass(frozen=True)
class Placed:
    """How many pictures were placed, and which were not, for their files are gone or are none that training would read."""

    count: int
    left_out: tuple[LeftOut, ...]


def class_tree(listing: Listing, corrections: Corrections, top: Path, put: Put, depth: int) -> Placed:
    """Fill the folder `top`; `depth` is where the class stands in a path: 0 for class folders, 1 below train, val and test."""
    folders = _class_folders(listing, depth)
    rows = [(row, corrections.of(listing.ids[row], listing.classes[int(listing.labels[row])])) for row in range(len(listing))]
    stay: dict[int, str] = {}
    move: dict[int, str] = {}
    for row, label in rows:
        if label is None:
            continue
        path = listing.origin.path(row)
        same = label == listing.classes[int(listing.labels[row])]
        (stay if same else move)[row] = path if same else _moved(path, depth, folders.get(label) or _new_folder(label))
    taken, tried = set(stay.values()), dict[tuple[str, str], int]()
    for row, path in move.items():
        free = _free(path, PurePosixPath(listing.origin.path(row)).parts[depth], taken, tried)
        taken.add(free)
        stay[row] = free
    return place(listing, stay, top, put)


def table_tree(listing: Listing, corrections: Corrections, top: Path, put: Put) -> Placed:
    """Fill the folder `top` with a folder for each class, in train, val and test folders where the table has such a split."""
    divided = bool((listing.splits != TRAIN).any())
    paths: dict[int, str] = {}
    taken, tried = set[str](), dict[tuple[str, str], int]()
    for row, (name, code) in enumerate(zip(listing.ids, listing.labels.tolist())):
        label = corrections.of(name, listing.classes[code])
        if label is None:
            continue
        old, start = PurePosixPath(listing.origin.path(row)), f"{SPLITS[listing.splits[row]]}/" if divided else ""
        paths[row] = _free(f"{start}{_new_folder(label)}/{old.name}", old.parent.name or "table", taken, tried)
        taken.add(paths[row])
    return place(listing, paths, top, put)


def no_folder_name(classes: Sequence[str]) -> str | None:
    """The first class that no folder can be called, or that would be passed over as hidden; None where all can."""
    return next((name for name in classes if not _fits(name)), None)


def _fits(name: str) -> bool:
    return name[:1] not in ("", ".") and not {"/", "\0"} & set(name) and len(os.fsencode(name)) <= LONGEST


def _new_folder(label: str) -> str:
    """The label, where a folder can be called so. A run folder from elsewhere may say "../.." and mean it."""
    if not _fits(label):
        raise ToolError(f"no folder can be called {quoted(label)}, a class of this run; name a .csv file, which can hold it")
    return label


def place(listing: Listing, paths: dict[int, str], top: Path, put: Put) -> Placed:
    """Put the picture of each row at its path below `top`, where it passes the examination of what is read for training."""
    assert isinstance(listing.origin, Files)
    left_out = []
    made: set[str] = set()
    for row, path in sorted(paths.items()):
        if path[:1] == "/" or (".." in path and ".." in path.split("/")):
            raise ToolError(f"{quoted(path)} leads out of the new folder, and nothing is written there; name a .csv file")
        target = os.path.join(top, path)  # noqa: PTH118 - perhaps a million of them
        folder = os.path.dirname(target)  # noqa: PTH120
        if folder not in made:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
            made.add(folder)
        why = _put(listing.origin, row, put, target)
        if why is not None:
            left_out.append(LeftOut(listing.ids[row], listing.origin.path(row), why))
    return Placed(len(paths) - len(left_out), tuple(left_out))


def _put(origin: Files, row: int, put: Put, target: str) -> str | None:
    """Why the picture was left out; None where it was not. What goes wrong with the target is an `OSError`."""
    try:
        opened = origin.open(row)
    except (PictureError, OSError) as error:
        return NO_FILE if isinstance(error, FileNotFoundError) else reason(error)
    try:
        with opened:
            put(opened, origin.full(row), target)
    except PictureError as error:
        return str(error)
    return None


def _class_folders(listing: Listing, depth: int) -> dict[str, str]:
    """{label: its folder's name on the disk}, which may hold bytes or spaces that the label does not."""
    folders: dict[str, str] = {}
    for row, label in enumerate(listing.labels.tolist()):
        if listing.classes[label] not in folders:
            folders[listing.classes[label]] = listing.origin.path(row).split("/")[depth]
    return folders


def _moved(path: str, depth: int, folder: str) -> str:
    parts = path.split("/")
    parts[depth] = folder
    return "/".join(parts)


def _free(path: str, origin: str, taken: set[str], tried: dict[tuple[str, str], int]) -> str:
    """The path, or the first of its variants that no other picture has. `tried` says where to go on: paths stay taken."""
    if path not in taken:
        return path
    folder, _, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    number = tried.get((path, origin), 1)
    while True:
        variants = [f"{stem}-from-{origin}-{number}{dot}{suffix}", f"{number}{dot}{suffix}"]
        for variant in variants if number > 1 else [f"{stem}-from-{origin}{dot}{suffix}"]:
            if len(os.fsencode(variant)) <= LONGEST and f"{folder}/{variant}" not in taken:
                tried[path, origin] = number
                return f"{folder}/{variant}"
        number += 1
