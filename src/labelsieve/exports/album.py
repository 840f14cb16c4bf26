"""The pictures of an export: links to the user's files where samples are files, PNG files of the pixels where they are not."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image

from labelsieve.config.moved import to_show
from labelsieve.config.schema import Config
from labelsieve.corrected.tree import copy, hardlink, symlink
from labelsieve.data.pictures.decode import PictureError, open_picture, reason
from labelsieve.data.pictures.fetch import open_inside
from labelsieve.data.pictures.websets import WEBSETS
from labelsieve.doors import Refusal
from labelsieve.errors import ToolError
from labelsieve.runs.rows import rows_for


class Album:
    """Puts the picture of a sample into a folder, under its row's number; the data are opened only when pixels are needed.

    `ids` and `paths` (N,) are the run's: the data may have lost rows since.
    """

    def __init__(self, config: Config, ids: Sequence[str], paths: Sequence[str]) -> None:
        self.config, self.ids, self.paths = config, ids, paths
        self.root = root_of(config)
        self.has_links = False
        self._known: dict[int, Path | None] = {}

    def put(self, row: int, folder: Path) -> str:
        """The name of the file that was made in `folder`."""
        original, name = self.original(row), self.name(row)
        if original is not None:
            self._link(row, original, folder / name)
            return name
        picture(self.pixels(row)).save(folder / name)
        return name

    def _link(self, row: int, original: Path, place: Path) -> None:
        """A hard link, which stays inside the folder; a symbolic one on another disk; a copy where there are no links."""
        try:
            with self._open(self.paths[row]) as opened:
                self._put(opened, str(original), str(place))
        except (PictureError, Refusal, FileNotFoundError) as error:
            raise ToolError(f"{original}: {reason(error)}; put the picture back, or train anew") from None

    def _put(self, opened: BinaryIO, original: str, place: str) -> None:
        try:
            hardlink(opened, original, place)
        except (ToolError, OSError):
            try:
                symlink(opened, original, place)
                self.has_links = True
            except OSError:
                copy(opened, original, place)

    def _open(self, name: str) -> BinaryIO:
        assert self.root is not None
        return open_inside(self.root, name, self.config.pictures.outside)

    def name(self, row: int) -> str:
        """What the file in the folder is called."""
        original = self.original(row)
        return f"{row:07d}.png" if original is None else f"{row:07d}{original.suffix.lower()}"

    def original(self, row: int) -> Path | None:
        """The user's own file, absolute, or None where there is none."""
        if row not in self._known:
            self._known[row] = self._original(self.paths[row])
        return self._known[row]

    def _original(self, name: str) -> Path | None:
        """issues.csv may come from elsewhere and name any file of the user's: only pictures where the data lie are handed on."""
        if not name or self.root is None:
            return None
        try:
            with self._open(name) as opened:
                is_picture = bool(open_picture(opened).format)  # by its content: a table may name pictures without an ending
        except Exception:  # Pillow's parsers fail on what is no picture in many ways
            return None
        return (self.root / name).absolute() if is_picture else None

    def pixels(self, row: int) -> np.ndarray:
        """Bytes (C, H, W) of a sample, found by its id."""
        images, place = self._opened
        if self.ids[row] not in place:
            raise ToolError(
                f'{self.config.data.source}: "{self.ids[row]}" is no longer there, and every picture of the run is needed; '
                f"put it back, or train anew"
            )
        found: np.ndarray = images[place[self.ids[row]]]
        return found

    @cached_property
    def _opened(self) -> tuple[np.ndarray, dict[str, int]]:
        """The data as they are now, (M, C, H, W), and where each id is."""
        data = rows_for(to_show(self.config)).data
        if data.images.ndim != 4:
            raise ToolError(f"{self.config.data.source}: these are vectors, which have no pictures to show; use --to cleanlab")
        return data.images.numpy(), {name: row for row, name in enumerate(data.ids)}


def root_of(config: Config) -> Path | None:
    """The folder that paths are relative to, for data that are files."""
    name, _, place = config.data.source.partition(":")
    if name not in ("pictures", *WEBSETS) or not place:
        return None
    path = Path(config.pictures.root or place).expanduser()
    return path if path.is_dir() else path.parent


def picture(pixels: np.ndarray) -> Image.Image:
    """Bytes (C, H, W) as a picture: grey for one channel, colour for three; of others, the first."""
    return Image.fromarray(pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels[0])
