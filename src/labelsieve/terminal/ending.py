"""Ends a command that can't continue: one line about what the user can fix and an exit code, no traceback."""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

import typer

from labelsieve.doors import short
from labelsieve.errors import ToolError
from labelsieve.runs.atomic import SPACE
from labelsieve.terminal.console import visible

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
