"""NumPy files from outside: a path goes in, plain arrays come out. Nothing pickled is ever loaded."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.unpacked import refuse_beyond_memory
from labelsieve.errors import ToolError

Array = NDArray[Any]


def read_npz(path: Path) -> dict[str, Array]:
    """Every array of the .npz at `path`, by key."""
    opened = _load(path)
    if not isinstance(opened, np.lib.npyio.NpzFile):
        raise ToolError(f"{path}: it is not an .npz file; write one with numpy.savez")
    with opened:
        # A member gives no more than it announces, so this is all that there can be.
        refuse_beyond_memory(_announced(path), str(path))
        return {key: _member(opened, key, path) for key in opened.files}


def _announced(path: Path) -> int:
    with zipfile.ZipFile(path) as members:
        return sum(member.file_size for member in members.infolist())


def npz_keys(path: Path) -> tuple[str, ...]:
    """The keys of the .npz at `path`; no array is read."""
    try:
        with zipfile.ZipFile(path) as members:
            return tuple(name.removesuffix(".npy") for name in members.namelist())
    except (OSError, zipfile.BadZipFile) as error:
        raise ToolError(f"{path}: not a whole .npz file ({error}); write it again with numpy.savez") from None


def axes_of(path: Path, key: str) -> int | None:
    """How many axes an array of an .npz has, by its header; None where that cannot be read."""
    try:
        with zipfile.ZipFile(path) as members, members.open(f"{key}.npy") as member:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            return len(read(member)[0])
    except Exception:  # as below; who reads the whole array says what is wrong with it
        return None


def read_npy(path: Path) -> Array:
    """The one array of the .npy at `path`."""
    opened = _load(path)
    if not isinstance(opened, np.ndarray):
        raise ToolError(f"{path}: it is not an .npy file of one array; write one with numpy.save")
    return opened


def _load(path: Path) -> object:
    try:
        return np.load(path, allow_pickle=False)
    except FileNotFoundError as error:
        raise ToolError(f"{path}: no such file; check the path") from error
    except Exception as error:  # NumPy, zipfile and tokenize each fail on damaged files in their own ways
        raise ToolError(f"{path}: not a whole NumPy file ({error}); write it again") from error


def _member(opened: Any, key: str, path: Path) -> Array:
    try:
        found: Array = opened[key]
    except Exception as error:  # as above, once more for each member
        if "Object arrays" in str(error):
            raise ToolError(
                f'{path}: "{key}" is an array of Python objects, as NumPy makes of rows that differ in size and pandas of text; '
                f"pictures must have one size, and text is stored with .astype(str)"
            ) from error
        raise ToolError(f'{path}: "{key}" cannot be read whole ({error}); write the file again') from error
    if not isinstance(found, np.ndarray):
        raise ToolError(f'{path}: "{key}" is not an array; write the file with numpy.savez')
    return found
