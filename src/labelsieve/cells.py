"""Texts that become cells of a table: a spreadsheet computes those that look like formulas."""

BEGINS = ("=", "+", "-", "@", "\t", "\r")  # as OWASP lists them


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
