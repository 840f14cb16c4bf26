"""The console that all verbs write to. Text is printed as it is, brackets and colons included.

The exception is what a terminal would obey: escape sequences in strangers' file or class names are shown instead.
"""

import os
import re
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from labelsieve.errors import UsageError
from labelsieve.runs.atomic import clear_up

# Control characters but line breaks and tabs, those that turn the direction of what follows, and halves of a character, which
# no terminal can be sent.
OBEYED = re.compile("[\\ud800-\\udfff\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")
UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}


def visible(text: str) -> str:
    """The text with what a terminal would obey written out: `\\x1b[2J`."""
    return OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class PlainConsole(Console):
    """Everything printed passes here, cells of tables too."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, soft_wrap=True, markup=False, emoji=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(visible(text), **settings)


console = PlainConsole()


def parse_duration(text: str) -> float:
    """Seconds in "9m", "1h30m", "45s", "1.5h"; a bare number is seconds."""
    cleaned = text.strip().lower().replace(" ", "")
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms]?)", cleaned)
    if not parts or "".join(a + b for a, b in parts) != cleaned:
        raise UsageError(f'"{text}" is no duration; write it like 90s, 9m, 1h30m')
    seconds = sum(float(number) * UNITS[unit or "s"] for number, unit in parts)
    if seconds <= 0:
        raise UsageError(f'"{text}": a time limit must be longer than nothing')
    return seconds


def say_duration(seconds: float) -> str:
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {rest:02d} s"


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
        raise UsageError(
            f"{option} {path}: the folder {folder} {what}; create it or change its permissions, or choose another file"
        )
