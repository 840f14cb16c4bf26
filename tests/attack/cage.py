"""Runs commands in a process that can do no harm, and notes all they tried.

The process is forked from one that has everything imported, and runs one command after the other, so a case takes a fraction of
a second. Each has bounds of time and memory; an audit hook notes what it does outside its folder, and what it starts.
"""

# ruff: noqa: PTH100, PTH113, PTH118, PTH119
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 20.0
MEMORY = 2 * 2**30  # bytes that a process may have in memory
SPACE = 12 * 2**30  # of addresses beyond those it begins with: a last bound, should it grow between two looks
LOOK = 0.05  # seconds between two looks at how it does
SAID = 2**18  # bytes of its output that are read
NOTES = os.O_WRONLY | os.O_CREAT | os.O_APPEND
ANEW = os.O_RDWR | os.O_CREAT | os.O_TRUNC
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# Audit events that change what a path names: (event, which arguments are paths).
CHANGES = {
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.link": (1,),
    "os.symlink": (1,),
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.utime": (0,),
}
STARTS = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "pty.spawn")
TALKS = ("socket.connect", "socket.sendto", "socket.getaddrinfo")
HARMLESS = ("git", "ldconfig", "fc-list")  # that we and Matplotlib start


@dataclass(frozen=True)
class Ended:
    """`code` is minus the signal where one ended it."""

    code: int
    out: str
    err: str
    seconds: float
    memory: int
    too_long: bool
    too_large: bool
    noted: tuple[str, ...]


class Cage:
    """A process forked from this one that runs commands, one after the other; a new one takes its place when it has to end."""

    def __init__(self) -> None:
        self.child, self.ask, self.answer = 0, -1, -1

    def run(self, words: tuple[str, ...], here: Path, room: Path, until: Callable[[str], bool] | None = None) -> Ended:
        """The command as if called in `here`; all it may write lies in `room`. `until` is told its output: True ends it well."""
        if not self.child:
            self._start()
        began = time.monotonic()
        out, err, seen = room / "out", room / "err", room / "seen"
        os.write(self.ask, (json.dumps([words, str(here), str(room)]) + "\n").encode())
        too_long = too_large = well = False
        while not select.select([self.answer], [], [], LOOK)[0]:
            too_large = too_large or _resident(self.child) > MEMORY
            too_long = too_long or time.monotonic() - began > SECONDS
            well = well or (until is not None and until(_text(out)))
            if too_large or too_long or well:
                break
        said = b"" if too_large or too_long or well else os.read(self.answer, 1000)
        if said:
            code, peak = json.loads(said)
        else:
            code, peak = self.end()
        noted = tuple(dict.fromkeys(json.loads(line) for line in _text(seen).splitlines()))
        seconds = time.monotonic() - began
        return Ended(0 if well else code, _text(out), _text(err), seconds, peak, too_long, too_large or peak > MEMORY, noted)

    def end(self) -> tuple[int, int]:
        """Its exit code, and the most memory it had."""
        if not self.child:
            return 0, 0
        _kill(self.child)
        _, status, used = os.wait4(self.child, 0)
        os.close(self.ask)
        os.close(self.answer)
        self.child = 0
        return os.waitstatus_to_exitcode(status), 1024 * used.ru_maxrss

    def _start(self) -> None:
        asked, self.ask = os.pipe()
        self.answer, answering = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            os.close(self.ask)
            os.close(self.answer)
            _live(asked, answering)
        os.close(asked)
        os.close(answering)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(SAID).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _live(asked: int, answering: int) -> None:
    """The child: it never comes back."""
    try:
        os.setsid()
        begun = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (begun + SPACE, begun + SPACE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (4 * 2**30, 4 * 2**30))
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
        for category in (UserWarning, RuntimeWarning):  # each time, not once
            warnings.simplefilter("always", category)
        watch = Watch()
        sys.addaudithook(watch)
        with os.fdopen(asked) as lines:
            for line in lines:
                words, here, room = json.loads(line)
                code = _in_place(tuple(words), Path(here), Path(room), watch)
                os.write(answering, json.dumps([code, _peak()]).encode())
    finally:
        os._exit(70)


