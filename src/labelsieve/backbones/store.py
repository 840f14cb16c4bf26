"""Features on the disk, by picture: a folder of small files, each written whole, that any number of runs add to.

A file is never changed. Whatever happens to a process, the files before stay; one that a crash of the machine damaged is passed
over, and its pictures are looked at again.
"""

import os
import uuid
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.pictures.cache import cache_errors, make_folder
from labelsieve.data.pictures.looks import LOOK, unknown
from labelsieve.disk import flush

Keys = Sequence[bytes]  # 16 bytes a picture
KEY = 16
SUFFIX = ".npz"


@dataclass
class FeatureStore:
    """The features (D,) of pictures that one backbone has seen; `known` says which file and row has them, once read."""

    folder: Path
    known: dict[bytes, tuple[Path, int]] = field(default_factory=dict)

    def read(self) -> None:
        """Find out what is there."""
        self.known = {}
        for file in sorted(self.folder.glob(f"*{SUFFIX}")) if self.folder.is_dir() else ():
            keys = _array(file, "keys")
            if keys is not None and keys.dtype == np.uint8 and keys.ndim == 2 and keys.shape[1] == KEY:
                self.known |= {key.tobytes(): (file, row) for row, key in enumerate(keys)}

    def sweep(self) -> None:
        """Clear away what killed processes were writing. Only for who holds the folder's lock."""
        for draft in self.folder.glob("*.draft"):
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def add(self, keys: Keys, features: NDArray[np.float32], looks: NDArray[np.uint8]) -> None:
        """Put the features (M, D) of pictures on the disk, and what they look like (M, LOOK)."""
        if not keys:
            return
        place = self.folder / f"{uuid.uuid4().hex}{SUFFIX}"
        draft = place.with_suffix(f".{os.getpid()}.draft")
        with cache_errors(self.folder):
            make_folder(self.folder)
            try:
                with draft.open("xb") as stream:
                    names = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY)
                    np.savez(stream, keys=names, looks=looks, features=features)
                flush(draft)
                draft.replace(place)
            finally:
                with suppress(OSError):
                    draft.unlink(missing_ok=True)
        self.known |= {key: (place, row) for row, key in enumerate(keys)}

    def gather(self, keys: Keys, width: int) -> tuple[NDArray[np.float32], NDArray[np.uint8], list[int]]:
        """The features (N, width) and looks of pictures in their order; and the rows that are not there, or in a damaged file.

        Those have zeros. Files of older versions have no looks: these are unknown.
        """
        found, seen = np.zeros((len(keys), width), np.float32), unknown(len(keys))
        missing, wanted = [], dict[Path, list[tuple[int, int]]]()
        for row, key in enumerate(keys):
            if key in self.known:
                file, place = self.known[key]
                wanted.setdefault(file, []).append((row, place))
            else:
                missing.append(row)
        for file, pairs in wanted.items():
            rows, places = (list(some) for some in zip(*pairs))
            values = _array(file, "features")
            if values is None or values.shape[1:] != (width,) or len(values) <= max(places):
                missing += rows
                self._forget(file)
            else:
                found[rows] = values[places]
                looks = _array(file, "looks")
                if looks is not None and looks.dtype == np.uint8 and looks.shape == (len(values), LOOK):
                    seen[rows] = looks[places]
        return found, seen, sorted(missing)

    def _forget(self, file: Path) -> None:
        self.known = {key: place for key, place in self.known.items() if place[0] != file}
        with suppress(OSError):  # in a cache that others own it stays
            file.unlink(missing_ok=True)


def _array(file: Path, name: str) -> NDArray | None:
    """An array of the file; None where the file is damaged. Its own checksum tells."""
    try:
        if file.is_symlink():
            return None
        with np.load(file, allow_pickle=False) as kept:
            found: NDArray = kept[name]
            return found
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
