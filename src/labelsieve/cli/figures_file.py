"""The file that `--json` names, written; `terminal.new_file` asks about it before anything is measured."""

import json
from pathlib import Path
from typing import Any


def write_json(path: Path | None, facts: dict[str, Any]) -> None:
    """The figures, where a file is named for them."""
    from labelsieve.runs import atomic

    if path is not None:
        atomic.write_text(path, json.dumps(facts, indent=1) + "\n")
