"""The pictures of a run, by id: a run's configuration goes in; small and large encoded pictures come out, one at a time.

Files are read where they lie, and only those that the data set lists and that do not lead out of it. Data that are arrays are
opened once, by the loader that training uses; only that needs torch, and only when the first picture is asked for.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from labelsieve.data.pictures.decode import TURNS, PictureError, eight_bit, open_picture, orientation, reason
from labelsieve.data.pictures.fetch import fetch
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.recognise import list_pictures, recognise
from labelsieve.errors import ToolError
from labelsieve.report.pictures import TINY
from labelsieve.review.table import IssueTable
from labelsieve.runs.config import Config

SIZES = {"small": 224, "large": 1024}
CACHE = 96 * 2**20  # bytes of encoded pictures that are kept
CHANGED = "the data have changed since the run, so no pictures are shown"
Read = Callable[[str], Image.Image]


class NoPicture(Exception):
    """Why there is no picture, as half a sentence."""


class Pictures:
    """Opens the data when the first picture is asked for; `remark` says why there are none, once that is known."""

    def __init__(self, config: Config, table: IssueTable) -> None:
        self.config, self.table, self.remark = config, table, ""
        self.exist = config.data.source.partition(":")[0] != "embeddings"
        self._read: Read | None = None
        self._guard = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[bytes, str]] = OrderedDict()
        self._bytes = 0

    def encoded(self, name: str, size: str) -> tuple[bytes, str]:
        """The picture of id `name` as (bytes, media type); `NoPicture` where there is none."""
        if not self.exist or name not in self.table.row_of or size not in SIZES:
            raise NoPicture("there is no such picture")
        key = (name, size)
        with self._guard:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            read = self._opened()
        try:
            found = encode(read(name), SIZES[size])
        except NoPicture:
            raise
        except Exception as error:  # Pillow's parsers fail on damaged files in many ways
            raise NoPicture(reason(error)) from None
        self._keep(key, found)
        return found

    def _opened(self) -> Read:
        if self._read is None and not self.remark:
            try:
                self._read = reader(self.config, self.table)
            except (ToolError, PictureError, OSError) as error:
                self.remark = str(error)
        if self._read is None:
            raise NoPicture(self.remark)
        return self._read

    def _keep(self, key: tuple[str, str], found: tuple[bytes, str]) -> None:
        with self._guard:
            if key not in self._kept:
                self._kept[key] = found
                self._bytes += len(found[0])
            while self._bytes > CACHE:
                self._bytes -= len(self._kept.popitem(last=False)[1][0])


def encode(picture: Image.Image, at_most: int) -> tuple[bytes, str]:
    """PNG for tiny pictures, whose pixels the page enlarges; JPEG for the rest, scaled down to `at_most` a side."""
    buffer = BytesIO()
    if max(picture.size) <= TINY:
        picture.save(buffer, format="png")
        return buffer.getvalue(), "image/png"
    if max(picture.size) > at_most:
        picture.thumbnail((at_most, at_most), Image.Resampling.LANCZOS, reducing_gap=2.0)
    picture.save(buffer, format="jpeg", quality=88)
    return buffer.getvalue(), "image/jpeg"


def reader(config: Config, table: IssueTable) -> Read:
    """What reads a picture by its id; a `ToolError` where the data are gone or not those of the run."""
    name, _, place = config.data.source.partition(":")
    if name == "pictures" and place:
        from labelsieve.runs.picture_choices import picture_options

        options = picture_options(config.pictures)
        if recognise(Path(place), options).has_pictures:
            return _from_files(Path(place), options, config.data.noise == "none", table)
    return _from_arrays(config, table)


def _from_files(place: Path, options: PictureOptions, labels_fit: bool, table: IssueTable) -> Read:
    listing = list_pictures(recognise(place, options), options)
    rows = {name: row for row, name in enumerate(listing.ids) if name in table.row_of}
    if len(rows) < len(table):
        raise ToolError(f"{CHANGED}: {len(table) - len(rows)} samples of the run are not in {place}")
    if labels_fit and any(
        listing.classes[listing.labels[row]] != table.classes[table.given[table.row_of[name]]] for name, row in rows.items()
    ):
        raise ToolError(f"{CHANGED}: some are labelled otherwise in {place}")

    def read(name: str) -> Image.Image:
        row = rows[name]
        problems = listing.origin.take(np.array([row])).examined()[1]  # missing, or a link that leads out of the root
        if problems:
            raise NoPicture(problems[0])
        with fetch(listing.origin.reference(row)) as stream:
            picture = open_picture(stream)
            picture.draft("RGB", (2 * SIZES["large"], 2 * SIZES["large"]))
            turned = orientation(picture)
            picture.load()
            plain = eight_bit(picture, "L" if picture.mode in ("1", "L") else "RGB")
        return plain.transpose(TURNS[turned]) if turned in TURNS else plain

    return read


def _from_arrays(config: Config, table: IssueTable) -> Read:
    from labelsieve.runs.assemble import rows_for

    data = rows_for(replace(config, device="cpu")).data
    rows = {name: row for row, name in enumerate(data.ids)}
    codes, images = data.labels.numpy(), data.images.numpy()
    same = rows.keys() == table.row_of.keys() and tuple(data.classes) == table.classes
    if not same or any(codes[rows[name]] != table.given[row] for name, row in table.row_of.items()):
        raise ToolError(f"{CHANGED}: {config.data.source}")
    if images.ndim != 4:
        raise ToolError("the samples are vectors, which have no pictures")

    def read(name: str) -> Image.Image:
        image = images[rows[name]]
        return Image.fromarray(np.ascontiguousarray(image[:3].transpose(1, 2, 0) if len(image) >= 3 else image[0]))

    return read
