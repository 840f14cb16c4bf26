"""Line charts, read back as XML: points where the axes say, gaps, names apart."""

import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import pytest

from labelsieve.errors import UsageError
from labelsieve.report.charts import Band, Curve, line_chart

Reader = Callable[[str], ET.Element]
WORDS = {"title": "Accuracy", "x_label": "epoch", "y_label": "percent"}
HOSTILE = "</text><script>alert(1)</script>&\"'"


def with_class(root: ET.Element, name: str) -> list[ET.Element]:
    return [part for part in root.iter() if name in (part.get("class") or "").split()]


def paths(root: ET.Element) -> list[list[list[tuple[float, float]]]]:
    """For each curve, its runs of points in pixels."""
    runs = []
    for line in with_class(root, "line"):
        parts = (line.get("d") or "").split("M")[1:]
        runs.append([[(float(x), float(y)) for x, y in re.findall(r"([-\d.]+),([-\d.]+)", p)] for p in parts])
    return runs


def axis(root: ET.Element, anchor: str, place: str) -> dict[float, float]:
    """Where the numbers of an axis stand: value -> pixel."""
    ticks = [t for t in with_class(root, "tick") if t.get("text-anchor") == anchor]
    return {float((t.text or "").replace("−", "-").replace(",", "")): float(t.get(place) or "nan") for t in ticks}


def test_points_stand_where_the_numbers_of_the_axes_say(read_chart: Reader) -> None:
    root = read_chart(line_chart([Curve("a", [0, 5, 10], [0, 25, 100])], **WORDS))
    up, across = axis(root, "end", "y"), axis(root, "middle", "x")
    baseline = 4  # numbers are set so far below the line they name
    [[points]] = paths(root)
    assert points[0] == pytest.approx((across[0], up[0] - baseline), abs=0.11)
    assert points[1] == pytest.approx(((across[0] + across[10]) / 2, up[0] + (up[100] - up[0]) / 4 - baseline), abs=0.11)
    assert points[2] == pytest.approx((across[10], up[100] - baseline), abs=0.11)


def test_grid_lines_stand_at_their_numbers(read_chart: Reader) -> None:
    root = read_chart(line_chart([Curve("a", [0, 1], [-3, 4])], **WORDS))
    numbers = axis(root, "end", "y")
    assert list(numbers) == [-4, -2, 0, 2, 4]
    lines = [float(line.get("y1") or "nan") for line in with_class(root, "grid")]
    assert lines == pytest.approx([y - 4 for y in numbers.values()], abs=0.11)


@pytest.mark.parametrize("missing", [None, float("nan"), float("inf"), -float("inf")])
def test_missing_values_make_gaps(read_chart: Reader, missing: float | None) -> None:
    root = read_chart(line_chart([Curve("a", range(7), [1, 2, missing, 4, missing, 6, 7])], **WORDS))
    [runs] = paths(root)
    assert [len(run) for run in runs] == [2, 2]
    alone = [m for m in with_class(root, "mark") if m.get("r") == "2.6"]
    assert len(alone) == 1, "the point between two gaps is drawn as a marker"


def test_names_stand_beside_the_ends_and_do_not_overlap(read_chart: Reader) -> None:
    curves = [Curve(f"run {k}", [0, 1], [k, 90 + 0.01 * k]) for k in range(9)]
    root = read_chart(line_chart(curves, **WORDS))
    labels = with_class(root, "end")
    places = [float(label.get("y") or "nan") for label in labels]
    assert [label.text for label in labels] == [curve.name for curve in curves]
    assert places == sorted(places, reverse=True), "higher lines have higher names"
    assert min(a - b for a, b in itertools.pairwise(places)) >= 14.8
    assert len(with_class(root, "leader")) >= 7, "a name that was moved is joined to its line"


def test_forty_curves_make_the_chart_taller(read_chart: Reader) -> None:
    root = read_chart(line_chart([Curve(f"c{k}", [0, 1], [1, 1]) for k in range(40)], **WORDS))
    places = sorted(float(label.get("y") or "nan") for label in with_class(root, "end"))
    assert min(b - a for a, b in itertools.pairwise(places)) >= 14.8
    assert places[0] > 0 and places[-1] < float(root.get("height") or 0)


