"""Histograms, read back as XML: every value is counted once, bars are as high as the axis says."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from labelsieve.report.charts import Group, histogram

Reader = Callable[[str], ET.Element]
WORDS = {"title": "Losses", "x_label": "loss"}


def bins(root: ET.Element) -> list[tuple[str, int, ET.Element]]:
    """(group, count, rectangle) of every bin that is not empty."""
    found = []
    for part in root.iter("rect"):
        if part.get("class") == "bin":
            said = re.fullmatch(r"(.*): ([\d,]+) from .* to .*", part[0].text or "")
            assert said
            found.append((said[1], int(said[2].replace(",", "")), part))
    return found


def words(root: ET.Element) -> list[str]:
    return [part.text or "" for part in root.iter("text")]


def test_counts_add_up_and_what_is_not_finite_is_said(read_chart: Reader) -> None:
    random = np.random.default_rng(0)
    right = np.r_[random.exponential(0.2, 1000), np.nan, np.inf]
    wrong = np.r_[random.normal(4, 1, 500), -np.inf]
    root = read_chart(histogram([Group("right", right), Group("wrong", wrong)], **WORDS))
    totals: Counter[str] = Counter()
    for name, count, _ in bins(root):
        totals[name] += count
    assert totals == {"right": 1000, "wrong": 500}
    assert {"right (1,000)", "wrong (500)", "3 values that are not finite left out."} <= set(words(root))


def axis(root: ET.Element, anchor: str, place: str) -> dict[float, float]:
    ticks = [t for t in root.iter("text") if t.get("class") == "tick" and t.get("text-anchor") == anchor]
    return {float((t.text or "").replace(",", "")): float(t.get(place) or "nan") for t in ticks}


def heights(root: ET.Element) -> list[float]:
    return [float(part.get("height") or "nan") for _, _, part in bins(root)]


def test_bars_are_as_wide_and_high_as_the_axes_say(read_chart: Reader) -> None:
    root = read_chart(histogram([Group("a", [0, 0, 0, 0, 1, 1, 3, 4])], bins=4, **WORDS))
    up, across = axis(root, "end", "y"), axis(root, "middle", "x")
    unit = up[0] - up[1]
    assert [count for _, count, _ in bins(root)] == [4, 2, 2]
    starts = [float(part.get("x") or "nan") for _, _, part in bins(root)]
    assert starts == pytest.approx([across[0], across[1], across[3]], abs=0.11)
    assert heights(root) == pytest.approx([4 * unit, 2 * unit, 2 * unit], abs=0.2)


def test_very_uneven_groups_get_a_root_scale_and_it_is_said(read_chart: Reader) -> None:
    uneven = [Group("many", [0.0] * 400), Group("few", [1.0] * 25)]
    root = read_chart(histogram(uneven, **WORDS))
    tall, small = heights(root)
    assert tall == pytest.approx(4 * small, abs=0.3), "16 times as many, 4 times as high"
    assert any("square-root scale" in text for text in words(root))
    up = axis(root, "end", "y")
    bottom, top = up[0], up[max(up)]
    for value, y in up.items():
        assert bottom - y == pytest.approx((bottom - top) * (value / max(up)) ** 0.5, abs=0.2)
    even = histogram([Group("many", [0.0] * 40), Group("few", [1.0] * 25)], **WORDS)
    assert "square-root" not in even


def test_the_axis_starts_at_zero_when_the_values_nearly_do(read_chart: Reader) -> None:
    root = read_chart(histogram([Group("a", [0.01, 2.0, 9.0])], **WORDS))
    assert 0 in axis(root, "middle", "x")


@pytest.mark.parametrize(
    ("values", "count"),
    [([2.0] * 9, 9), ([0.0], 1), ([1e-300, 1e299], 2), ([-1e38, 1e38], 2), ([1, 1 + 1e-15], 2)],
)
@pytest.mark.parametrize("width", [340, 720])
def test_odd_values(read_chart: Reader, values: list[float], count: int, width: float) -> None:
    root = read_chart(histogram([Group("a", values)], width=width, **WORDS))
    assert sum(n for _, n, _ in bins(root)) == count
    for _, _, part in bins(root):
        assert 0 <= float(part.get("x") or "nan") <= width and float(part.get("height") or "nan") > 0


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([], "No values to draw."),
        ([Group("a", [])], "No values to draw."),
        ([Group("a", [np.nan])], "No values to draw. 1 value that is not finite left out."),
    ],
)
def test_no_values(read_chart: Reader, groups: list[Group], said: str) -> None:
    assert said in words(read_chart(histogram(groups, **WORDS)))


def test_an_empty_group_beside_a_full_one(read_chart: Reader) -> None:
    root = read_chart(histogram([Group("full", [1, 2, 3]), Group("empty", [])], **WORDS))
    assert {"full (3)", "empty (0)"} <= set(words(root))


def test_hostile_names_stay_text(read_chart: Reader) -> None:
    name = "</title><script>&\"'"
    text = histogram([Group(name, [1, 2])], title=name, x_label=name)
    assert "<script" not in text
    assert {said for said, _, _ in bins(read_chart(text))} == {name}
