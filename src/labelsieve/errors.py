"""Errors that the user can fix: they name the thing, the place and the remedy.

`ToolError` ends a command with exit code 1, `UsageError` with 2. Neither shows a traceback.
"""

import shlex
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

LONGEST = 1000  # characters of a word that is compared with others


class ToolError(Exception):
    """Something outside the program is wrong: a file, a label, a disk."""

    exit_code = 1


class UsageError(ToolError):
    """The command or the call was written wrongly."""

    exit_code = 2


def suggest(word: str, choices: Iterable[str]) -> str:
    """` (did you mean "cat"?)` for the nearest choice, or an empty string when none is near.

    A number that lost its zeros in a spreadsheet means the one with them: 893 is 000893, though 001893 looks as near.
    """
    if len(str(word)) > LONGEST:  # no name, and comparing it would take long
        return ""
    known, bare = [str(one) for one in choices], str(word).lstrip("0")
    padded = [one for one in known if one.lstrip("0") == bare] if str(word).isdecimal() else []
    near = padded or get_close_matches(str(word), known, n=1, cutoff=0.55)
    return f' (did you mean "{near[0]}"?)' if near else ""


def command(verb: str, path: Path, *words: str) -> str:
    """What to type about a run at `path`, in backquotes: a message's command can be copied whatever the folder is called."""
    return f"`labelsieve {shlex.join((verb, str(path), *words))}`"
