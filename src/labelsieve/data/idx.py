"""Reads the idx format of MNIST's family, plain or .gz, into a uint8 array."""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from labelsieve import doors
from labelsieve.data.unpacked import refuse_beyond_memory
from labelsieve.errors import ToolError

UNSIGNED_BYTE = 8


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array in `path`: unsigned bytes in `dimensions` axes, and exactly as many as its header says."""
    try:
        with doors.open_plain(path, follow=True) as packed, gzip.open(packed) if path.suffix == ".gz" else packed as stream:
            return _read(cast(BinaryIO, stream), dimensions, path)
    except (EOFError, zlib.error, OSError) as error:
        raise ToolError(f"{path}: cannot be read whole ({type(error).__name__}: {error}); fetch it again") from error


def _read(stream: BinaryIO, dimensions: int, path: Path) -> NDArray[np.uint8]:
    size = 4 + 4 * dimensions
    header = stream.read(size)
    if len(header) < size:
        raise ToolError(f"{path}: {len(header)} bytes, too short for an idx file; fetch it again")
    magic = bytes((0, 0, UNSIGNED_BYTE, dimensions))
    if header[:4] != magic:
        raise ToolError(
            f"{path}: it starts with {header[:4].hex()}, not with {magic.hex()} as an idx file of bytes in "
            f"{dimensions} axes does; is it the right file?"
        )
    shape = struct.unpack(f">{dimensions}I", header[4:])
    expected = math.prod(shape)
    refuse_beyond_memory(expected, str(path))
    content = stream.read(expected + 1)  # one more tells that there is more, however much it would unpack to
    if len(content) != expected:
        there = f"{len(content)}" if len(content) < expected else "more"
        raise ToolError(
            f"{path}: the header says {' x '.join(map(str, shape))} = {expected} bytes, the file has {there}; it is cut short or "
            f"damaged, fetch it again"
        )
    return np.frombuffer(content, np.uint8).reshape(shape).copy()
