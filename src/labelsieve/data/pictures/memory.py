"""Which files were there when pictures were decoded: a listing's files go into a small file beside the cache, and come back.

A run that is taken up finds there the stamps of files that are gone since, and by them their decoded copies.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from labelsieve.data.npz import read_npz
from labelsieve.data.pictures.cache import make_folder
from labelsieve.data.pictures.origins import NO_FILE, Files, Origin
from labelsieve.doors import reading
from labelsieve.errors import ToolError

Known = Mapping[str, tuple[int, int]]  # a file's whole path -> its size and time, in the order of the rows


def remember(origin: Origin, cache: Path) -> Path | None:
    """The file that holds all paths and stamps, written unless it is there; None where pictures are no files.

    It is a help for later: a cache that cannot be written, only read, goes without.
    """
    if not isinstance(origin, Files) or origin.stamps is None:
        return None
    place = cache / f"files-{origin.digest(by_content=False)[:24]}.npz"
    if place.exists():
        return place
    draft = place.with_suffix(f".{os.getpid()}.draft")  # several runs may begin at once
    paths = np.frombuffer(os.fsencode("\0".join([str(origin.root), *origin.paths])), np.uint8)
    try:
        make_folder(cache)
        with draft.open("wb") as stream:
            np.savez_compressed(stream, paths=paths, stamps=origin.stamps)
        draft.replace(place)
    except OSError:
        return None
    return place


def known_from(places: Iterable[Path]) -> dict[str, tuple[int, int]]:
    """What was remembered; nothing where it was deleted or damaged since."""
    found: dict[str, tuple[int, int]] = {}
    for place in places:
        with suppress(ToolError), reading(place, "delete it"):
            kept = read_npz(place)
            root, *paths = os.fsdecode(kept["paths"].tobytes()).split("\0")
            stamps = kept["stamps"].tolist()
            found |= {os.path.join(root, path): (size, time) for path, (size, time) in zip(paths, stamps, strict=True)}  # noqa: PTH118
    return found


def only_deleted(known: Known) -> bool:
    """Whether those of the known files that are there are as they were: none was changed, or has another's name now."""

    def as_it_was(path: str, stamp: tuple[int, int]) -> bool:
        try:
            seen = os.stat(path)  # noqa: PTH116 - as text, for speed
        except OSError:
            return True
        return (seen.st_size, seen.st_mtime_ns) == tuple(stamp)

    return bool(known) and all(as_it_was(path, stamp) for path, stamp in known.items())


def recalled(origin: Files, problems: Mapping[int, str], known: Known) -> tuple[Files, dict[int, str], frozenset[str]]:
    """The files with the stamps of those that are gone and known, the problems that are left, and the paths of the former.

    With a new file among them these are other data, as when one was moved: then nothing is recalled.
    """
    gone = [row for row, why in problems.items() if why == NO_FILE and origin.full(row) in known]
    new = (row not in problems and origin.full(row) not in known for row in range(len(origin)))
    if not gone or origin.stamps is None or any(new):
        return origin, dict(problems), frozenset()
    stamps = np.array(origin.stamps)
    for row in gone:
        stamps[row] = known[origin.full(row)]
    left = {row: why for row, why in problems.items() if row not in set(gone)}
    return replace(origin, stamps=stamps), left, frozenset(origin.paths[row] for row in gone)


def known_below(root: Path, known: Known, depth: int) -> dict[str, list[str]]:
    """{folder: paths}, both from `root` and with "/", of the known files below its folders, so many deep."""
    start, found = f"{root}/", dict[str, list[str]]()
    for name in known:
        parts = name.removeprefix(start).split("/") if name.startswith(start) else []
        if len(parts) > depth:
            found.setdefault("/".join(parts[:depth]), []).append("/".join(parts))
    return found


def with_gone(found: list[str], before: Iterable[str], root: Path) -> list[str]:
    """The paths `found` with those of `before` that are gone from the disk, each in the place where it was."""
    here, old = set(found), list(before)
    kept = [path for path in old if path in here or not os.path.lexists(root / path)]
    return [*kept, *sorted(here - set(old))] if old else found
