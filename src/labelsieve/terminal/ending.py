"""How a command ends that cannot go on: what is the user's to mend in one line and an exit code, without a traceback."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import typer

from labelsieve.errors import ToolError
from labelsieve.runs.atomic import SPACE
from labelsieve.terminal.visible import visible


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
        typer.echo(f"error: {visible(str(error))}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except OSError as error:
        if debug() or error.errno not in SPACE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left of it would fail again
        place = "where the output goes or in the temporary folder"
        typer.echo(f"error: {error.strerror}, {place}; free some there, then give the command again", err=True)
        sys.exit(1)
    except MemoryError:
        typer.echo("error: not enough memory; use fewer samples (--limit), a smaller batch or a smaller network", err=True)
        sys.exit(1)


def as_command(main: Callable[..., object]) -> None:
    """Run a function as `python -m MODULE ...`: the studies, which are no verbs of the command line, end as verbs do."""
    with ended_in_a_line():
        typer.run(main)
