"""The page: balanced, alone in the world, readable."""

import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from labelsieve.report import maps, style
from labelsieve.report.page import Section, Suspect, facts, figure, gallery, page, paragraph, steps, table

HOSTILE = "<script>alert(1)</script> & \"'</td>"
PICTURE = np.zeros((1, 8, 8), dtype=np.uint8)


def test_a_page_is_balanced_and_escapes_everything(read_page: Callable) -> None:
    suspect = Suspect(PICTURE, HOSTILE, HOSTILE, HOSTILE, 0.1, True)
    body = table([HOSTILE, HOSTILE], [[HOSTILE, HOSTILE]], caption=HOSTILE) + gallery([suspect]) + steps([HOSTILE])
    body += facts([(HOSTILE, HOSTILE)]) + paragraph(HOSTILE, "note") + figure(lambda width: "", HOSTILE)
    text = page(HOSTILE, HOSTILE, [Section(HOSTILE, body)])
    seen = read_page(text)
    assert text.startswith("<!DOCTYPE html>\n<html lang=")
    assert "<script" not in text
    # title, h1, lead, h2; caption, 2 headers, 2 cells; given, suggested, id; step; 2 facts; note; caption
    assert seen.words.count(HOSTILE) == 17
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in seen.seen


def test_the_browser_is_told_to_load_nothing(read_page: Callable) -> None:
    policies = [a["content"] for tag, a in read_page(page("t", "", [])).seen if tag == "meta" and "http-equiv" in a]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_an_empty_page(read_page: Callable) -> None:
    assert "lead" not in [a.get("class") for _, a in read_page(page("t", "", [])).seen]
    assert "No picture to show." in gallery([])


def test_tables_have_row_and_column_names_and_dashes(read_page: Callable) -> None:
    seen = read_page(table(["name", "value"], [["a", None], ["b", "2"]], strong=[1]))
    cells = [attributes.get("data-label") for tag, attributes in seen.seen if tag == "td"]
    assert cells == ["value", "value"] and "–" in seen.words
    assert [a.get("scope") for tag, a in seen.seen if tag == "th"] == ["col", "col", "row", "row"]
    assert [a.get("class") for tag, a in seen.seen if tag == "tr"] == [None, None, "strong"]


def test_only_wide_tables_come_apart_on_a_phone() -> None:
    assert 'class="stack"' in table(list("abcd"), [list("1234")])
    assert "stack" not in table(list("abc"), [list("123")])


@pytest.mark.parametrize(
    ("score", "wrong", "said"),
    [
        (0.25, True, ("0.250", "✓ was wrong")),
        (0.25, False, ("0.250", "✗ was right")),
        (1e-9, True, ("<\u00a00.001",)),
        (0.0, True, ("0.000",)),
        (float("nan"), True, ("–",)),
    ],
)
def test_cards(read_page: Callable, score: float, wrong: bool, said: tuple[str, ...]) -> None:
    seen = read_page(gallery([Suspect(PICTURE, "id7", "3", "8", score, wrong)]))
    assert set(said) | {"id7", "3", "8"} <= set(seen.words)


def test_a_card_without_truth_has_no_verdict() -> None:
    assert "verdict" not in gallery([Suspect(PICTURE, "id7", "3", "8", 0.5, None)])


def test_figures_are_drawn_for_two_widths() -> None:
    assert re.findall(r"drawn for (\d+)", figure(lambda width: f"drawn for {width:.0f}", "words")) == [
        "720",
        "340",
    ]


def luminance(colour: tuple[float, ...]) -> float:
    parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def colours(theme: str) -> dict[str, tuple[float, ...]]:
    found = re.findall(r"--(\w+): #(\w{6});", theme)
    return {name: tuple(int(value[i : i + 2], 16) for i in (0, 2, 4)) for name, value in found}


@pytest.mark.parametrize("theme", [style._LIGHT, style._DARK])
def test_every_text_colour_is_readable_on_every_ground(theme: str) -> None:
    tones = colours(theme)
    texts = ["ink", "muted", *(f"s{k}" for k in range(6))]
    assert min(contrast(tones[text], tones[ground]) for text in texts for ground in ("ground", "card", "wash")) >= 4.5


@pytest.mark.parametrize("theme", [style._LIGHT, style._DARK])
def test_numbers_in_cells_are_readable_at_every_strength(theme: str) -> None:
    tones = colours(theme)
    shares = np.linspace(0.001, 1, 300)
    strengths = [maps.strength(share) for share in shares]
    assert all(a < b for a, b in pairwise(strengths))
    for share, strength in zip(shares, strengths):
        mixed = tuple(strength * s + (1 - strength) * g for s, g in zip(tones["s0"], tones["ground"]))
        assert contrast(mixed, tones["ground" if share > 0.5 else "ink"]) >= 4.5


def test_the_report_starts_without_torch() -> None:
    code = "import sys, labelsieve.report.run; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_large_figure_is_on_one_line() -> None:
    """Hard spaces are not enough, for the page lets long words break: "2 to 32" had its percent sign below it."""
    (rule,) = re.findall(r"\.facts dd \{([^}]*)\}", style._PARTS)
    assert "white-space: nowrap" in rule
    (boxes,) = re.findall(r"\.facts div \{([^}]*)\}", style._PARTS)
    assert "flex: 1 1" in boxes  # a box grows with its figure; those of a grid have one width
