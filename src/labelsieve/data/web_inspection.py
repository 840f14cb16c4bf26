"""Says which files, lists and pictures of a web set are in a folder. Decodes nothing."""

import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.data.pictures.cache import cache_size, default_cache_dir
from labelsieve.data.pictures.listing import SPLITS, TEST, Listing
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.websets import PLACES, SIDE, WEBSETS, WebSet, list_second_test, second_test_at
from labelsieve.errors import ToolError
from labelsieve.texts import byte_count

NAMED = 5  # missing pictures that are named of each split


@dataclass(frozen=True)
class SplitFound:
    """One list of pictures: how many it names, how many of them are files, and the first that are not."""

    name: str
    listed: int
    there: int
    missing: tuple[str, ...] = ()
    smallest: tuple[str, int] = ("", 0)
    largest: tuple[str, int] = ("", 0)

    def lines(self) -> list[str]:
        gone = self.listed - self.there
        said = [f"{self.name}: {self.listed:,} pictures listed, {self.there:,} there"]
        if self.smallest[0]:
            (few, low), (many, high) = self.smallest, self.largest
            said.append(f'  smallest class "{few}" with {low:,}, largest "{many}" with {high:,}')
        if gone:
            said.append(f"  warning: {gone:,} are missing: {', '.join(self.missing)}{' ...' if gone > len(self.missing) else ''}")
        return said


@dataclass(frozen=True)
class WebInspection:
    """`missing` are official files and folders that are not there at all; then no list can be read."""

    title: str
    place: Path
    missing: tuple[str, ...] = ()
    splits: tuple[SplitFound, ...] = ()
    cache_bytes: int = 0
    free_bytes: int = 0
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def is_whole(self) -> bool:
        return not self.missing and all(split.listed == split.there for split in self.splits)

    def lines(self) -> list[str]:
        said = [f"{self.place}: {self.title}"]
        said += [f"warning: {name} is missing" for name in self.missing]
        for split in self.splits:
            said += split.lines()
        if self.cache_bytes:
            said.append(
                f"decoded once, they take {byte_count(self.cache_bytes)} on the disk ({byte_count(self.free_bytes)} are free in "
                f"the cache folder), mapped and not held in memory; train has --cache-dir and --size for others"
            )
            if self.cache_bytes > self.free_bytes:
                said.append("warning: that is more than is free there")
        said += [f"note: {note}" for note in self.notes]
        return [*said, "everything that the lists name is there" if self.is_whole else "not whole: unpack what is missing"]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"place": str(self.place), "is_whole": self.is_whole}


def web_inspection(name: str, path: Path, options: PictureOptions) -> WebInspection:
    """What `labelsieve inspect clothing1m:PATH` says."""
    web_set = WEBSETS[name]
    missing = tuple(web_set.missing(path))
    if missing:
        return WebInspection(web_set.title, path, missing, notes=_remedy(web_set))
    listing = web_set.listing(path, options)
    splits = [_split(listing, number, SPLITS[number]) for number in np.unique(listing.splits).tolist()]
    notes: tuple[str, ...] = ()
    if name == "webvision":
        further, notes = _second_test(path, options)
        splits += further
    there = sum(split.there for split in splits)
    cache = (options.cache_dir or default_cache_dir()).expanduser()
    room = next(folder for folder in (cache, *cache.parents) if folder.exists())
    size = cache_size(there, options.size or SIDE, 3)
    return WebInspection(web_set.title, path, (), tuple(splits), size, shutil.disk_usage(room).free, notes)


def _split(listing: Listing, number: int, name: str) -> SplitFound:
    some = listing.take(np.flatnonzero(listing.splits == number).astype(np.int64))
    _, problems = some.origin.examined()
    counts = np.bincount(some.labels, minlength=len(some.classes))
    used = np.flatnonzero(counts)
    low, high = used[np.argmin(counts[used])], used[np.argmax(counts[used])]
    return SplitFound(
        name,
        len(some),
        len(some) - len(problems),
        tuple(some.ids[row] for row in list(problems)[:NAMED]),
        (some.classes[low], int(counts[low])),
        (some.classes[high], int(counts[high])),
    )


def _second_test(path: Path, options: PictureOptions) -> tuple[list[SplitFound], tuple[str, ...]]:
    place = second_test_at(path, options.second_test)
    if place is None:
        looked = ", ".join(PLACES)
        return [], (f"ILSVRC12's validation pictures are not there (looked for {looked}); name them with --second-test PATH",)
    try:
        listing = list_second_test(place, path, options)
    except ToolError as error:
        return [], (str(error),)
    return [_split(listing, TEST, f"ilsvrc12 ({place})")], ()


def _remedy(web_set: WebSet) -> tuple[str, ...]:
    return (f"{web_set.title} needs {', '.join(web_set.needed)} in that folder, as its archives unpack them",)
