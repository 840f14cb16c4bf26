"""Puts sections into one HTML document: style inside, no script, no address, nothing to load."""

import base64
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from PIL import Image

from labelsieve.errors import UsageError
from labelsieve.report.canvas import NARROW, WIDE
from labelsieve.report.markup import MISSING, element, escape, number
from labelsieve.report.style import STYLE
from labelsieve.version import __version__

# Pictures of at most so many pixels a side are shown with crisp pixels, larger ones smoothly.
TINY = 48


def thumbnail(image: np.ndarray, at_most: int = 192) -> str:
    """A `data:` address: grey for one channel, colour for three; else the first three, or the first.

    Pixels of tiny pictures are kept as they are, and the page enlarges them. Others are scaled down where a side is longer
    than `at_most`, and stored as PNG or JPEG, whichever is smaller.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or 0 in image.shape:
        raise UsageError(f"a picture is uint8 (C, H, W) and not empty; this one is {image.dtype} {image.shape}")
    pixels = image[:3].transpose(1, 2, 0) if len(image) >= 3 else image[0]
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    if max(picture.size) > at_most:
        picture.thumbnail((at_most, at_most), Image.Resampling.LANCZOS)
    kinds = ("png",) if max(image.shape[1:]) <= TINY else ("png", "jpeg")
    kind, content = min(((kind, _encoded(picture, kind)) for kind in kinds), key=lambda found: len(found[1]))
    return f"data:image/{kind};base64," + base64.b64encode(content).decode("ascii")


def _encoded(picture: Image.Image, kind: str) -> bytes:
    buffer = BytesIO()
    picture.save(buffer, format=kind, optimize=True, **({"quality": 85} if kind == "jpeg" else {}))
    return buffer.getvalue()


def picture(image: np.ndarray, words: str) -> str:
    """The `<img>`, with words for those who do not see it."""
    height, width = image.shape[1:]
    klass = "picture tiny" if max(height, width) <= TINY else "picture"
    size = f'width="{width}" height="{height}"'
    return f'<img class="{klass}" src="{thumbnail(image)}" alt="{escape(words)}" {size}>'


# The browser itself then refuses to load anything, whatever a name or a label holds.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True)
class Section:
    """A heading (plain text) and what stands below it (markup)."""

    heading: str
    body: str


@dataclass(frozen=True, eq=False)
class Suspect:
    """A picture (C, H, W) whose given label is doubted; a low score, in [0, 1], is a strong doubt.

    `wrong` is known only where the true label is: True where the given label really is wrong.
    """

    image: np.ndarray
    id: str
    given: str
    suggested: str
    score: float
    wrong: bool | None


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The whole document; `title` and `lead` are plain text."""
    head = (
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"{element('title', escape(title))}\n<style>\n{STYLE}\n</style>\n"
    )
    opening = element("header", element("h1", escape(title)), paragraph(lead, "lead") if lead else "")
    body = "\n".join(element("section", element("h2", escape(s.heading)), "\n", s.body) for s in sections)
    closing = element("footer", f"Written by labelsieve {escape(__version__)}. This page loads nothing from the network.")
    main = element("main", "\n", opening, "\n", body, "\n", closing, "\n", klass="sheet")
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n{main}\n</body>\n</html>\n'


def paragraph(words: str, klass: str | None = None) -> str:
    return element("p", escape(words), klass=klass)


def steps(items: Sequence[str]) -> str:
    """A numbered list of plain texts."""
    return element("ol", *(element("li", escape(item)) for item in items))


def commands(lines: Sequence[str]) -> str:
    """Lines to type, as they are."""
    return element("pre", escape("\n".join(lines)))


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """The few figures to remember, large: (figure, what it is)."""
    boxes = (element("div", element("dt", escape(words)), element("dd", escape(big))) for big, words in pairs)
    return element("dl", *boxes, klass="facts")


def figure(draw: Callable[[float], str], caption: str = "") -> str:
    """A chart drawn for a desk and for a phone (the style sheet shows one of them), with words below."""
    words = element("figcaption", escape(caption)) if caption else ""
    return element("figure", "\n", draw(WIDE), "\n", draw(NARROW), "\n", words)


