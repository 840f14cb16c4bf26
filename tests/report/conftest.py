"""Strict readers for what the report writes: HTML that must balance, SVG that must be XML."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

VOID = {"meta", "link", "img", "br", "hr", "input"}


class Balance(HTMLParser):
    """Fails at the first element that is closed wrongly or has an attribute twice; keeps what it saw."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"<{tag}> has an attribute twice"
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.words.append(data)


@pytest.fixture
def read_page() -> Callable[[str], Balance]:
    """Parses a page: it must balance, load nothing, run nothing, and hold only well-formed SVG."""

    def read(text: str) -> Balance:
        parser = Balance()
        parser.feed(text)
        parser.close()
        assert parser.open == []
        tags = {tag for tag, _ in parser.seen}
        assert not tags & {"script", "iframe", "object", "embed", "base", "form"}
        for tag, attributes in parser.seen:
            assert not [name for name in attributes if name.startswith("on")], f"<{tag}> would run something"
            for name in ("src", "href"):
                assert (attributes.get(name) or "data:").startswith("data:"), f"<{tag} {name}> loads something"
        assert "http://" not in text and "https://" not in text
        assert "url(" not in text and "@import" not in text
        for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
            ET.fromstring(drawing)
        return parser

    return read


@pytest.fixture
def read_chart() -> Callable[[str], ET.Element]:
    """Parses one SVG as XML; it must have an accessible name, and all of its numbers must be numbers."""

    def read(text: str) -> ET.Element:
        root = ET.fromstring(text)
        assert root.tag == "svg" and root.get("role") == "img"
        assert [child.tag for child in root][:2] == ["title", "desc"]
        assert root[0].text and root[1].text
        for part in root.iter():
            for name in ("x", "y", "x1", "x2", "y1", "y2", "width", "height", "d", "points", "cx", "cy"):
                assert not re.search("nan|inf", part.get(name) or "", re.IGNORECASE), f"{part.tag} {name}"
        return root

    return read
