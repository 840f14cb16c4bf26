"""The idx format of MNIST's family: a file, plain or .gz, goes in, a uint8 array comes out."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelsieve.errors import ToolError

UNSIGNED_BYTE = 8


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array in `path`: unsigned bytes in `dimensions` axes, and exactly as many as its header says."""
    content = _content(path)
    header = 4 + 4 * dimensions
    if len(content) < header:
        raise ToolError(f"{path}: {len(content)} bytes, too short for an idx file; fetch it again")
    magic = bytes((0, 0, UNSIGNED_BYTE, dimensions))
    if content[:4] != magic:
        raise ToolError(
            f"{path}: it starts with {content[:4].hex()}, not with {magic.hex()} as an idx file of bytes in "
            f"{dimensions} axes does; is it the right file?"
        )
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    expected = math.prod(shape)
    if len(content) - header != expected:
        raise ToolError(
            f"{path}: the header says {' x '.join(map(str, shape))} = {expected} bytes, the file has "
            f"{len(content) - header}; it is cut short or damaged, fetch it again"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape).copy()


def _content(path: Path) -> bytes:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as stream:
                return stream.read()
        return path.read_bytes()
    except (EOFError, zlib.error, OSError) as error:
        raise ToolError(f"{path}: cannot be read whole ({type(error).__name__}: {error}); fetch it again") from error
