"""Decodes a listing's pictures into the cache, at a size and depth that their headers suggest."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve import doors
from labelsieve.data.pictures.cache import HEADER, PixelCache, cache_errors, cache_size, locked, make_folder
from labelsieve.data.pictures.decode import GREY_MODES, PASSING, WHITEST, about_white, common_white, counted
from labelsieve.data.pictures.listing import Listing
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.pool import Task, run_tasks, worker_count
from labelsieve.data.pictures.presence import lost

SIZES = (8, 16, 20, 24, 28, 32, 48, 64, 96, 128, 160, 224)
SURVEY_STRETCH = 256
MOST = 2**20  # bytes of what is kept of a survey
SURVEY_RULES = 3  # to be raised whenever the same headers would lead to another size
RULES = 1  # to be raised whenever the same file would be decoded to other pixels
Progress = Callable[[str, int, int], None]  # what is being done, how many are done, how many there are


@dataclass(frozen=True)
class Plan:
    """How pictures are decoded: uint8 (channels, size, size) each, `bytes` for all in the cache.

    `white` becomes 255 in 16-bit grey; `depths` counts the pictures of that kind by the bits they use, where that was looked for.
    """

    size: int
    channels: int
    fit: str
    count: int
    white: int = WHITEST
    depths: tuple[int, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        return about_white(self.depths, self.white)

    @property
    def bytes(self) -> int:
        return cache_size(self.count, self.size, self.channels)

    def key(self, digest: str) -> str:
        """The cache folder's name: pictures that are the same, decoded the same way, have the same."""
        words: tuple[Any, ...] = (digest, self.size, self.channels, self.fit, self.count, RULES)
        words += () if self.white == WHITEST else (self.white,)
        return hashlib.sha256(repr(words).encode()).hexdigest()[:24]


@dataclass(frozen=True, eq=False)
class Taken:
    """What is trained on of the pictures that can be read, in order, and why the others cannot: {row: reason}.

    `looks` (N, LOOK) where `values` are features; those of pixels can be had from the pixels at any time.
    """

    values: NDArray[Any]
    reasons: dict[int, str]
    looks: NDArray[np.uint8] | None = None


# How pictures become what is trained on: `decoded` gives their pixels, a backbone (`Embedder.of_listing`) their features.
Read = Callable[[Listing, Plan, Path, int | None, Progress | None], Taken]


def surveyed(
    listing: Listing, options: PictureOptions, verify: bool = False, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """One record a row: format, mode, width, height; with `verify` hash and look; `reason` where it cannot be read."""
    records: list[dict[str, Any]] = [{}] * len(listing)
    done = 0

    def make(k: int) -> Task:
        first = k * SURVEY_STRETCH
        rows = range(first, min(first + SURVEY_STRETCH, len(listing)))
        references = [listing.origin.reference(row) for row in rows]
        return {"do": "survey", "references": references, "first": first, "verify": verify}

    count = -(-len(listing) // SURVEY_STRETCH)
    for k, answers in run_tasks(count, make, worker_count(options.workers, len(listing))):
        for answer in answers:  # a million records share a handful of words
            answer |= {key: intern(answer[key]) for key in ("format", "mode") if key in answer}
        records[k * SURVEY_STRETCH : k * SURVEY_STRETCH + len(answers)] = answers
        done += len(answers)
        if progress is not None:
            progress("looking", done, len(listing))
    return records


def plan(records: list[dict[str, Any]], options: PictureOptions) -> Plan:
    """Size, channels and white by what can be read; the count is that of all rows.

    Size: the largest of `SIZES` not above the median of the shorter sides (at least 8). Channels: 1 when every
    picture is stored as grey, else 3.
    """
    known = [record for record in records if "mode" in record]
    side = float(np.median([min(r["width"], r["height"]) for r in known])) if known else SIZES[0]
    size = options.size or bounded(max([s for s in SIZES if s <= side], default=SIZES[0]), options)
    grey = bool(known) and all(record["mode"] in GREY_MODES for record in known)
    depths = counted(record["top"] for record in known if "top" in record)
    return Plan(size, 1 if grey else 3, options.fit, len(records), options.white or common_white(depths), depths)


def bounded(size: int, options: PictureOptions) -> int:
    return size if options.largest is None else min(size, options.largest)


def planned(listing: Listing, options: PictureOptions, digest: str, cache: Path, progress: Progress | None) -> Plan:
    """The same for a listing; what the headers said is kept in the cache, so that it is read only once."""
    kept = cache / f"survey-{SURVEY_RULES}-{digest[:24]}.json"
    try:
        side, channels, depths = doors.read_json(kept, MOST)
        size, white = options.size or bounded(int(side), options), options.white or common_white(depths)
        return Plan(size, int(channels), options.fit, len(listing), white, tuple(depths))
    except (OSError, ValueError, TypeError):
        pass
    gone = listing.gone_rows()
    if gone:  # what they were like cannot be found out any more
        raise lost(listing, gone, cache)
    whole = surveyed(listing, options, progress=progress)
    found = plan(whole, options)
    with cache_errors(cache):
        make_folder(cache)
        draft = kept.with_suffix(".draft")
        unsized = plan(whole, PictureOptions()).size
        draft.unlink(missing_ok=True)  # a link, in a cache from elsewhere, would lead anywhere
        draft.write_text(json.dumps([unsized, found.channels, found.depths]), "ascii")
        draft.replace(kept)
    return found


def decoded(listing: Listing, plan: Plan, folder: Path, workers: int | None = None, progress: Progress | None = None) -> Taken:
    """Pixels uint8 (N - unreadable, C, S, S). What an earlier run decoded is not decoded again."""
    cache = PixelCache(folder, (len(listing), plan.channels, plan.size, plan.size))
    with locked(folder):
        cache.discard_damaged()
        _check_gone(cache, listing)
        _fill(cache, listing, plan, workers, progress)
        reasons = (item for found in cache.done().values() for item in found.items())
        unreadable = dict(sorted(reasons))
        return Taken(cache.finish(unreadable), unreadable)


def _finished(cache: PixelCache) -> set[int]:
    return {k for k, found in cache.done().items() if not PASSING & set(found.values())}


def _check_gone(cache: PixelCache, listing: Listing) -> None:
    """Files that are gone must be decoded already: their stretch is not to be written again."""
    gone = listing.gone_rows()
    finished = _finished(cache) if gone else set()
    missing = [row for row in gone if row // cache.stretch not in finished]
    if missing:
        raise lost(listing, missing, cache.folder)


def _fill(cache: PixelCache, listing: Listing, plan: Plan, workers: int | None, progress: Progress | None) -> None:
    finished = _finished(cache)
    waiting = [stretch for stretch in range(cache.stretches) if stretch not in finished]
    if waiting:
        cache.prepare()
    rows_left = sum(len(cache.rows(stretch)) for stretch in waiting)

    def make(k: int) -> Task:
        rows = cache.rows(waiting[k])
        return {
            "do": "decode",
            "references": [listing.origin.reference(row) for row in rows],
            "first": rows.start,
            "size": plan.size,
            "channels": plan.channels,
            "fit": plan.fit,
            "white": plan.white,
            "file": str(cache.file),
            "bytes": cache.bytes,
            "offset": HEADER,
        }

    done = len(listing) - rows_left
    for k, answers in run_tasks(len(waiting), make, worker_count(workers, rows_left)):
        rows = cache.rows(waiting[k])
        cache.tell(waiting[k], {row: why for row, why in zip(rows, answers) if why is not None})
        done += len(rows)
        if progress is not None:
            progress("decoding", done, len(listing))