def test_a_name_that_was_cut_is_in_the_legend(read_chart: Reader) -> None:
    name = "a name that is far too long to stand beside the end of a line on any screen"
    narrow = read_chart(line_chart([Curve(name, [0, 1], [1, 2])], width=600, **WORDS))
    assert with_class(narrow, "end")[0].text != name
    assert [part.text for part in with_class(narrow, "label") if part.text == name] == [name]
    short = read_chart(line_chart([Curve("short", [0, 1], [1, 2])], width=600, **WORDS))
    assert [part.text for part in with_class(short, "label")] == ["short"]


def test_series_differ_in_colour_dash_and_marker(read_chart: Reader) -> None:
    root = read_chart(line_chart([Curve(f"c{k}", [0, 1], [k, k]) for k in range(6)], **WORDS))
    lines = with_class(root, "line")
    assert len({line.get("class") for line in lines}) == len({line.get("stroke-dasharray") for line in lines}) == 6
    given = read_chart(line_chart([Curve("c", [0, 1], [0, 1], series=3)], **WORDS))
    assert with_class(given, "line")[0].get("stroke-dasharray") == lines[3].get("stroke-dasharray")


def test_bands_are_cut_to_the_axis(read_chart: Reader) -> None:
    bands = [Band(0, 5, "warm-up"), Band(20, 30, "never"), Band(8, 99, "late")]
    root = read_chart(line_chart([Curve("a", range(1, 11), range(10))], bands=bands, **WORDS))
    across = axis(root, "middle", "x")
    [early, late] = with_class(root, "band")
    start, width = float(early.get("x") or "nan"), float(early.get("width") or "nan")
    pixel = (across[10] - across[2]) / 8
    assert start == pytest.approx(across[2] - pixel, abs=0.2) and width == pytest.approx(4 * pixel, abs=0.3)
    assert float(late.get("x") or "nan") + float(late.get("width") or "nan") == pytest.approx(across[10], abs=0.2)
    words = [part.text for part in root.iter("text")]
    assert "warm-up" in words and "late" in words and "never" not in words


@pytest.mark.parametrize("curves", [[], [Curve("a", [], [])], [Curve("a", [1, 2], [None, float("nan")])]])
def test_no_values(read_chart: Reader, curves: list[Curve]) -> None:
    root = read_chart(line_chart(curves, **WORDS))
    assert "No values to draw." in [part.text for part in root.iter("text")]


def test_a_curve_without_values_beside_one_with_is_named(read_chart: Reader) -> None:
    root = read_chart(line_chart([Curve("a", [1, 2], [1, 2]), Curve("b", [1], [None])], **WORDS))
    assert "Without values: b" in [part.text for part in root.iter("text")]


@pytest.mark.parametrize("y", [[7.0], [5, 5, 5], [1e-12, 2e-12], [1e38, -1e38], [1e300, -1e300], [1, 1 + 1e-15]])
@pytest.mark.parametrize("width", [340, 720])
def test_odd_values_stay_inside_the_drawing(read_chart: Reader, y: list[float], width: float) -> None:
    root = read_chart(line_chart([Curve("a", range(len(y)), y)], width=width, **WORDS))
    height = float(root.get("height") or "nan")
    points = [point for curve in paths(root) for run in curve for point in run]
    points += [(float(m.get("cx") or "nan"), float(m.get("cy") or "nan")) for m in root.iter("circle")]
    assert points and all(0 <= x <= width and 0 <= y <= height for x, y in points)


def test_450_epochs_as_arrays(read_chart: Reader) -> None:
    values = np.linspace(10, 95, 450, dtype=np.float32)
    text = line_chart([Curve("a", np.arange(450), values)], **WORDS)
    [[points]] = paths(read_chart(text))
    assert len(points) == 450 and len(text) < 12_000


def test_hostile_names_stay_text(read_chart: Reader) -> None:
    bands = [Band(0, 1, HOSTILE)]
    text = line_chart([Curve(HOSTILE, [0, 1], [0, 1])], title=HOSTILE, x_label=HOSTILE, y_label=HOSTILE, bands=bands)
    root = read_chart(text)
    assert "<script" not in text and root[0].text == HOSTILE and HOSTILE in (root[1].text or "")


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(UsageError, match='curve "a": 2 x values and 1 y values'):
        line_chart([Curve("a", [1, 2], [1])], **WORDS)
