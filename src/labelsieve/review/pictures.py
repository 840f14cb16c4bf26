"""The pictures of a run, by id: small and large, encoded, one at a time.

Files are read where they lie, and only those that the data set lists and that do not lead out of it. Data that are arrays are
read by another process.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from labelsieve.config.moved import check_there
from labelsieve.config.schema import Config
from labelsieve.data.pictures.decode import TURNS, WHITEST, PictureError, eight_bit, open_picture, orientation, reason
from labelsieve.data.pictures.fetch import fetch
from labelsieve.data.pictures.listing import TRAIN, Listing
from labelsieve.data.pictures.options import PictureOptions, picture_options
from labelsieve.data.pictures.origins import NO_FILE
from labelsieve.data.pictures.presence import Known, only_deleted
from labelsieve.data.pictures.recognise import list_pictures, recognise
from labelsieve.errors import ToolError
from labelsieve.issues.rules import TEST
from labelsieve.review.picture_process import CHANGED, Gone, PictureProcess, encode
from labelsieve.review.table import ReviewTable

SIZES = {"small": 224, "large": 1024}
CACHE = 96 * 2**20  # bytes of encoded pictures that are kept
Encoded = Callable[[str, int], tuple[bytes, str]]


class NoPicture(Exception):
    """Why there is no picture, as half a sentence."""


class NotYet(NoPicture):
    """The data are still being opened. A page must not wait for it: it would have no connection left for decisions."""


class Pictures:
    """`remark` says why there are none, once that is known."""

    def __init__(self, config: Config, table: ReviewTable, known: Callable[[], Known] = dict) -> None:
        """`known` gives the files that the run began with, if they are asked for: reading a million of them takes seconds."""
        self.config, self.table, self.remark, self.known = config, table, "", known
        self._tested = frozenset(name for name in table.copies.values() if name.startswith(TEST))
        self.exist = config.data.source.partition(":")[0] != "embeddings"
        self._begun = False
        self._read: Encoded | None = None
        self._process: PictureProcess | None = None
        self._guard, self._opening = threading.Lock(), threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[bytes, str]] = OrderedDict()
        self._bytes = 0

    def encoded(self, name: str, size: str) -> tuple[bytes, str]:
        """The picture of id `name` as (bytes, media type); `NoPicture` where there is none."""
        known = name in self.table.row_of or name in self._tested
        if not self.exist or not known or size not in SIZES:
            raise NoPicture("there is no such picture")
        key = (name, size)
        with self._guard:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        if self.remark or self._read is None:
            raise NoPicture(self.remark) if self.remark else NotYet("the data are being opened")
        try:
            found = self._read(name, SIZES[size])
        except NoPicture:
            raise
        except Gone as error:
            self.remark = str(error)
            raise NoPicture(self.remark) from None
        except Exception as error:  # Pillow's parsers fail on damaged files in many ways
            raise NoPicture(reason(error)) from None
        self._keep(key, found)
        return found

    @property
    def ready(self) -> bool:
        return self._read is not None and not self.remark

    def begin(self) -> None:
        """Open the data beside whatever else is done, once somebody looks; it may take long."""
        if self.exist and not self._begun:
            self._begun = True
            threading.Thread(target=self.open, daemon=True, name="opening pictures").start()

    def open(self) -> None:
        with self._opening:
            if self._read is None and not self.remark:
                try:
                    self._read = self._reader()
                except (ToolError, PictureError, OSError, Gone) as error:
                    self.remark = str(error)

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    def _reader(self) -> Encoded:
        """What reads a picture by its id; a `ToolError` where the data are gone or not those of the run."""
        check_there(self.config.data.source)
        name, _, place = self.config.data.source.partition(":")
        if name == "pictures" and place:
            options = picture_options(self.config.pictures)
            if recognise(Path(place), options).has_pictures:
                as_given = self.config.data.noise == "none" and self.config.data.decisions is None
                read = from_files(Path(place), options, as_given, self.table, self.known)
                return self._with_tested(read, Path(place), options) if self._tested else read
        table = self.table
        given = {name: table.classes[table.given[row]] for name, row in table.row_of.items()}
        self._process = PictureProcess(self.config, given, table.classes)
        self._process.await_opening()
        return self._process.encoded

    def _with_tested(self, read: Encoded, place: Path, options: PictureOptions) -> Encoded:
        """The same, and pictures of the test set that training pictures copy, where they are files."""
        val = self.config.pictures.val
        try:
            options = options if val is None else replace(options, measuring=True, classes=None)
            listing = list_pictures(recognise(place if val is None else Path(val), options), options)
        except ToolError:  # the training pictures are there all the same
            return read
        names = enumerate(listing.ids)
        held = {TEST + name: row for row, name in names if val is not None or listing.splits[row] != TRAIN}
        rows = {name: row for name, row in held.items() if name in self._tested}
        return lambda name, at_most: encoded_file(listing, rows[name], at_most, options) if name in rows else read(name, at_most)

    def _keep(self, key: tuple[str, str], found: tuple[bytes, str]) -> None:
        with self._guard:
            if key not in self._kept:
                self._kept[key] = found
                self._bytes += len(found[0])
            while self._bytes > CACHE:
                self._bytes -= len(self._kept.popitem(last=False)[1][0])


def from_files(place: Path, options: PictureOptions, labels_fit: bool, table: ReviewTable, known: Callable[[], Known]) -> Encoded:
    """Of picture files; `labels_fit` says that their labels must be those of the run, `known` gives the files it had."""
    listing = list_pictures(recognise(place, options), options)
    rows = {name: row for row, name in enumerate(listing.ids) if name in table.row_of}
    lost = len(table) - len(rows)
    edited = labels_fit and any(
        listing.classes[listing.labels[row]] != table.classes[table.given[table.row_of[name]]] for name, row in rows.items()
    )
    if not rows or ((lost or edited) and not only_deleted(known())):  # others may have their names now
        why = f"{lost} samples of the run are not in {place}" if lost else f"some are labelled otherwise in {place}"
        raise ToolError(f"{CHANGED} ({why})")

    def read(name: str, at_most: int) -> tuple[bytes, str]:
        if name not in rows:
            raise NoPicture(NO_FILE)
        return encoded_file(listing, rows[name], at_most, options)

    return read


def encoded_file(listing: Listing, row: int, at_most: int, options: PictureOptions) -> tuple[bytes, str]:
    problems = listing.origin.take(np.array([row])).examined()[1]  # missing, or a link that leads out of the root
    if problems:
        raise NoPicture(problems[0])
    with fetch(listing.origin.reference(row)) as stream:
        picture = open_picture(stream)
        picture.draft("RGB", (2 * at_most, 2 * at_most))
        turned = orientation(picture)
        picture.load()
        plain = eight_bit(picture, "L" if picture.mode in ("1", "L") else "RGB", options.white or WHITEST)
    return encode(plain.transpose(TURNS[turned]) if turned in TURNS else plain, at_most)