def scrolled(drawn: str, name: str, caption: str = "") -> str:
    """A drawing that may be wider than the screen, to be moved by finger, wheel or arrow keys; on paper it shrinks to fit."""
    words = element("figcaption", escape(caption)) if caption else ""
    return element("figure", "\n", element("div", drawn, klass="scroll", tabindex=0, role="region", aria_label=name), "\n", words)


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str | None]],
    *,
    caption: str = "",
    words: Collection[int] = (0,),
    strong: Collection[int] = (),
) -> str:
    """A table of plain texts; the first column names the row. None is shown as a dash.

    `words` are the columns of text, set to the left (numbers go to the right); `strong` are rows to set in
    bold. On a narrow screen rows of more than three cells become blocks.
    """
    titles = [element("th", escape(name), scope="col", klass=_side(i, words)) for i, name in enumerate(header)]
    lines = [_row(header, row, words, "strong" if number in strong else None) for number, row in enumerate(rows)]
    return element(
        "table",
        element("caption", escape(caption)) if caption else "",
        element("thead", element("tr", *titles)),
        "\n",
        element("tbody", "\n".join(lines)),
        klass="stack" if len(header) > 3 else None,
    )


def _row(header: Sequence[str], row: Sequence[str | None], words: Collection[int], klass: str | None) -> str:
    texts = [escape(MISSING if cell is None else cell) for cell in row]
    first = [element("th", text, scope="row", data_label=header[0] or None) for text in texts[:1]]
    cells = [
        element("td", element("span", text), klass=_side(index, words), data_label=header[index])
        for index, text in enumerate(texts[1:], start=1)
    ]
    return element("tr", *first, *cells, klass=klass)


def _side(column: int, words: Collection[int]) -> str | None:
    return "words" if column in words else None


def gallery(suspects: Sequence[Suspect]) -> str:
    """A card for each suspect: picture, given and suggested label, score and, where known, who was right."""
    if not suspects:
        return paragraph("No picture to show.", "note")
    return element("ul", *("\n" + _card(suspect) for suspect in suspects), "\n", klass="gallery")


def _card(suspect: Suspect) -> str:
    seen = picture(suspect.image, f"Picture {suspect.id}, given label {suspect.given}")
    lines = (
        ("given", suspect.given, None),
        ("suggested", suspect.suggested, "suggested"),
        ("score", score(suspect), None),
    )
    pairs = (element("div", element("dt", key), element("dd", escape(value), klass=klass)) for key, value, klass in lines)
    return element("li", seen, element("dl", *pairs), _verdict(suspect.wrong), paragraph(suspect.id, "id"))


@dataclass(frozen=True, eq=False)
class Odd:
    """A sample that is odd itself: one picture (C, H, W), or of a near copy both, and below each its id and label."""

    images: Sequence[np.ndarray]
    names: Sequence[tuple[str, str]]  # (id, label)


def odd_gallery(found: Sequence[Odd]) -> str:
    """A card for each; two pictures side by side where one copies the other."""
    cards = []
    for one in found:
        shots = [
            element("div", picture(image, f"Picture {name}, {label}"), paragraph(label), paragraph(name, "id"))
            for image, (name, label) in zip(one.images, one.names)
        ]
        cards.append(element("li", element("div", *shots, klass="pair") if len(shots) > 1 else shots[0]))
    wide = any(len(one.images) > 1 for one in found)
    return element("ul", *cards, klass="gallery wide" if wide else "gallery")


def score(suspect: Suspect) -> str:
    """Three decimals; a score that would be rounded to nothing says so."""
    if not np.isfinite(suspect.score):
        return MISSING
    return "<\u00a00.001" if 0 < suspect.score < 0.0005 else number(suspect.score, 3)


def _verdict(wrong: bool | None) -> str:
    if wrong is None:
        return ""
    return paragraph("✓ was wrong", "verdict") if wrong else paragraph("✗ was right", "verdict miss")