def _in_place(words: tuple[str, ...], here: Path, room: Path, watch: "Watch") -> int:
    typed = os.path.realpath(here / "stdin")
    typed = typed if os.path.isfile(typed) else os.devnull
    for stream, to, flags in ((0, typed, os.O_RDONLY), (1, room / "out", ANEW), (2, room / "err", ANEW)):
        handle = os.open(to, flags, 0o600)
        os.dup2(handle, stream)
        os.close(handle)
    # as Python opens them
    sys.stdout, sys.stderr = (
        os.fdopen(stream, "w", errors=errors, closefd=False) for stream, errors in ((1, "strict"), (2, "backslashreplace"))
    )
    os.environ.update(HOME=str(room / "home"), XDG_CACHE_HOME=str(room / "home" / "cache"), TMPDIR=str(room / "tmp"))
    os.environ.update(XDG_STATE_HOME=str(room / "home" / "state"), COLUMNS="200", USER="tester", LOGNAME="tester")
    os.environ.update(TORCHINDUCTOR_CACHE_DIR=str(room / "tmp" / "inductor"))  # torch keeps the first one it thinks of
    tempfile.tempdir = None
    os.chdir(here)
    Path("/proc/self/clear_refs").write_text("5")  # the most memory is counted anew
    watch.room = room
    try:
        code = _called(words)
    finally:
        watch.room = None
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def _peak() -> int:
    found = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()
    return 1024 * int(found[0])


def _called(words: tuple[str, ...]) -> int:
    from labelsieve.cli.main import main

    sys.argv = ["labelsieve", *words]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


class Watch:
    """An audit hook: notes what is changed outside `room`, what is started, what runs, and whom it calls."""

    def __init__(self) -> None:
        self.room: Path | None = None

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.room is None:
            return
        try:
            for words in self._odd(event, arguments):
                self._note(words)
        except Exception as error:  # what a hook raises would be taken for an error of the command
            self._note(f"the watch itself: {error!r} at {event}")

    def _note(self, words: str) -> None:
        handle = os.open(f"{self.room}/seen", NOTES, 0o600)
        os.write(handle, (json.dumps(words) + "\n").encode())
        os.close(handle)

    def _odd(self, event: str, arguments: tuple[Any, ...]) -> Iterator[str]:
        if event == "open":
            path, _, flags = arguments
            if flags & WRITES and flags != NOTES | os.O_CLOEXEC and self._is_outside(path, follow=True):
                yield f"outside: {event} {path!r}"
        elif event in CHANGES:
            for place in CHANGES[event]:
                if self._is_outside(arguments[place]):
                    yield f"outside: {event} {arguments[place]!r}"
        elif event in STARTS and not _is_ours(event, arguments):
            yield f"run: {event} {arguments!r}"[:400]
        elif event in TALKS and "127.0.0.1" not in str(arguments):
            yield f"calls: {event} {arguments!r}"[:200]
        elif event == "exec" and str(getattr(arguments[0], "co_filename", "")).startswith(str(self.room)):
            yield f"run: {arguments[0].co_filename}"
        elif event == "pickle.find_class":
            yield f"run: {event} {arguments[0]}.{arguments[1]}"

    def _is_outside(self, path: Any, follow: bool = False) -> bool:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return False
        folder, name = os.path.split(os.path.abspath(os.fsdecode(path)))
        there = os.path.join(os.path.realpath(folder), name)
        there = os.path.realpath(there) if follow else there
        is_within = f"{there}/".startswith((f"{self.room}/", "/dev/", "/proc/self/fd/"))
        return there.startswith(f"{self.room}/outside/") or not is_within


def _is_ours(event: str, arguments: tuple[Any, ...]) -> bool:
    """The processes that labelsieve itself starts, and what libraries of Python look up."""
    program, words = str(arguments[0]), " ".join(map(str, arguments[1])) if len(arguments) > 1 and arguments[1] else ""
    return os.path.basename(program).startswith(HARMLESS) or (program == sys.executable and "labelsieve" in words)
