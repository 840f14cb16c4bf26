"""The file that `--json` names: checked before anything is measured, which takes minutes; and written."""

import json
from pathlib import Path
from typing import Any


def check_json(path: Path | None) -> None:
    """A `UsageError` where figures could not be written afterwards."""
    import os

    from labelsieve.errors import UsageError

    if path is None:
        return
    folder = path.expanduser().parent
    if path.is_dir():
        raise UsageError(f"--json {path}: that is a folder; name a file")
    if path.exists() or path.is_symlink():
        raise UsageError(f"--json {path}: that file exists, and nothing is overwritten; move it away, or name another file")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        what = "cannot be written to" if folder.is_dir() else "does not exist"
        raise UsageError(f"--json {path}: the folder {folder} {what}; make it so, or choose another file")


def write_json(path: Path | None, facts: dict[str, Any]) -> None:
    """The figures, where a file is named for them."""
    from labelsieve.runs import atomic

    if path is not None:
        atomic.write_text(path, json.dumps(facts, indent=1) + "\n")
