"""What `torch.save` wrote of plain data: a file goes in, a dict of NumPy arrays, lists and numbers comes out. Nothing is run.

Both forms are read, the zip archive and the older row of pickles, through `safe_pickle`; torch itself is not asked.
"""

import io
import zipfile
from pathlib import Path
from typing import Any

from labelsieve.data.safe_pickle import read_plain
from labelsieve.errors import ToolError

LARGEST = 2**30  # bytes of pickle: a label file has a few million
LEGACY = 3  # pickles before the content in the older form: a magic number, a version, facts of the machine


def read_saved(path: Path) -> dict[str, Any]:
    """The dict that was saved, its keys as text; a `ToolError` for anything else."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ToolError(f"{path}: cannot be read ({error.strerror or error}); check the path") from None
    if zipfile.is_zipfile(io.BytesIO(content)):
        return read_plain(_pickle_inside(content, path), str(path))
    return read_plain(content, str(path), skip=LEGACY)


def _pickle_inside(content: bytes, path: Path) -> bytes:
    """The one data.pkl of the archive. Tensors would lie in other members: label files have none."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            found = [entry for entry in archive.infolist() if entry.filename.rpartition("/")[2] == "data.pkl"]
            if len(found) != 1:
                raise ToolError(f"{path}: a zip archive without the data.pkl of torch.save; is it the right file?")
            if found[0].file_size > LARGEST:
                raise ToolError(f"{path}: it unpacks to {found[0].file_size:,} bytes, which no label file does; fetch it again")
            return archive.read(found[0])
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError, EOFError) as error:
        raise ToolError(f"{path}: a damaged archive ({error}); fetch it again") from None
