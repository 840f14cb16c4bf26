"""Who decided, when, and under which key: one rule for what the page sends and for what a file brings in."""

from labelsieve.texts import computed

LONGEST = {"who": 80, "when": 64, "key": 128}  # characters
MEANT = {"who": "the reviewer's name", "when": "the time", "key": "the key"}


def flaws(**signature: str) -> list[str]:
    """What is wrong with `who`, `when` and `key`, a sentence each. `decisions --to csv` hands all three on as cells."""
    return [f"{MEANT[name]} {flaw}" for name, text in signature.items() if (flaw := _flaw(text, LONGEST[name]))]


def _flaw(text: str, longest: int) -> str:
    if not text.strip():
        return "is empty; give one"
    if len(text) > longest:
        return f"has {len(text):,} characters; use {longest} at most"
    if not text.isprintable():
        return "must be printable text on one line"
    if computed(text.strip()):
        return "must not begin with =, +, - or @, as formulas do; change it"
    return ""
