"""A file that an option names for figures: asked about before anything is measured, which takes minutes or hours."""

import os
from pathlib import Path

from labelsieve.errors import UsageError
from labelsieve.runs.atomic import clear_up


def check_new(option: str, path: Path | None) -> None:
    """A `UsageError` where something is there already, or where nothing could be written afterwards; without a path, nothing."""
    if path is None:
        return
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"{option} {path}: that is a folder; name a file")
    if os.path.lexists(path):
        clear_up(path)
        raise UsageError(f"{option} {path}: that file exists, and nothing is overwritten; move it away, or name another file")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        what = "cannot be written to" if folder.is_dir() else "does not exist"
        raise UsageError(f"{option} {path}: the folder {folder} {what}; make it so, or choose another file")
