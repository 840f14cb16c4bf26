"""Finds the files that paths in a table lead to, however people and programs write them, and says what may be wrong with them.

A path stays as it is if it leads to a file, or if no other way of writing it does.
"""

import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from labelsieve.data.pictures.decode import SUFFIXES
from labelsieve.data.pictures.options import named
from labelsieve.errors import ToolError

WEB = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
FILE = "file://"
ELSEWHERE = "elsewhere"  # the folder of a copied table for pictures that the table names by whole addresses
MOST = 20  # folders that are looked into
FIRST = (".png", ".jpg", ".jpeg")  # endings that are tried first


def is_web_address(path: str) -> bool:
    """Whether it names something that would have to be downloaded, which is only done for data that lie elsewhere themselves."""
    return WEB.match(path) is not None and not path.lower().startswith(FILE)


def copy_of(address: str) -> str:
    """Where data/remote.py puts what lies at an address, from the table that names it."""
    scheme, _, rest = address.strip().partition("://")
    return f"{ELSEWHERE}/{scheme.lower()}/{rest}"


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
    endings = Endings(root)
    found = [_mended(value, root, endings, said) if _is_odd(value) else value for value in values]
    return found, tuple(said)


class Endings:
    """The picture that a path without its ending means: the only one in its folder of that name. Folders are listed once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.known: dict[str, dict[str, str | None]] = {}

    def added(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        if folder not in self.known:
            self.known[folder] = self._pictures(folder)
        found = self.known[folder].get(name)
        return None if found is None else os.path.join(folder, found)  # noqa: PTH118 - any text may come

    def _pictures(self, folder: str) -> dict[str, str | None]:
        """{name without ending: name}; None where several pictures have it, such as a photo and its mask."""
        found: dict[str, str | None] = {}
        with suppress(OSError, ValueError):
            for entry in os.listdir(os.path.join(self.root, folder)):  # noqa: PTH118, PTH208
                name, ending = os.path.splitext(entry)  # noqa: PTH122
                if ending.lower() in SUFFIXES:
                    found[name] = None if name in found else entry
        return found


def _is_odd(value: Any) -> bool:
    """Quick, for a million paths: whether it could be written otherwise at all."""
    if not isinstance(value, str) or not value:
        return False
    odd = "\\" in value or "%" in value or value[0].isspace() or value[-1].isspace() or not value.isascii()
    return odd or "://" in value or not _ends_as_picture(value)


def _ends_as_picture(path: str) -> bool:
    return path[path.rfind(".") :].lower() in SUFFIXES


def _mended(value: str, root: Path, endings: Endings, said: dict[str, None]) -> str:
    if is_web_address(value.strip()):
        copy = copy_of(value)
        return copy if _is_there(root, copy) else value
    if _is_there(root, value):
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
    whole = None if _ends_as_picture(value) else endings.added(value)
    if whole is None:
        return value
    said |= {"paths without an ending are read with that of the file": None}
    return whole


def _is_there(root: Path, path: str) -> bool:
    try:
        return os.path.lexists(os.path.join(root, path))  # noqa: PTH118 - any text may come
    except ValueError:  # a NUL
        return False


def found_at(root: Path, name: str, folders: Sequence[str] = ()) -> tuple[str, str] | None:
    """The folder below `root` ("" for itself) and the ending with which `name` is a file; None where it is none."""
    known = (*FIRST, *sorted(SUFFIXES - set(FIRST)))
    for folder in ("", *folders[:MOST]):
        for ending in ("", *known, *(ending.upper() for ending in known)):
            if name and os.path.isfile(os.path.join(root, folder, name + ending)):  # noqa: PTH113, PTH118 - any text may come
                return folder, ending
    return None


def about_odd_paths(paths: Sequence[str], root: Path | None) -> str:
    """What may be wrong with paths from `root` of which none leads to a file."""
    if any(map(is_web_address, paths)):
        return "The paths are web addresses: download the pictures and write their paths instead. "
    said = ""
    if any("\\" in path for path in paths):
        said += "The paths hold backslashes: write them with / instead. "
    if any(path != path.strip() for path in paths):
        said += "The paths begin or end with spaces: remove these. "
    return said + (_near(paths[0], root) if root is not None and root.is_dir() else "")


def _near(path: str, root: Path) -> str:
    """Where the picture is, if only an ending or a folder is missing, or the case differs."""
    below = sorted(entry.name for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    place = found_at(root, path, below)
    if place is None:
        other = _other_case(root, path)
        return "" if other is None else f'There is "{other}": write upper and lower case as the files\' names do. '
    folder, ending = place
    return f"There is {root / folder / (path + ending)}. "


def _other_case(root: Path, path: str) -> str | None:
    """The same path with other upper and lower case, where that is a file."""
    here = root
    for part in Path(path).parts:
        names = [entry.name for entry in here.iterdir()] if here.is_dir() else []
        near = [name for name in names if name.casefold() == part.casefold()]
        if not near:
            return None
        here = here / (part if part in near else near[0])
    return here.relative_to(root).as_posix() if here.is_file() else None


def leaves_root(place: Path, name: str, count: int) -> ToolError:
    more = f" ({count} such rows)" if count > 1 else ""
    return ToolError(
        f'{place}: "{name}" leads out of the root folder{more}; put the pictures below it, give another {named("root")}, '
        f"or allow paths outside of it: {named('outside')}"
    )
