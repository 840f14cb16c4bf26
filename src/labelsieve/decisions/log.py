"""The append-only log of decisions in a run folder: entries are on the disk before `append` gives them back.

Any number of processes and threads may write. A line that a killed process left half written is cut off by the next writer
and unseen by readers; a write that the disk refuses leaves the log as it was. What was read once is not read again: the index
has it, and both reading and appending look only at what others added since.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from labelsieve.decisions.decision import Decision, Row, State, parse, rows
from labelsieve.decisions.index import Index
from labelsieve.disk import flush, hold, read_at
from labelsieve.doors import FLAGS, LINE, NOFOLLOW
from labelsieve.errors import ToolError

NAME = "decisions.jsonl"
TRIES = 3  # to hold the file that is there; some network file systems never say that it is the same
CHUNK = 4 * 2**20  # bytes that are read at once


class DecisionLog:
    """The log of the run in `folder`; the file is made by the first decision.

    `index` is what was read of it so far. `guard` is held while that changes, and never while the disk is waited for.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.guard = threading.RLock()
        self._alone = threading.RLock()  # one thread at a time reads what is new, or writes
        self._forget((0, 0))

    @property
    def is_writable(self) -> bool:
        """Could a decision be written now, as far as permissions tell?"""
        return os.access(self.path if self.path.exists() else self.path.parent, os.W_OK)

    def append(self, entries: list[Decision]) -> list[Decision]:
        """The entries as they stand in the log, each with its seq. One whose key is known is not written again."""
        if not entries:
            return []
        with self._alone, self._open(os.O_RDWR | os.O_CREAT | os.O_APPEND) as handle:
            self._read_on(handle)
            if os.fstat(handle).st_size > self.index.end:  # we hold the lock, so whoever left that is no longer writing it
                os.ftruncate(handle, self.index.end)
            given: list[Decision] = []
            fresh: dict[str, Decision] = {}
            for entry in entries:
                number = self.index.keys.get(entry.key)
                known = fresh.get(entry.key) if number is None else self._entry(handle, self.index, number)
                if known is None:
                    known = fresh[entry.key] = replace(entry, seq=self.index.last_seq + len(fresh) + 1)
                given.append(known)
            lines = [entry.line() for entry in fresh.values()]
            self._write(handle, b"".join(lines))
            if lines:
                ends = accumulate(map(len, lines), initial=self.index.end)
                next(ends)
                self._take(zip((entry.row for entry in fresh.values()), ends), lines[-1])
        return given

    def catch_up(self) -> Index:
        """The index with what others wrote; a new one where somebody put another log in the place of this one."""
        with self._alone:
            if self.path.exists():
                with self._open(os.O_RDONLY) as handle:
                    self._read_on(handle)
            elif len(self.index):
                self._forget((0, 0))
            return self.index

    def all(self) -> list[Decision]:
        """Every entry. Of a long log that is much: `states` and `known` need less."""
        return self.read(range(len(self.catch_up())))

    def states(self, ids: Iterable[str] | None = None) -> dict[str, State]:
        """{id: state}, by first decision: of all samples on which anything was decided, or of those in `ids`."""
        index = self.catch_up()
        number = index.ids.number
        samples = range(len(number)) if ids is None else [number[name] for name in ids if name in number]
        with self._lines() as line:
            return {index.ids.all[sample]: _state(index, sample, line) for sample in samples}

    def known(self, keys: Iterable[str]) -> dict[str, Decision]:
        """{key: entry} of those keys that are in the log."""
        index = self.catch_up()
        found = [index.keys[key] for key in dict.fromkeys(keys) if key in index.keys]
        return {entry.key: entry for entry in self.read(found)}

    def read(self, entries: Iterable[int]) -> list[Decision]:
        """The entries with these numbers in the index."""
        with self._lines() as line:
            return [line(entry) for entry in entries]

    @contextmanager
    def _lines(self) -> Iterator[Callable[[int], Decision]]:
        """What reads the entry of a number. Nothing is locked: what is written is never changed."""
        handles: list[int] = []
        index = self.index

        def line(entry: int) -> Decision:
            if not handles:
                handles.append(os.open(self.path, os.O_RDONLY | FLAGS | NOFOLLOW))
            return self._entry(handles[0], index, entry)

        try:
            yield line
        except OSError as error:
            raise self._refused(error) from None
        finally:
            for handle in handles:
                os.close(handle)

    def _entry(self, handle: int, index: Index, entry: int) -> Decision:
        begin = index.begins(entry)
        found = parse(read_at(handle, index.ends[entry] - begin, begin), f"{self.path}, line {entry + 1}")
        if (found.seq, found.id) != (index.seqs[entry], index.ids.all[index.samples[entry]]):
            raise ToolError(f"{self.path}: another log was put in its place just now; give the command again")
        return found

    def _forget(self, file: tuple[int, int]) -> None:
        with self.guard:
            self._file = file  # which file was read (device, inode)
            self._last = b""  # its last line that was read
            self.index = Index()

    @contextmanager
    def _open(self, flags: int) -> Iterator[int]:
        """The file, held against other processes; opened each time, so that a log that was put in its place is noticed."""
        new = not self.path.exists()
        try:
            with self._held(flags) as handle:
                if new and flags & os.O_CREAT:
                    flush(self.path.parent)  # so that the new file's name outlives a power cut, too
                yield handle
        except OSError as error:
            raise self._refused(error) from None

    @contextmanager
    def _held(self, flags: int) -> Iterator[int]:
        """The handle of the file that is there once the lock is held: while one waits, another may be put in its place."""
        for left in reversed(range(TRIES)):
            # A link would lead out of the run folder, and a pipe would wait for ever.
            handle = os.open(self.path, flags | FLAGS | NOFOLLOW, 0o644)
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise OSError("it is no plain file")
                with hold(handle, self.path, shared=not flags & os.O_CREAT):
                    if self._is_there(handle) or not left:
                        yield handle
                        return
            finally:
                os.close(handle)

    def _is_there(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.lstat(self.path))
        except FileNotFoundError:
            return False

    def _read_on(self, handle: int) -> None:
        """Take in what others wrote; a line that is not finished yet is left."""
        facts = os.fstat(handle)
        file, end = (facts.st_dev, facts.st_ino), self.index.end
        if file != self._file or read_at(handle, len(self._last), end - len(self._last)) != self._last:
            self._forget(file)
        size = CHUNK
        while (at := self.index.end) < facts.st_size:
            chunk = read_at(handle, min(size, facts.st_size - at), at)
            whole = chunk[: chunk.rfind(b"\n") + 1]
            if whole:
                self._take_lines(whole, at)
            elif len(chunk) < size:
                return
            elif size > LINE:
                raise ToolError(
                    f"{self.path}, line {len(self.index) + 1}: longer than any decision; the file was changed or damaged: "
                    f"put it back"
                )
            else:
                size *= 2

    def _take_lines(self, whole: bytes, at: int) -> None:
        found = [(row, at + end) for row, end in rows(whole.decode("latin-1"), str(self.path), len(self.index) + 1)]
        self._take(found, whole[whole.rfind(b"\n", 0, -1) + 1 :])

    def _take(self, found: Iterable[tuple[Row, int]], last: bytes) -> None:
        with self.guard:
            for row, end in found:
                self.index.add(row, end)
            self._last = last

    def _write(self, handle: int, lines: bytes) -> None:
        """Down to the disk; or, where it refuses, back to where the log was."""
        try:
            left = memoryview(lines)
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)  # also where nothing is new: a killed process may have written it without coming this far
        except OSError:
            os.ftruncate(handle, self.index.end)
            raise

    def _refused(self, error: OSError) -> ToolError:
        return ToolError(
            f"{self.path}: could not be written or read ({error.strerror or error}); free some space or make the folder "
            f"writable, and decide again: what was saved before is whole"
        )


def _state(index: Index, sample: int, line: Callable[[int], Decision]) -> State:
    standing = {entry: line(entry) for entry in index.standing(sample)}
    newest = index.newest[sample]
    return State(tuple(standing.values()), standing.get(newest) or line(newest), sample in index.over_taken_back)
