"""Opens the bytes of a picture by its reference.

A reference is plain JSON, so that it can be handed to another process: "file", the root, the path from it, and whether it may
lie outside; or "row", the Arrow or Parquet file, the row, the column, and whether paths that are stored there may be followed.
"""

import io
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from labelsieve import doors
from labelsieve.data.pictures.decode import PictureError
from labelsieve.data.pictures.inside import open_inside
from labelsieve.data.pictures.options import FLAGS

if TYPE_CHECKING:
    from labelsieve.data.pictures.parquet_rows import ParquetRows

Reference = list[Any]


def fetch(reference: Reference) -> BinaryIO:
    """The picture's bytes as a stream; the caller closes it."""
    kind, *rest = reference
    if kind == "file":
        return open_inside(*rest)
    file, row, column, outside = rest
    cell = _packed(file, column).cell(row) if file.lower().endswith(".parquet") else _column(file, column)[row].as_py()
    if isinstance(cell, bytes):
        return io.BytesIO(cell)
    if not isinstance(cell, dict) or (cell.get("bytes") is None and not cell.get("path")):
        raise PictureError("the row holds no picture")
    if cell.get("bytes") is not None:
        return io.BytesIO(cell["bytes"])
    if not outside:
        raise PictureError(f"only its path is stored, which is not followed without {FLAGS['outside']}")
    return doors.open_plain(Path(cell["path"]), follow=True)


@lru_cache(maxsize=64)
def _column(file: str, column: str) -> Any:
    """The column of the Arrow file, mapped rather than read."""
    from labelsieve.data.pictures.arrow import arrow_table  # pyarrow is an extra

    return arrow_table(Path(file), (column,)).column(column)


@lru_cache(maxsize=8)
def _packed(file: str, column: str) -> "ParquetRows":
    """The same of a Parquet file, of which a batch is held at a time."""
    from labelsieve.data.pictures.parquet_rows import ParquetRows  # as above

    return ParquetRows(Path(file), column)
