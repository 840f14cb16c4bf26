"""Escaping and numbers as people read them."""

import xml.etree.ElementTree as ET

import pytest

from labelsieve.report.markup import element, escape, number, percent, pixels, shortened, text_width, wrapped

HOSTILE = "<script>alert('x')</script> & \"quoted\" \x00\x0b\x7f\ud800\ufffe"


def test_hostile_text_stays_text_in_content_and_attribute() -> None:
    root = ET.fromstring(element("text", escape(HOSTILE), klass=HOSTILE))
    wanted = "<script>alert('x')</script> & \"quoted\" " + "\ufffd" * 5
    assert root.text == wanted and root.get("class") == wanted
    assert len(root) == 0
    ET.tostring(root).decode("utf-8")


def test_attributes_left_out_and_renamed() -> None:
    assert element("p", "x", klass="a", data_label="b", id=None) == '<p class="a" data-label="b">x</p>'
    assert element("rect", x=-0.04, y=2.0, width=1.26) == '<rect x="0" y="2" width="1.3"></rect>'


@pytest.mark.parametrize(
    ("value", "decimals", "wanted"),
    [
        (0.0, 0, "0"),
        (-0.004, 2, "0.00"),
        (-0.5, 1, "−0.5"),
        (12345, 0, "12,345"),
        (1.5e9, 0, "1.5e9"),
        (1e100, 0, "1e100"),
        (-2e-9, 3, "−2e−9"),
    ],
)
def test_number(value: float, decimals: int, wanted: str) -> None:
    assert number(value, decimals) == wanted


def test_percent() -> None:
    assert percent(0.9904) == "99.0\u00a0%"
    assert percent(0.4, 0) == "40\u00a0%"
    assert percent(None) == percent(float("nan")) == "–"


def test_pixels_have_one_decimal_and_no_negative_zero() -> None:
    assert [pixels(v) for v in (3.0, 3.14, -0.01, -2.16, 10.0, 100)] == ["3", "3.1", "0", "-2.2", "10", "100"]


def test_shortened_fits_and_keeps_what_fits() -> None:
    assert shortened("cat", 12, 100) == "cat"
    cut = shortened("a very long name of a class", 12, 60)
    assert cut.endswith("…") and text_width(cut, 12) <= 60
    assert shortened("cat", 12, 0) == "c…"


def test_wrapped_loses_no_word_and_no_line_sticks_out() -> None:
    words = "the quick brown fox jumps over the lazy dog"
    lines = wrapped(words, 12, 90)
    assert len(lines) > 1 and " ".join(lines) == words
    assert all(text_width(line, 12) <= 90 for line in lines)
    assert wrapped("", 12, 90) == []


def test_capitals_and_letters_of_other_alphabets_are_not_taken_for_narrow_ones() -> None:
    """Advances as DejaVu Sans has them: names by a smaller estimate ran out of the drawing."""
    for text, true in (("GOOGLE", 4.31), ("ADIPOSE", 4.41), ("n02119789", 5.72), ("шмель", 3.51), ("ЩУКА", 3.10), ("dog", 1.88)):
        assert true <= text_width(text, 1) < 1.25 * true, text
