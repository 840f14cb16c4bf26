"""Which of a listing's files are there, and which were there when the run started.

A small file beside the cache keeps the paths and stamps of a run's pictures. When you resume, a picture that was deleted since is
recognised by its old stamp and taken from the cache, so that the run sees the same rows.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from labelsieve.data.npz import read_npz
from labelsieve.data.pictures.cache import make_folder
from labelsieve.data.pictures.fetch import LEAVES
from labelsieve.data.pictures.listing import LeftOut, Listing, readable_name
from labelsieve.data.pictures.options import named
from labelsieve.data.pictures.origins import NO_FILE, Files, Origin
from labelsieve.data.pictures.paths import about_odd_paths, leaves_root
from labelsieve.doors import reading
from labelsieve.errors import ToolError

Known = Mapping[str, tuple[int, int]]  # a file's whole path -> its size and time, in the order of the rows


def present(listing: Listing, strict: bool = False, known: Known | None = None) -> Listing:
    """The rows whose files are there, or are gone and `known`; the others are told in `left_out`, or refused."""
    origin, problems = listing.origin.examined()
    if known and isinstance(origin, Files):
        origin, problems, gone = recalled(origin, problems, known)
        listing = replace(listing, gone=gone)
    leaving = [row for row, why in problems.items() if why == LEAVES]
    if leaving and listing.refuse_leaving:
        raise leaves_root(listing.place, listing.ids[leaving[0]], len(leaving))
    found = replace(listing, origin=origin).without(problems)
    if strict and found.left_out:
        raise unreadable(listing.place, found.left_out)
    if not len(found):
        first, root = found.left_out[0], getattr(listing.origin, "root", None)
        outside = f", or allow paths outside of it: {named('outside')}" if leaving else ""
        odd = about_odd_paths([listing.origin.path(row) for row in range(len(listing))], root)
        raise ToolError(
            f"{listing.place}: none of its {len(found.left_out)} pictures can be reached; the first is "
            f'"{first.path}", looked for below {root or listing.place}: {first.reason}. {odd}'
            f"Give the folder that the paths start from as {named('root')}{outside}"
        )
    return found


def unreadable(place: Path, left_out: Sequence[LeftOut]) -> ToolError:
    first = left_out[0]
    return ToolError(
        f'{place}: {len(left_out)} pictures cannot be read; the first is "{first.path}": {first.reason}. '
        f"Fix or remove them, or turn strict off to leave them out"
    )


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
            kept = read_npz(place, of_run=True)
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


def lost(listing: Listing, rows: Sequence[int], cache: Path) -> ToolError:
    """For pictures that are gone and that the cache cannot give."""
    names = ", ".join(f'"{readable_name(listing.origin.path(row))}"' for row in rows[:3])
    more = f" and {len(rows) - 3:,} more" if len(rows) > 3 else ""
    return ToolError(
        f"{listing.place}: {len(rows):,} of the pictures the run started with {'is' if len(rows) == 1 else 'are'} gone, and "
        f"not decoded in {cache}: {names}{more}. Put them back, or start a new run without them, with --out elsewhere"
    )


def about_gone(listing: Listing, cache: Path) -> tuple[str, ...]:
    """A sentence on the files that are gone and were taken from the cache; nothing where there is none."""
    rows = listing.gone_rows()
    if not rows:
        return ()
    first = readable_name(listing.origin.path(rows[0]))
    what = f"{len(rows):,} picture file{' is' if len(rows) == 1 else 's are'} gone since the run started"
    return (f'{what}, the first is "{first}" of {listing.place}: their decoded copies in {cache} are used',)


def about_changed(listing: Listing, known: Known) -> tuple[str, ...]:
    """A sentence on the files that are not as they were when they were `known` to the run; nothing where there is none.

    By size and time alone, so it is no error: copied files have another time and the same content.
    """
    origin = listing.origin
    if not known or not isinstance(origin, Files) or origin.stamps is None:
        return ()
    now = [(size, time) for size, time in origin.stamps.tolist()]
    rows = [row for row, stamp in enumerate(now) if known.get(origin.full(row), stamp) != stamp]
    if not rows:
        return ()
    what = f"{len(rows):,} picture file{' was' if len(rows) == 1 else 's were'} rewritten since the run started"
    first = readable_name(origin.path(rows[0]))
    return (
        f'{what}, the first is "{first}" of {listing.place}: the run continues with what is in them now, and may end differently',
    )
