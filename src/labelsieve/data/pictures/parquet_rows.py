"""Cells of one column of a Parquet file, by their row: what lies near the last one asked for comes without reading it again.

Files of pictures are larger than the memory, and so may be their row groups: a group is gone through in small batches.
"""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.data.pictures.arrow import parquet_file

BATCH = 32  # rows that are held at a time


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
