"""Reads Arrow and Parquet files with pyarrow, as tables or cell by cell, and says how to install it."""

import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.doors import open_plain, reading
from labelsieve.errors import ToolError

AGAIN = "it is not a whole Parquet file: write it again"
BATCH = 32  # rows that are held at a time


def pyarrow_for(path: Path) -> Any:
    """The pyarrow module, or a `ToolError` that says how to get it."""
    try:
        found = import_module("pyarrow")
        for part in ("ipc", "parquet", "compute"):
            import_module(f"pyarrow.{part}")
    except ImportError:
        raise ToolError(
            f"{path}: reading it needs pyarrow, which is not installed; run: pip install 'labelsieve[tables]'"
        ) from None
    return found


def arrow_table(path: Path, names: Sequence[str] | None = None) -> Any:
    """An Arrow stream file (as `datasets` saves them) as a table that stays on the disk; with `names`, these columns of it.

    They are checked: Arrow believes what a mapped file says of where its values lie, and would read beyond it.
    """
    pa = pyarrow_for(path)
    with reading(path, "it is not a whole Arrow file: save the data set again"):
        open_plain(path, follow=True).close()
        found = pa.ipc.open_stream(pa.memory_map(str(path))).read_all()
        if names is not None:
            found = found.select([name for name in found.column_names if name in names])
        found.validate(full=True)
        return found


def stored_columns(path: Path, names: Sequence[str], *others: str) -> Any:
    """The named columns of an Arrow stream file or a Parquet file as a table. The `others` only have to be there."""
    packed = path.suffix.lower() == ".parquet"
    file = parquet_file(path) if packed else arrow_table(path, (*names, *others))
    there = file.schema_arrow.names if packed else file.column_names
    for name in (*names, *others):
        if name not in there:
            raise ToolError(f'{path}: it has no column "{name}"; save the data set again')
    if not packed:
        return file.select(list(names))
    return parquet_columns(path, names)


def parquet_file(path: Path) -> Any:
    """The opened Parquet file: its schema is read, its rows are not."""
    pa = pyarrow_for(path)
    with reading(path, AGAIN):
        open_plain(path, follow=True).close()
        # Mapped and not read ahead: of pictures, a file holds more than the memory may.
        return pa.parquet.ParquetFile(path, memory_map=True, pre_buffer=False)


def parquet_columns(path: Path, names: Sequence[str]) -> Any:
    """The named columns of a Parquet file as a table."""
    file = parquet_file(path)
    with reading(path, AGAIN):
        return file.read(columns=list(names))


def parquet_batches(path: Path, rows: int) -> Iterator[Any]:
    """All columns of a Parquet file, so many rows at a time."""
    file = parquet_file(path)
    with reading(path, AGAIN):
        batches = file.iter_batches(rows, use_threads=False)
    while True:
        with reading(path, AGAIN):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def is_vector(kind: Any, path: Path) -> bool:
    """Whether an Arrow type is a list of numbers."""
    types = pyarrow_for(path).types
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return False
    return bool(types.is_floating(kind.value_type) or types.is_integer(kind.value_type))


class ParquetRows:
    """Rows are quick to find in ascending order. Threads may share it."""

    def __init__(self, path: Path, column: str) -> None:
        self.column = column
        self._file = parquet_file(path)
        groups = self._file.metadata.num_row_groups
        counts = [self._file.metadata.row_group(group).num_rows for group in range(groups)]
        self._starts = np.cumsum([0, *counts])
        self._lock = threading.Lock()
        self._forget()

    def cell(self, row: int) -> Any:
        """What the row holds, as a Python value."""
        with self._lock:
            try:
                return self._cell(row)
            except BaseException:
                self._forget()
                raise

    def _forget(self) -> None:
        self._group, self._end = -1, 0
        self._batches: Iterator[Any] = iter(())
        self._values: Any = ()

    def _cell(self, row: int) -> Any:
        group = int(np.searchsorted(self._starts, row, side="right")) - 1
        if group != self._group or row < self._end - len(self._values):
            self._forget()
            self._group, self._end = group, int(self._starts[group])
            self._batches = self._file.iter_batches(BATCH, [group], [self.column], use_threads=False)
        while row >= self._end:
            self._values = next(self._batches).column(self.column)
            self._end += len(self._values)
        return self._values[row - self._end].as_py()
