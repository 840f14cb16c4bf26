"""The pictures of an export: links to the user's files where samples are files, PNG files of the pixels where they are not."""

import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image

from labelsieve.data.pictures.decode import open_picture
from labelsieve.data.pictures.origins import Files
from labelsieve.data.pictures.websets import WEBSETS
from labelsieve.errors import ToolError
from labelsieve.runs.assemble import rows_for
from labelsieve.runs.config import Config
from labelsieve.runs.moved import to_look_at


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
            self._link(original, folder / name)
            return name
        picture(self.pixels(row)).save(folder / name)
        return name

    def _link(self, original: Path, place: Path) -> None:
        """A hard link, which stays inside the folder; a symbolic one on another disk; a copy where there are no links."""
        try:
            place.hardlink_to(original.resolve())
        except OSError:
            try:
                place.symlink_to(original)
                self.has_links = True
            except OSError:
                shutil.copyfile(original, place)

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
        path = self.root / name
        if Files(self.root, [name], self.config.pictures.outside).examined()[1] or not _is_picture(path):
            return None
        return path.absolute()

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
        data = rows_for(to_look_at(self.config)).data
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


def _is_picture(path: Path) -> bool:
    """By its content: a table may name pictures that have no ending."""
    try:
        with path.open("rb") as stream:
            return bool(open_picture(stream).format)
    except Exception:  # Pillow's parsers fail on what is no picture in many ways
        return False


def picture(pixels: np.ndarray) -> Image.Image:
    """Bytes (C, H, W) as a picture: grey for one channel, colour for three; of others, the first."""
    return Image.fromarray(pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels[0])
