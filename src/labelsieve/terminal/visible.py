"""Makes text from anywhere safe to show in a terminal: control characters are written out."""

import re

# Control characters but line breaks and tabs, and those that turn the direction of what follows.
OBEYED = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")


def visible(text: str) -> str:
    """The text with what a terminal would obey written out: `\\x1b[2J`."""
    return OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
