"""Opens a picture of the data: a plain file below the root, or a row of an Arrow or Parquet file."""

import io
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from labelsieve import doors
from labelsieve.data.pictures.decode import PictureError
from labelsieve.data.pictures.options import FLAGS

if TYPE_CHECKING:
    from labelsieve.data.pictures.arrow import ParquetRows

LEAVES = "it leads out of the root folder"
Reference = list[Any]


def open_inside(root: str | Path, path: str, outside: bool = False) -> BinaryIO:
    """The file at `root`/`path`; a `PictureError` or an `OSError` says why not. `outside` allows it to lie anywhere."""
    full = os.path.join(root, path)  # noqa: PTH118 - a million of them
    if "\0" in path:
        raise PictureError("its name has a NUL in it")
    if outside:
        return doors.open_plain(Path(full), follow=True)
    if path[:1] != "/" and ".." not in path:
        try:
            return doors.open_plain(Path(full), top=Path(root))
        except doors.Refusal:  # perhaps a link that stays inside
            pass
    real, top = os.path.realpath(full), os.path.realpath(root)
    if not is_below(real, top):
        raise PictureError(LEAVES)
    return doors.open_plain(Path(real), top=Path(top))


def is_below(real: str, top: str) -> bool:
    """Both without links in them."""
    return real == top or real.startswith(top.rstrip(os.sep) + os.sep)


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
    from labelsieve.data.pictures.arrow import ParquetRows  # as above

    return ParquetRows(Path(file), column)
