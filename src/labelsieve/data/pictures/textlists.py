"""Reads the text lists of the web sets: a key, or a key and a class number, per line."""

from pathlib import Path

from labelsieve import doors
from labelsieve.errors import ToolError


def lines_of(path: Path) -> list[str]:
    """The lines that hold something, without their ends."""
    if not path.exists():
        raise ToolError(f"{path}: missing; unpack the official files there, or give the folder that has them")
    with doors.reading(path, "unpack it again"):
        found = [line.rstrip("\r\n") for line in doors.lines(path, follow=True) if line.strip()]
    if not found:
        raise ToolError(f"{path}: it is empty; unpack it again")
    return found


def keys_in(path: Path) -> list[str]:
    """One key a line."""
    return [inside(line.strip(), path, number) for number, line in enumerate(lines_of(path), 1)]


def labelled_keys(path: Path, classes: int) -> dict[str, int]:
    """`key number` on each line, in order; numbers must be in 0..classes-1."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines_of(path), 1):
        key, label = (*line.rsplit(maxsplit=1), "")[:2]
        if not label.isdecimal():
            raise ToolError(f'{path}, line {number}: "{line[:80]}" is not a path and a class number; unpack the file again')
        if int(label) >= classes:
            raise ToolError(f"{path}, line {number}: class {label} is outside 0..{classes - 1}; is it the right file?")
        found[inside(key.strip(), path, number)] = int(label)
    return found


def inside(key: str, path: Path, number: int) -> str:
    """The key, or a `ToolError` where it leads out of the data's folder."""
    if key[:1] == "/" or ".." in key.split("/"):
        raise ToolError(f'{path}, line {number}: "{doors.short(key)}" leads out of the data\'s folder; no official list does')
    return key
