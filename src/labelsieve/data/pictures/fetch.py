"""A reference to a picture's bytes goes in, a readable stream comes out.

A reference is plain JSON, so that it can be handed to another process: a path, or the file, row, column and
permission to leave the file of a picture stored inside an Arrow file.
"""

import io
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from labelsieve.data.pictures.decode import PictureError
from labelsieve.data.pictures.options import FLAGS

Reference = str | list[Any]


def fetch(reference: Reference) -> BinaryIO:
    """The picture's bytes as a stream; the caller closes it."""
    if isinstance(reference, str):
        return Path(reference).open("rb")
    file, row, column, outside = reference
    cell = _column(file, column)[row].as_py()
    if isinstance(cell, bytes):
        return io.BytesIO(cell)
    if not isinstance(cell, dict) or (cell.get("bytes") is None and not cell.get("path")):
        raise PictureError("the row holds no picture")
    if cell.get("bytes") is not None:
        return io.BytesIO(cell["bytes"])
    if not outside:
        raise PictureError(f"only its path is stored, which is not followed without {FLAGS['outside']}")
    return Path(cell["path"]).open("rb")


@lru_cache(maxsize=64)
def _column(file: str, column: str) -> Any:
    """The column of the Arrow file, mapped rather than read."""
    from labelsieve.data.pictures.arrow import arrow_table  # pyarrow is an extra

    return arrow_table(Path(file)).column(column)
