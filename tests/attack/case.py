"""One case of the attack: a world, what is changed in it, and the command that then reads it. It is kept as a JSON file.

Text has `_HERE_` where the folder's path belongs, and `_OUTSIDE_` where that of the folder beside it does.
"""

import base64
import json
import os
import socket
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HERE, OUTSIDE = "_HERE_", "_OUTSIDE_"
World = Mapping[str, bytes]  # the files of a folder by their path, as they are before anybody changes them
PACKED = 4000  # bytes: what is longer is kept packed


@dataclass(frozen=True)
class Change:
    """What lies at `path` instead: `kind` says what `what` is."""

    path: str
    kind: str  # text, packed, link, fifo, folder, gone, socket, hole (a file of so many zeros), edits
    what: Any = ""


@dataclass(frozen=True)
class Case:
    """`refused`: this content must not be accepted, so exit code 0 is a failure."""

    world: str
    words: tuple[str, ...]
    changes: tuple[Change, ...] = ()
    refused: bool = False
    note: str = ""
    failed: str = field(default="", compare=False)  # why it is kept

    def as_text(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def of_text(cls, text: str) -> "Case":
        facts = json.loads(text)
        changes = tuple(Change(**change) for change in facts.pop("changes"))
        return cls(**facts | {"words": tuple(facts["words"]), "changes": changes})


def replaced(path: str, content: bytes) -> Change:
    """The file has this content now."""
    try:
        text = content.decode()
        if len(content) <= PACKED and "\0" not in text:
            return Change(path, "text", text)
    except UnicodeDecodeError:
        pass
    return Change(path, "packed", base64.b64encode(zlib.compress(content, 9)).decode())


def lay_out(world: World, changes: tuple[Change, ...], here: Path, outside: Path) -> None:
    """The world at `here`, changed."""
    for name, content in world.items():
        _write(here / name, _placed(content, here, outside))
    for change in changes:
        _change(change, world, here, outside)


def _placed(content: bytes, here: Path, outside: Path) -> bytes:
    return content.replace(HERE.encode(), os.fsencode(here)).replace(OUTSIDE.encode(), os.fsencode(outside))


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _change(change: Change, world: World, here: Path, outside: Path) -> None:
    path = here / os.fsdecode(change.path)
    if change.kind == "edits":  # [[place, hexadecimal bytes], ...] in the untouched content
        content = bytearray(_placed(world[change.path], here, outside))
        for place, new in change.what:
            new = bytes.fromhex(new)
            content[place : place + len(new)] = new
        _write(path, bytes(content))
        return
    _remove(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if change.kind == "text":
        path.write_bytes(_placed(change.what.encode(errors="surrogatepass"), here, outside))
    elif change.kind == "packed":
        path.write_bytes(_placed(zlib.decompress(base64.b64decode(change.what)), here, outside))
    elif change.kind == "link":
        path.symlink_to(os.fsdecode(_placed(change.what.encode(), here, outside)))
    elif change.kind == "fifo":
        os.mkfifo(path)
    elif change.kind == "folder":
        path.mkdir()
    elif change.kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            below = os.open(path.parent, os.O_PATH)  # the name of a socket may have 107 bytes
            one.bind(f"/proc/self/fd/{below}/{path.name}")
            os.close(below)
    elif change.kind == "hole":
        with path.open("wb") as file:
            file.truncate(int(change.what))
    else:
        assert change.kind == "gone", change.kind


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for below in path.iterdir():
            _remove(below)
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
