"""The shaded area around a line: drawn where both edges are known, and inside the axes."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

from labelsieve.report.charts import Curve, line_chart

Reader = Callable[[str], ET.Element]
WORDS = {"title": "Yield", "x_label": "checked", "y_label": "wrong"}


def area(root: ET.Element) -> list[tuple[float, float]]:
    [path] = [part for part in root.iter() if "area" in (part.get("class") or "").split()]
    return [(float(x), float(y)) for x, y in re.findall(r"([-\d.]+),([-\d.]+)", path.get("d") or "")]


def test_it_lies_around_the_line_and_the_axis_makes_room(read_chart: Reader) -> None:
    root = read_chart(line_chart([Curve("a", [0, 1, 2], [0, 5, 8], between=([0, 4, 6], [0, 6, 19]))], **WORDS))
    points = area(root)
    assert len(points) == 6
    below, above = points[:3], points[:2:-1]
    assert [x for x, _ in below] == [x for x, _ in above] and all(low[1] >= high[1] for low, high in zip(below, above))
    lines = [float(part.get("y1") or 0) for part in root.iter() if part.get("class") == "grid"]
    assert min(lines) <= min(y for _, y in points) and max(y for _, y in points) <= max(lines)


def test_places_without_both_edges_are_passed_over(read_chart: Reader) -> None:
    between = ([0, None, 2, float("nan")], [1, 2, 3, 4])
    root = read_chart(line_chart([Curve("a", [0, 1, 2, 3], [1, 1, 1, 1], between=between)], **WORDS))
    assert len(area(root)) == 4


def test_no_area_without_edges(read_chart: Reader) -> None:
    assert 'class="area' not in line_chart([Curve("a", [0, 1], [0, 5])], **WORDS)
