"""Heat maps, read back as XML: numbers in cells, strength by count, the largest pairs of many classes."""

import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import pytest

from labelsieve.errors import UsageError
from labelsieve.report.maps import crowded_map, heat_map

Reader = Callable[[str], ET.Element]
NAMES = ["cat", "dog", "<frog> & 'co'"]
COUNTS = [[900, 12, 0], [6, 800, 1], [0, 3, 700]]


def cells(root: ET.Element) -> dict[str, ET.Element]:
    found = [part for part in root.iter("rect") if "cell" in (part.get("class") or "").split()]
    return {part[0].text or "": part for part in found}


def words(root: ET.Element) -> list[str]:
    return [part.text or "" for part in root.iter("text")]


def test_every_pair_has_a_cell_as_strong_as_its_count(read_chart: Reader) -> None:
    found = cells(read_chart(heat_map(COUNTS, NAMES, NAMES, title="Pairs")))
    assert len(found) == 9
    pairs = ("cat → dog: 12", "dog → cat: 6", "<frog> & 'co' → dog: 3", "dog → <frog> & 'co': 1")
    strengths = [float(found[pair].get("fill-opacity") or "nan") for pair in pairs]
    assert strengths[0] == 1 and strengths == sorted(strengths, reverse=True) and strengths[-1] > 0.1
    assert found["cat → <frog> & 'co': 0"].get("class") == "cell none"
    assert found["dog → dog: 800"].get("class") == "cell same", "kept labels do not drown the rest"


def test_cells_stand_in_the_row_of_the_given_and_the_column_of_the_suggested_label(
    read_chart: Reader,
) -> None:
    root = read_chart(heat_map(COUNTS, NAMES, NAMES, title="Pairs"))
    found = cells(root)
    row = next(p for p in root.iter("text") if p.text == "dog" and p.get("text-anchor") == "end")
    cell = found["dog → cat: 6"]
    top, side = float(cell.get("y") or "nan"), float(cell.get("height") or "nan")
    assert top < float(row.get("y") or "nan") < top + side
    assert float(cell.get("x") or "nan") < float(found["dog → dog: 800"].get("x") or "nan")


def test_numbers_stand_in_the_cells_when_there_is_room(read_chart: Reader) -> None:
    assert {"12", "6", "3", "1", "900"} <= set(words(read_chart(heat_map(COUNTS, NAMES, NAMES, title="Pairs"))))
    names = [str(k) for k in range(40)]
    counts = np.full((40, 40), 12345)
    crowded = read_chart(heat_map(counts, names, names, title="Pairs"))
    assert len(cells(crowded)) == 1600 and "12,345" not in words(crowded)


def test_a_thousand_classes_show_the_largest_pairs_and_count_the_rest(read_chart: Reader) -> None:
    counts = np.zeros((1000, 1000), dtype=int)
    np.fill_diagonal(counts, 500)
    for k in range(30):
        counts[k, k + 1] = 100 - k
    names = [f"class {k}" for k in range(1000)]
    text = heat_map(counts, names, names, title="Pairs")
    root = read_chart(text)
    bars = [part for part in root.iter("rect") if "bar" in (part.get("class") or "").split()]
    lengths = [float(bar.get("width") or "nan") for bar in bars]
    assert len(bars) == 20 and lengths == sorted(lengths, reverse=True)
    assert lengths[19] / lengths[0] == pytest.approx(81 / 100, abs=0.001)
    assert "class 0 → class 1" in words(root) and "class 20 → class 21" not in words(root)
    rest = sum(100 - k for k in range(20, 30))
    assert f"{rest} more in 10 other pairs." in words(root)
    assert len(text) < 20_000


@pytest.mark.parametrize(
    ("counts", "rows", "columns"),
    [
        ([], [], []),
        ([[5]], ["a"], ["a"]),
        ([[0, 0], [0, 0]], ["a", "b"], ["a", "b"]),
        ([[np.nan]], ["a"], ["b"]),
    ],
)
def test_nothing_to_show(read_chart: Reader, counts: list, rows: list[str], columns: list[str]) -> None:
    root = read_chart(heat_map(counts, rows, columns, title="Pairs"))
    assert "No pair of different labels was counted." in words(root)


@pytest.mark.parametrize("width", [340, 720])
def test_other_shapes_and_large_counts(read_chart: Reader, width: float) -> None:
    root = read_chart(heat_map([[1e12, 3, 0]], ["only"], ["a", "b", "a" * 300], title="Pairs", width=width))
    assert len(cells(root)) == 3
    for cell in cells(root).values():
        assert float(cell.get("x") or "nan") + float(cell.get("width") or "nan") <= width


def test_names_that_do_not_fit_the_counts_are_refused() -> None:
    with pytest.raises(UsageError, match=r"shape \(3, 3\), the names ask for \(2, 3\)"):
        heat_map(COUNTS, NAMES[:2], NAMES, title="Pairs")
    with pytest.raises(UsageError, match=r"shape \(3, 3\), the names ask for \(3, 2\)"):
        heat_map(COUNTS, NAMES, NAMES[:2], title="Pairs")


def many() -> np.ndarray:
    """One count for every pair of 100 classes, more for 400 and most for one."""
    counts = np.ones((100, 100), dtype=int)
    np.fill_diagonal(counts, 500)
    counts[:4, 1:] += 3 * (1 - np.eye(100, dtype=int)[:4, 1:])
    counts[7, 3] = 40
    return counts


def test_a_hundred_classes_are_cells_in_their_order_in_a_small_drawing(read_chart: Reader) -> None:
    names = [f"class {k}" for k in range(100)]
    text = crowded_map(many(), names, title="Pairs")
    root = read_chart(text)
    own = [part for part in root.iter("rect") if part.get("class") == "cell"]
    (strongest,) = [part for part in own if part[0].text == "class 7 → class 3: 40"]
    assert (strongest.get("x"), strongest.get("y"), strongest.get("fill-opacity")) == ("3", "7", "1.00")
    squares = sum((path.get("d") or "").count("z") for path in root.iter("path") if path.get("class") == "cell")
    assert squares + len(own) == 100 * 99 and len(own) == 400
    assert len(text) < 200_000 and "The strongest cell stands for 40." in " ".join(words(root))


def test_names_of_a_crowd_are_thinned_until_they_do_not_touch(read_chart: Reader) -> None:
    root = read_chart(crowded_map(many(), [f"class {k}" for k in range(100)], title="Pairs"))
    rows = sorted(float(part.get("y") or "nan") for part in root.iter("text") if part.get("text-anchor") == "end")
    assert len(rows) == 50 and np.diff(rows).min() >= 10
    assert "No pair" in words(read_chart(crowded_map(np.eye(60), [str(k) for k in range(60)], title="Pairs")))[-1]
