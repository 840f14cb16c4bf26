"""Texts as people see them: names in quotes, sizes in bytes, and cells that a spreadsheet must not compute."""

BEGINS = ("=", "+", "-", "@", "\t", "\r")  # as OWASP lists them


def quoted(name: str) -> str:
    """A name on one line, whatever it holds: line breaks and other control characters are escaped."""
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name) + '"'


def byte_count(count: int) -> str:
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f} {unit}"
    return f"{count} bytes"


def computed(text: str) -> bool:
    """Does a spreadsheet take the text for a formula?"""
    return text[:1] in BEGINS and len(text) > 1 and not _is_number(text)


def inert(text: str) -> str:
    """The text as a cell that is shown and never computed: for what nobody joins by, names must stay as they are."""
    return f"'{text}" if computed(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
