"""NumPy files from outside, as plain arrays. Nothing pickled is ever loaded."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from labelsieve import run_files
from labelsieve.data.unpacked import refuse_beyond_memory
from labelsieve.doors import open_plain, reading, short
from labelsieve.errors import ToolError

Array = NDArray[Any]
AGAIN = "it is not a whole NumPy file: write it again"


def read_npz(path: Path, of_run: bool = False) -> dict[str, Array]:
    """Every array of the .npz at `path`, by key. Where it is a file of a run, it may be no link."""
    with _opened(path, of_run) as stream:
        opened = np.load(stream, allow_pickle=False)
        if not isinstance(opened, np.lib.npyio.NpzFile):
            raise ToolError(f"{path}: it is not an .npz file; write one with numpy.savez")
        with opened:
            # A member gives no more than it announces, so this is all that there can be.
            members: Any = opened.zip
            refuse_beyond_memory(sum(member.file_size for member in members.infolist()), str(path))
            return {key: _member(opened, key, path) for key in opened.files}


def npz_keys(path: Path) -> tuple[str, ...]:
    """The keys of the .npz at `path`; no array is read."""
    with _opened(path) as stream, zipfile.ZipFile(stream) as members:
        return tuple(name.removesuffix(".npy") for name in members.namelist())


def axes_of(path: Path, key: str) -> int | None:
    """How many axes an array of an .npz has, by its header; None where that cannot be read."""
    try:
        with _opened(path) as stream, zipfile.ZipFile(stream) as members, members.open(f"{key}.npy") as member:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            return len(read(member)[0])
    except ToolError:  # who reads the whole array says what is wrong with it
        return None


def read_npy(path: Path) -> Array:
    """The one array of the .npy at `path`."""
    with _opened(path) as stream:
        opened = np.load(stream, allow_pickle=False)
        if not isinstance(opened, np.ndarray):
            raise ToolError(f"{path}: it is not an .npy file of one array; write one with numpy.save")
        return opened


@contextmanager
def _opened(path: Path, of_run: bool = False) -> Iterator[BinaryIO]:
    """The file, open, and what goes wrong with it in one sentence."""
    with reading(path, AGAIN), run_files.open_file(path) if of_run else open_plain(path, follow=True) as stream:
        yield stream


def _member(opened: Any, key: str, path: Path) -> Array:
    with reading(path, f'"{short(key)}" cannot be read whole: write the file again'):
        try:
            found: Array = opened[key]
        except ValueError as error:
            if "Object arrays" not in str(error):
                raise
            raise ToolError(
                f'{path}: "{key}" is an array of Python objects, as NumPy makes of rows that differ in size and pandas of text; '
                f"pictures must have one size, and text is stored with .astype(str)"
            ) from error
    if not isinstance(found, np.ndarray):
        raise ToolError(f'{path}: "{key}" is not an array; write the file with numpy.savez')
    return found
