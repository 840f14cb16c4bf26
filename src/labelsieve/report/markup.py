"""Makes markup: escapes text, builds one element at a time, and writes numbers for people.

Everything written here is valid both as XML and as HTML, so that a test can parse it strictly.
"""

import html
import math
import unicodedata

from labelsieve.texts import rounded

MISSING = "–"
WIDE = "mwMW@%→…<>&_+=~#жмфшщыюЖМФШЩЫЮ"


def escape(text: object) -> str:
    """Text safe inside an element or a quoted attribute; what no document may hold becomes U+FFFD."""
    return html.escape("".join(c if _allowed(c) else "\ufffd" for c in str(text)), quote=True)


def _allowed(character: str) -> bool:
    # Control characters break XML; lone surrogates (file names that are not UTF-8) cannot be written at all;
    # the last two of every plane (U+FFFE, U+1FFFF, ...) are no characters.
    code = ord(character)
    if code < 0x20:
        return character in "\t\n\r"
    return not (0x7F <= code <= 0x9F or 0xD800 <= code <= 0xDFFF or 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE)


def element(name: str, *children: str, **attributes: object) -> str:
    """`<name attribute="...">children</name>`; children are markup already, attributes are escaped here.

    `klass` is written `class`, and `_` in a name becomes `-`. An attribute that is None is left out.
    """
    pairs = ((key, value) for key, value in attributes.items() if value is not None)
    written = "".join(f' {_attribute(key)}="{escape(_plain(value))}"' for key, value in pairs)
    return f"<{name}{written}>{''.join(children)}</{name}>"


def _attribute(key: str) -> str:
    return "class" if key == "klass" else key.replace("_", "-")


def _plain(value: object) -> object:
    """Coordinates with one decimal: a tenth of a pixel is enough, and files stay small."""
    return pixels(value) if isinstance(value, float) else value


def pixels(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def number(value: float, decimals: int, digits: int = 3) -> str:
    """A number as people read it: `12,345`, `−0.5`; `1.5e9` (of so many digits) when that is too long."""
    if value and not 1e-6 <= abs(value) < 1e7:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        short = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{short}e{int(exponent)}".replace("-", "−")
    text = f"{value:,.{decimals}f}"
    return (text.lstrip("-") if float(text.replace(",", "")) == 0 else text).replace("-", "−")


def percent(share: float | None, decimals: int = 1) -> str:
    """`99.0 %` for 0.99, a dash for what is not known; `over 99.9 %` where not all are. No space breaks."""
    if share is None or not math.isfinite(share):
        return MISSING
    text = rounded(share, decimals) if 0 < share < 1 else number(100 * share, decimals)
    return f"{text} %".replace(" ", "\u00a0")


def text_width(text: str, size: float) -> float:
    """About how wide a sans-serif text is, in pixels, a little on the safe side."""
    return size * sum(map(_width, text))


def _width(character: str) -> float:
    """Of a letter in DejaVu Sans, which is among the wide ones, in parts of the font's size."""
    if unicodedata.east_asian_width(character) in "WF" or character in WIDE:
        return 1.0
    if character in "iljtfrI.,:;'|!()[] ":
        return 0.36
    return 0.76 if character.isupper() else 0.64


def shortened(text: str, size: float, room: float) -> str:
    """The text, cut with an ellipsis so that it fits into `room` pixels; at least one character stays."""
    text = " ".join(text.split())
    if text_width(text, size) <= room:
        return text
    while len(text) > 1 and text_width(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"


def wrapped(text: str, size: float, room: float) -> list[str]:
    """The text in lines that fit into `room` pixels; a single word that is too long is cut."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(shortened(word, size, room))
    return lines
