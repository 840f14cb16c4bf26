"""Writes files that are either whole or absent, even if the process is killed or the disk fills up halfway."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from labelsieve.disk import flush, hold, open_to_hold
from labelsieve.doors import FLAGS, NOFOLLOW
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
        return "make that place writable, or choose another with --out"
    first = "free some space" if error.errno in SPACE else "check the disk"
    return (
        f"{first}, then run the command again (`labelsieve resume` for a run that had started); files written before are intact"
    )


def write_file(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` make the file under another name, flush it to the disk, then put it in place in one move."""
    with disk_errors(path):
        draft = _draft_of(path)
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
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FLAGS | NOFOLLOW, 0o666))


def write_bytes(path: Path, content: bytes) -> None:
    def write(draft: Path) -> None:
        draft.write_bytes(content)

    write_file(path, write)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_new(path: Path, write: Callable[[Path], None]) -> None:
    """As `write_file`, for what a user named: another process that writes it, or a file that came meanwhile, is not touched."""
    with disk_errors(path):
        with _held(path, _unlink, _fresh) as draft:
            write(draft)
            flush(draft)
            _put_new(draft, path)
        flush(path.parent)


def write_pair(path: Path, write: Callable[[Path], None], beside: Path, text: str) -> None:
    """As `write_new`, for a file and a text beside it, of which there are both or none.

    The text is put in place first, and a copy of it stays until the file is there, too. By that copy `take_back` knows the text
    of a process that was killed between the two.
    """

    told: list[Path] = []

    def write_and_tell(draft: Path) -> None:
        write(draft)
        flush(draft)
        write_new_text(beside, text)
        told.append(beside)

    with disk_errors(path), _held(_copy_of(path, beside), _unlink, _fresh) as copy:
        copy.write_bytes(text.encode())
        flush(copy)
        try:
            write_new(path, write_and_tell)
        except BaseException:
            for placed in told:
                placed.unlink(missing_ok=True)
            raise


def take_back(path: Path, beside: Path) -> None:
    """Take away the text that a killed `write_pair` left beside a file which never came; anything else but drafts stays.

    A draft with a second name did come, wherever the file was moved since, and so did one that is gone.
    """
    copy, draft = _draft_of(_copy_of(path, beside)), _draft_of(path)
    if os.path.lexists(path):
        clear_up(path)
        if _is_plain(copy):
            with disk_errors(path), _lock(copy, path):
                copy.unlink(missing_ok=True)
        return
    if not (_is_plain(copy) and _is_plain(beside) and _is_plain(draft)):
        return
    with disk_errors(path), _lock(copy, path):  # refused where its process lives
        if draft.stat().st_nlink == 1 and copy.read_bytes() == beside.read_bytes():
            beside.unlink()
            flush(path.parent)


def clear_up(path: Path) -> None:
    """Remove the draft of a process that was killed when its file had come already: it is a second name of that file."""
    draft = _draft_of(path)
    with suppress(OSError):
        if _is_plain(draft) and draft.samefile(path):
            draft.unlink()


def _copy_of(path: Path, beside: Path) -> Path:
    """What names the copy: one for each file that `beside` may belong to."""
    return path.with_name(f"{path.name}.{beside.name}")


def _draft_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.draft")


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def write_new_text(path: Path, text: str) -> None:
    def write(draft: Path) -> None:
        draft.write_bytes(text.encode())

    write_new(path, write)


def write_folder(path: Path, write: Callable[[Path], None]) -> None:
    """The same for a whole folder, which must not exist yet; drafts of killed processes are cleared away."""
    with disk_errors(path):
        with _held(path, _remove, _folder) as draft:
            write(draft)
            for file in draft.iterdir():
                flush(file)
            flush(draft)
            draft.rename(path)
        flush(path.parent)


def _put_new(draft: Path, path: Path) -> None:
    """The draft under its name, unless something is there by now."""
    try:
        path.hardlink_to(draft)  # a move would put it over what is there
    except OSError as error:
        if isinstance(error, FileExistsError) or os.path.lexists(path):
            raise ToolError(f"{path}: it appeared in the meantime, and nothing is overwritten; choose another --out") from None
        draft.replace(path)  # a disk without links


@contextmanager
def _held(path: Path, clear: Callable[[Path], None], make: Callable[[Path], None]) -> Iterator[Path]:
    """A fresh draft of what will lie at `path`, which no other process clears away or fills meanwhile; gone afterwards."""
    draft = _draft_of(path)
    if _is_plain(draft) or (draft.is_dir() and not draft.is_symlink()):
        with _lock(draft, path), suppress(OSError):  # refused where its process lives
            clear(draft)
    if os.path.lexists(draft):  # no draft of ours
        kind = (
            "a link"
            if draft.is_symlink()
            else "a folder"
            if draft.is_dir()
            else "a file"
            if draft.is_file()
            else "a pipe or a device"
        )
        raise ToolError(f"{draft}: {kind} is there, where the draft of {path.name} belongs; remove it, or choose another --out")
    make(draft)
    with _lock(draft, path) as handle:
        try:
            yield draft
        finally:
            if _is(draft, handle):  # where it was moved, another process may have begun its own
                clear(draft)


@contextmanager
def _lock(draft: Path, path: Path) -> Iterator[int | None]:
    handle = open_to_hold(draft)
    try:
        with hold(handle, path, wait=False):
            if not _is(draft, handle):
                raise BlockingIOError
            yield handle
    except BlockingIOError:
        raise ToolError(f"{path}: another process is writing it; wait until that has ended, or choose another --out") from None
    finally:
        if handle is not None:
            os.close(handle)


def _is(draft: Path, handle: int | None) -> bool:
    if handle is None:  # the lock isn't on the draft, so nobody else makes one
        return True
    try:
        return os.path.samestat(os.fstat(handle), draft.lstat())
    except FileNotFoundError:
        return False


def _unlink(draft: Path) -> None:
    draft.unlink(missing_ok=True)


def _remove(draft: Path) -> None:
    shutil.rmtree(draft, ignore_errors=True)


def _folder(draft: Path) -> None:
    draft.mkdir(parents=True)
