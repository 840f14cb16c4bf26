"""The console that all verbs write to, and how a command that can't continue ends: one line and an exit code, no traceback.

Text is printed as it is, brackets and colons included, except what a terminal would obey: escape sequences in strangers' file or
class names are written out.
"""

import errno
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from labelsieve.doors import short
from labelsieve.errors import ToolError, UsageError
from labelsieve.runs.atomic import SPACE, clear_up

# Control characters but line breaks and tabs, those that turn the direction of what follows, and halves of a character, which
# no terminal can be sent.
OBEYED = re.compile("[\\ud800-\\udfff\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")
UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}


def visible(text: str) -> str:
    """The text with what a terminal would obey written out: `\\x1b[2J`."""
    return OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class PlainConsole(Console):
    """Everything printed passes here, cells of tables too."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, soft_wrap=True, markup=False, emoji=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(visible(text), **settings)


console = PlainConsole()


def parse_duration(text: str) -> float:
    """Seconds in "9m", "1h30m", "45s", "1.5h"; a bare number is seconds."""
    cleaned = text.strip().lower().replace(" ", "")
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms]?)", cleaned)
    if not parts or "".join(a + b for a, b in parts) != cleaned:
        raise UsageError(f'"{text}" is no duration; write it like 90s, 9m, 1h30m')
    seconds = sum(float(number) * UNITS[unit or "s"] for number, unit in parts)
    if seconds <= 0:
        raise UsageError(f'"{text}": a time limit must be longer than nothing')
    return seconds


def say_duration(seconds: float) -> str:
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {rest:02d} s"


def check_new(option: str, path: Path | None) -> None:
    """A `UsageError` where something is there already, or where nothing could be written afterwards; without a path, nothing."""
    if path is None:
        return
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"{option} {path}: that is a folder; name a file")
    if os.path.lexists(path):
        clear_up(path)
        raise UsageError(f"{option} {path}: that file exists, and nothing is overwritten; move it away, or name another file")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        what = "cannot be written to" if folder.is_dir() else "does not exist"
        raise UsageError(
            f"{option} {path}: the folder {folder} {what}; create it or change its permissions, or choose another file"
        )


# What a system says of a path that it was given, or that somebody else keeps from us.
NAMED = ("ENAMETOOLONG", "ELOOP", "ENOTDIR", "EACCES", "EPERM", "EROFS", "EIO", "ESTALE", "ENODEV", "ENXIO", "EMFILE", "ENFILE")
OF_PATHS = {getattr(errno, name) for name in NAMED if hasattr(errno, name)}
LONGEST = 2000  # characters of an error: what it quotes from a file may be as long as the file


class Interrupted(ToolError):
    """Ctrl-C, with what there is to say about it."""

    exit_code = 130


@contextmanager
def interruptible(words: str = "interrupted") -> Iterator[None]:
    """Say `words` where Ctrl-C ends what is inside. Typer would end it without any."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(words) from None


def stopped_at_once(out: Path) -> str:
    """What to say after a second Ctrl-C where several runs are made in one folder."""
    return f"stopped at once; {out} keeps what is done, and the same command continues from the last checkpoint"


@contextmanager
def ended_in_a_line(debug: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Exit code 1 or 2, as the error has it; 130 after Ctrl-C. With `debug` the traceback comes through."""
    try:
        try:
            yield
        finally:
            with suppress(BrokenPipeError):
                print(end="", flush=True)  # or what does not fit where it goes would be told after the end, in Python's words
    except ToolError as error:
        if debug():
            raise
        typer.echo(f"{'' if isinstance(error, Interrupted) else 'error: '}{shortened(visible(str(error)))}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except OSError as error:
        if not debug() and error.errno in OF_PATHS and isinstance(error.filename, (str, bytes)):
            name = short(visible(os.fsdecode(error.filename)))
            typer.echo(f"error: {name}: {error.strerror}; check the path, and that you may use what is there", err=True)
            sys.exit(1)
        if debug() or error.errno not in SPACE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left of it would fail again
        place = "where the output goes or in the temporary folder"
        typer.echo(f"error: {error.strerror}, {place}; free some there, then give the command again", err=True)
        sys.exit(1)
    except MemoryError:
        typer.echo("error: not enough memory; use fewer samples (--limit), a smaller batch or a smaller network", err=True)
        sys.exit(1)


def shortened(words: str) -> str:
    """The beginning, which names the thing, and the end, which says what to do."""
    left = LONGEST - len(" ... ")
    return words if len(words) <= LONGEST else f"{words[: 2 * left // 3]} ... {words[-left // 3 :]}"


def as_command(main: Callable[..., object]) -> None:
    """Run a function as `python -m MODULE ...`: the studies, which are no verbs of the command line, end as verbs do."""

    @wraps(main)
    def run(*words: Any, **options: Any) -> object:
        with interruptible():
            return main(*words, **options)

    with ended_in_a_line():
        typer.run(run)
