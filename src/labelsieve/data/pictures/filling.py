"""Decodes a listing's pictures into the mapped cache, and says which rows could not be read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.pictures.cache import HEADER, PixelCache, locked
from labelsieve.data.pictures.decode import PASSING
from labelsieve.data.pictures.gone_or_changed import lost
from labelsieve.data.pictures.listing import Listing
from labelsieve.data.pictures.pool import run_tasks, worker_count
from labelsieve.data.pictures.survey import Plan, Progress
from labelsieve.data.pictures.tasks import Task

# How pictures become what is trained on: `decoded` gives their pixels, a backbone (`Embedder.of_listing`) their features.
Read = Callable[[Listing, Plan, Path, int | None, Progress | None], tuple[NDArray[Any], dict[int, str]]]


def decoded(
    listing: Listing, plan: Plan, folder: Path, workers: int | None = None, progress: Progress | None = None
) -> tuple[NDArray[np.uint8], dict[int, str]]:
    """Pixels (N - unreadable, C, S, S) and {row: reason}. What an earlier run decoded is not decoded again."""
    cache = PixelCache(folder, (len(listing), plan.channels, plan.size, plan.size))
    with locked(folder):
        cache.discard_damaged()
        _check_gone(cache, listing)
        _fill(cache, listing, plan, workers, progress)
        reasons = (item for found in cache.done().values() for item in found.items())
        unreadable = dict(sorted(reasons))
        return cache.finish(unreadable), unreadable


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
