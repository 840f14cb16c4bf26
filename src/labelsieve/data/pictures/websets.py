"""The two large web sets by name: how each is read, what it needs, and how its pictures are normalised."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labelsieve.data.pictures import clothing1m, webvision
from labelsieve.data.pictures.listing import SPLITS, LeftOut, Listing
from labelsieve.data.pictures.options import PictureOptions, named
from labelsieve.errors import ToolError

SIDE = 256  # pixels that are kept of a picture where no size is named; views are cut from them
MISSING_SHARE = 0.01  # of the listed pictures: a few dead ones are left out, more are a folder half unpacked


@dataclass(frozen=True)
class WebSet:
    """`needed` are the files and folders without which it cannot be read."""

    name: str
    title: str
    needed: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    looks_like: Callable[[Path], bool]
    read: Callable[[Path, PictureOptions], Listing]

    def missing(self, path: Path) -> list[str]:
        return [name for name in self.needed if not (path / name).exists()]

    def listing(self, path: Path, options: PictureOptions) -> Listing:
        """What its lists name, there or not."""
        missing = self.missing(path)
        if missing:
            raise ToolError(
                f"{path}: {', '.join(missing)} missing; {self.title} is only partly there: unpack the official files into it, "
                f"or give the folder that has {', '.join(self.needed)}"
            )
        return self.read(path, options)


WEBSETS = {
    "clothing1m": WebSet(
        "clothing1m",
        "Clothing1M",
        clothing1m.NEEDED,
        clothing1m.MEAN,
        clothing1m.STD,
        clothing1m.looks_like,
        clothing1m.read,
    ),
    "webvision": WebSet(
        "webvision", "WebVision 1.0", webvision.NEEDED, webvision.MEAN, webvision.STD, webvision.looks_like, webvision.read
    ),
}


def web_set_at(path: Path) -> WebSet | None:
    """The set whose lists lie at `path`."""
    return next((each for each in WEBSETS.values() if each.looks_like(path)), None)


def nearly_whole(listed: Listing, there: Listing, incomplete: bool) -> Listing:
    """What is there, or a `ToolError` where too many of the listed pictures are not."""
    gone = there.left_out
    if len(gone) <= MISSING_SHARE * len(listed) or incomplete:
        return there
    shown = "; ".join(missing_by_split(listed, gone))
    raise ToolError(
        f"{listed.place}: {len(gone):,} of {len(listed):,} listed pictures are missing ({shown}); it is only partly unpacked: "
        f"unpack the rest, or go on without them with {named('incomplete')}"
    )


def missing_by_split(listed: Listing, gone: tuple[LeftOut, ...]) -> list[str]:
    """`train: 3 of 10, the first is "images/0/a.jpg"`, for each split that misses some."""
    split = dict(zip(listed.ids, listed.splits.tolist()))
    said = []
    for number, name in enumerate(SPLITS):
        there = [row for row in gone if split.get(row.id) == number]
        if there:
            total = int(np.sum(listed.splits == number))
            said.append(f'{name}: {len(there):,} of {total:,}, the first is "{there[0].path}"')
    return said
