"""Finds the files that paths lead to, as people and their programs write them, and says what was read otherwise.

A path stays as it is where it leads to a file, or where no other way of writing it does.
"""

import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

WEB = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
FILE = "file://"


def is_web_address(path: str) -> bool:
    """Whether it names something that would have to be downloaded, which is never done."""
    return WEB.match(path) is not None and not path.lower().startswith(FILE)


def _local(path: str) -> str:
    return unquote(path[len(FILE) :]) if path.lower().startswith(FILE) else path


# What is read otherwise, in words, and how; tried in this order, each on what the one before made of it.
WAYS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("spaces around paths are left out", str.strip),
    ("paths that begin with file:// are read as paths", _local),
    ("backslashes in paths are read as /", lambda path: path.replace("\\", "/")),
    ("signs such as %20 in paths are read as what they stand for", unquote),
    ("letters with accents in paths are read as the files' names write them", lambda path: unicodedata.normalize("NFC", path)),
    ("letters with accents in paths are read as the files' names write them", lambda path: unicodedata.normalize("NFD", path)),
)


def as_files_are_named(values: Sequence[Any], root: Path) -> tuple[list[Any], tuple[str, ...]]:
    """The paths from `root`, each written so that it leads to a file where one way does; and in words what was changed."""
    said: dict[str, None] = {}
    found = [_mended(value, root, said) if _is_odd(value) else value for value in values]
    return found, tuple(said)


def _is_odd(value: Any) -> bool:
    """Quick, for a million paths: whether it could be written otherwise at all."""
    if not isinstance(value, str) or not value:
        return False
    odd = "\\" in value or "%" in value or value[0].isspace() or value[-1].isspace() or not value.isascii()
    return odd or value[:7].lower() == FILE


def _mended(value: str, root: Path, said: dict[str, None]) -> str:
    if is_web_address(value) or _is_there(root, value):
        return value
    now, changes = value, []
    for words, way in WAYS:
        new = way(now)
        if new != now:
            now = new
            changes.append(words)
            if _is_there(root, now):
                said |= dict.fromkeys(changes)
                return now
    return value


def _is_there(root: Path, path: str) -> bool:
    try:
        return os.path.lexists(os.path.join(root, path))  # noqa: PTH118 - any text may come
    except ValueError:  # a NUL
        return False
