"""Reads what `torch.save` wrote of plain data: a dict of NumPy arrays, lists and numbers. Nothing is run.

Both forms are read, the zip archive and the older row of pickles, through `safe_pickle`; torch itself is not asked.
"""

import io
import zipfile
from pathlib import Path
from typing import Any

from labelsieve import doors
from labelsieve.data.safe_pickle import read_plain

LARGEST = 2**28  # bytes of pickle: a label file has a few million
LEGACY = 3  # pickles before the content in the older form: a magic number, a version, facts of the machine


def read_saved(path: Path) -> dict[str, Any]:
    """The dict that was saved, its keys as text; a `ToolError` for anything else."""
    with doors.reading(path, "fetch it again"):
        content = doors.read_bytes(path, LARGEST, follow=True)
        if zipfile.is_zipfile(io.BytesIO(content)):
            return read_plain(_pickle_inside(content), str(path))
        return read_plain(content, str(path), skip=LEGACY)


def _pickle_inside(content: bytes) -> bytes:
    """The one data.pkl of the archive. Tensors would lie in other members: label files have none."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        found = [entry for entry in archive.infolist() if entry.filename.rpartition("/")[2] == "data.pkl"]
        if len(found) != 1:
            raise doors.Damage("a zip archive without the data.pkl of torch.save; is it the right file?")
        if found[0].file_size > LARGEST:
            raise doors.Damage(f"it unpacks to {found[0].file_size:,} bytes, which no label file does")
        return archive.read(found[0])
