"""The append-only log of decisions in a run folder: entries go in, and are on the disk before `append` gives them back.

Any number of processes and threads may write. A line that a killed process left half written is cut off by the next writer
and unseen by readers; a write that the disk refuses leaves the log as it was. Appending reads only what others added since.
"""

import fcntl
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from labelsieve.decisions.decision import Decision, parse
from labelsieve.disk import flush
from labelsieve.errors import ToolError
from labelsieve.locks import hold

NAME = "decisions.jsonl"
TRIES = 3  # to hold the file that is there; some network file systems never say that it is the same


class DecisionLog:
    """The log of the run in `folder`; the file is made by the first decision."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._guard = threading.RLock()
        self._forget((0, 0))

    @property
    def is_writable(self) -> bool:
        """Could a decision be written now, as far as permissions tell?"""
        return os.access(self.path if self.path.exists() else self.path.parent, os.W_OK)

    def append(self, entries: list[Decision]) -> list[Decision]:
        """The entries as they stand in the log, each with its seq. One whose key is known is not written again."""
        if not entries:
            return []
        with self._guard, self._open(os.O_RDWR | os.O_CREAT | os.O_APPEND, fcntl.LOCK_EX) as handle:
            self._catch_up(handle)
            given: list[Decision] = []
            fresh: dict[str, Decision] = {}
            for entry in entries:
                known = self._known.get(entry.key) or fresh.get(entry.key)
                if known is None:
                    known = fresh[entry.key] = replace(entry, seq=self._seq + len(fresh) + 1)
                given.append(known)
            self._write(handle, b"".join(entry.line() for entry in fresh.values()))
            self._known |= fresh
            self._seq += len(fresh)
        return given

    def since(self, offset: int) -> tuple[list[Decision], int]:
        """The entries after byte `offset` (0: all), and the offset to ask with next time.

        An offset at which no line begins belongs to another log: then all are given.
        """
        if not self.path.exists():
            return [], 0
        with self._guard, self._open(os.O_RDONLY, fcntl.LOCK_SH) as handle:
            return self._lines(handle, offset if _begins_line(handle, offset) else 0)

    def all(self) -> list[Decision]:
        return self.since(0)[0]

    def _forget(self, file: tuple[int, int]) -> None:
        self._file, self._offset = file, 0  # which file was read (device, inode), and how far
        self._seq = 0  # of the last entry
        self._known: dict[str, Decision] = {}  # by key

    @contextmanager
    def _open(self, flags: int, lock: int) -> Iterator[int]:
        """The file, held against other processes; opened each time, so that a log that was put in its place is noticed."""
        new = not self.path.exists()
        handle = None
        try:
            handle = self._held(flags, lock)
            if new and flags & os.O_CREAT:
                flush(self.path.parent)  # so that the new file's name outlives a power cut, too
            yield handle
        except OSError as error:
            raise self._refused(error) from None
        finally:
            if handle is not None:
                os.close(handle)

    def _held(self, flags: int, lock: int, tries: int = TRIES) -> int:
        """The handle of the file that is there once the lock is held: while one waits, another may be put in its place."""
        # A link would lead out of the run folder, and a pipe would wait for ever.
        handle = os.open(self.path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError("it is no plain file")
            hold(handle, lock)
            if self._is_there(handle) or tries == 1:
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        return self._held(flags, lock, tries - 1)

    def _is_there(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.lstat(self.path))
        except FileNotFoundError:
            return False

    def _catch_up(self, handle: int) -> None:
        """Read what others wrote, and cut off what a killed one left unfinished: we hold the lock, so nobody is writing it."""
        facts = os.fstat(handle)
        if (facts.st_dev, facts.st_ino) != self._file or not _begins_line(handle, self._offset):
            self._forget((facts.st_dev, facts.st_ino))
        found, self._offset = self._lines(handle, self._offset)
        for entry in found:
            self._known.setdefault(entry.key, entry)
            self._seq = max(self._seq, entry.seq)
        if facts.st_size > self._offset:
            os.ftruncate(handle, self._offset)

    def _lines(self, handle: int, offset: int) -> tuple[list[Decision], int]:
        size = os.fstat(handle).st_size
        chunks, at = [], offset
        while at < size and (chunk := os.pread(handle, min(size - at, 1 << 24), at)):
            chunks.append(chunk)
            at += len(chunk)
        whole, newline, _ = b"".join(chunks).rpartition(b"\n")
        if not newline:
            return [], offset
        place = f"{self.path}, line" if not offset else f"{self.path}, after byte {offset}, line"
        entries = [parse(line, f"{place} {number}") for number, line in enumerate(whole.split(b"\n"), 1)]
        return entries, offset + len(whole) + 1

    def _write(self, handle: int, lines: bytes) -> None:
        """Down to the disk; or, where it refuses, back to where the log was."""
        try:
            left = memoryview(lines)
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)  # also where nothing is new: a killed process may have written it without coming this far
        except OSError:
            os.ftruncate(handle, self._offset)
            raise
        self._offset += len(lines)

    def _refused(self, error: OSError) -> ToolError:
        return ToolError(
            f"{self.path}: could not be written or read ({error.strerror or error}); free some space or make the folder "
            f"writable, and decide again: what was saved before is whole"
        )


def _begins_line(handle: int, offset: int) -> bool:
    """Does a line begin there? Otherwise the offset is of another log, which was longer or had other lines."""
    return offset == 0 or (offset > 0 and os.pread(handle, 1, offset - 1) == b"\n")
