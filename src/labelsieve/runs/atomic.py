"""Writes that are either whole or absent, also when the process is killed or the disk is full half-way through."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from labelsieve.disk import flush
from labelsieve.errors import ToolError

SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PLACE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT, errno.ENAMETOOLONG, errno.ELOOP)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what the disk refuses into a `ToolError` with the place and the remedy."""
    try:
        yield
    except OSError as error:
        raise ToolError(f"{path}: could not be written ({error.strerror or error}); {_remedy(error)}") from None


def _remedy(error: OSError) -> str:
    if error.errno in PLACE:
        return "make the place writable, or choose another with --out"
    first = "free some space" if error.errno in SPACE else "mend the disk"
    return f"{first}, then give the command again (for a run that had begun: `labelsieve resume`); older files are whole"


def write_file(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` make the file under another name, flush it to the disk, then put it in place in one move."""
    with disk_errors(path):
        draft = path.with_name(f".{path.name}.draft")
        try:
            _fresh(draft)
            write(draft)
            flush(draft)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        flush(path.parent)


def _fresh(draft: Path) -> None:
    """An empty file in the place of a killed process's draft, or of a link: in a folder from elsewhere it may lead anywhere."""
    draft.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666))


def write_bytes(path: Path, content: bytes) -> None:
    def write(draft: Path) -> None:
        draft.write_bytes(content)

    write_file(path, write)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_folder(path: Path, write: Callable[[Path], None]) -> None:
    """The same for a whole folder, which must not exist yet; drafts of killed processes are cleared away."""
    with disk_errors(path):
        draft = path.with_name(f".{path.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            write(draft)
            for file in draft.iterdir():
                flush(file)
            flush(draft)
            draft.rename(path)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        flush(path.parent)
