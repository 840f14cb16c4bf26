"""The one console all verbs write to. What is printed is said as it is: names may hold brackets and colons.

All but what a terminal would obey: names of strangers' files and classes may hold escape sequences, which are shown instead.
"""

import re
from typing import Any

from rich.console import Console
from rich.text import Text

# Control characters but line breaks and tabs, those that turn the direction of what follows, and halves of a character, which
# no terminal can be sent.
OBEYED = re.compile("[\\ud800-\\udfff\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")


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
