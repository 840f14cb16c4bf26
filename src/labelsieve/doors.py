"""The door to files that strangers may have made: plain files only, up to a size, and one sentence for whatever goes wrong.

A link leads out of its folder, a pipe never ends, a device fills the memory. What is opened is examined by its descriptor, so
what you read is the file that was examined. Use `reading` around everything that parses such a file.
"""

import errno
import io
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from labelsieve.errors import ToolError

# Windows has none of these; there, names are examined instead.
FLAGS = os.O_RDONLY
for _name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
    FLAGS |= getattr(os, _name, 0)
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
WALKS = NOFOLLOW and os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd

SAID = 160  # characters of what a parser says of a file
LINE = 16 * 2**20  # characters: no line that we write is nearly as long
KINDS = (
    (stat.S_ISLNK, "it is a link, which is not followed"),
    (stat.S_ISDIR, "it is a folder, not a file"),
    (stat.S_ISFIFO, "it is a pipe, not a plain file"),
)


class Refusal(OSError):
    """Why the door stays shut, as half a sentence: `Refusal(errno, words)`."""


class Damage(ValueError):
    """What is wrong with a file's content, as half a sentence."""


def open_plain(path: Path, at_most: int | None = None, *, top: Path | None = None, follow: bool = False) -> BinaryIO:
    """The plain file at `path`, open for reading, of `at_most` bytes; an `OSError` says why not.

    No link is followed below `top`, which is the file's folder unless you name another above it. `follow` is for a path that
    the user named: its links are followed, and what is there must still be a plain file.
    """
    if follow:
        return _examined(path, None, at_most, follow=True)
    top = path.parent if top is None else top
    *folders, name = path.relative_to(top).parts
    if not WALKS:
        for count in range(len(folders)):
            _refuse_other(os.lstat(top.joinpath(*folders[: count + 1])), stat.S_ISDIR)
        return _examined(path, None, at_most)
    handle = os.open(top, FOLDER)
    try:
        for folder in folders:
            _refuse_other(os.stat(folder, dir_fd=handle, follow_symlinks=False), stat.S_ISDIR)
            above, handle = handle, os.open(folder, FOLDER | NOFOLLOW, dir_fd=handle)
            os.close(above)
        return _examined(Path(name), handle, at_most)
    finally:
        os.close(handle)


def _examined(path: Path, folder: int | None, at_most: int | None, follow: bool = False) -> BinaryIO:
    """Look, open, and look again at what was opened: opening a pipe would wait, and a device may do anything."""
    seen = os.stat(path, dir_fd=folder, follow_symlinks=follow)
    _refuse_other(seen, stat.S_ISREG)
    handle = os.open(path, FLAGS | (0 if follow else NOFOLLOW), dir_fd=folder)
    try:
        found = os.fstat(handle)
        _refuse_other(found, stat.S_ISREG)
        if not os.path.samestat(seen, found):
            raise Refusal(errno.EAGAIN, "it was replaced while it was opened")
        if at_most is not None and found.st_size > at_most:
            raise Refusal(errno.EFBIG, f"it has {found.st_size:,} bytes, and such a file has {at_most:,} at most")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _refuse_other(seen: os.stat_result, is_wanted: Any) -> None:
    if not is_wanted(seen.st_mode):
        other = "it is not a folder" if is_wanted is stat.S_ISDIR else "it is a device or a socket, not a plain file"
        raise Refusal(errno.EINVAL, next((words for is_kind, words in KINDS if is_kind(seen.st_mode)), other))


def is_folder(path: Path) -> bool:
    """Like `Path.is_dir`, which raises where a name is too long for the system."""
    try:
        return path.is_dir()
    except OSError:
        return False


def read_bytes(path: Path, at_most: int | None = None, *, top: Path | None = None, follow: bool = False) -> bytes:
    with open_plain(path, at_most, top=top, follow=follow) as stream:
        size = os.fstat(stream.fileno()).st_size
        content = stream.read(size + 1)
    if len(content) > size:
        raise Refusal(errno.EFBIG, "it grew while it was read")
    return content


def read_text(path: Path, at_most: int | None = None, *, top: Path | None = None, follow: bool = False) -> str:
    """UTF-8, with or without a mark at its beginning."""
    return read_bytes(path, at_most, top=top, follow=follow).decode("utf-8-sig")


def read_json(path: Path, at_most: int | None = None, *, top: Path | None = None, follow: bool = False) -> Any:
    return json.loads(read_text(path, at_most, top=top, follow=follow))


def lines(path: Path, at_most: int | None = None, *, top: Path | None = None, follow: bool = False) -> Iterator[str]:
    """The lines of a UTF-8 text one by one, with their ends, as `csv.reader` wants them; none is longer than LINE."""
    with (
        open_plain(path, at_most, top=top, follow=follow) as stream,
        io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text,
    ):
        while line := text.readline(LINE + 1):
            if len(line) > LINE:
                raise Refusal(errno.EFBIG, f"a line of it is longer than {LINE:,} characters")
            yield line


@contextmanager
def reading(place: Path | str, remedy: str) -> Iterator[None]:
    """Around everything that reads and parses a file that strangers may have made: whatever that raises is one `ToolError`.

    Parsers fail on damaged files with nearly any exception, and all mean the same here. Keep what cannot be the file's fault
    out of it.
    """
    try:
        yield
    except ToolError:
        raise
    except Exception as error:
        raise ToolError(f"{place}: {why(error)}; {remedy}") from error


def why(error: BaseException) -> str:
    """Half a sentence for what went wrong with a file."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, UnicodeDecodeError):
        return f"not {error.encoding} text (byte {error.start:,})"
    if isinstance(error, RecursionError):
        return "damaged (nested without end)"
    if isinstance(error, MemoryError):
        return "too large for the memory"
    if isinstance(error, KeyError):
        return f"damaged ({short(error)} is missing)"
    if isinstance(error, Damage):
        return str(error)
    if isinstance(error, Refusal):
        return str(error.strerror)
    if isinstance(error, OSError) and error.strerror:
        return f"it cannot be read ({error.strerror})"
    said = short(error)
    return f"damaged ({type(error).__name__}{': ' if said else ''}{said})"


def short(value: object) -> str:
    """A value or what an error says, in one line of a bounded length: files can make it as long as they are."""
    said = " ".join(str(value)[:1000].split())
    return said if len(said) <= SAID else said[: SAID - 3] + "..."
