"""Odd samples and the map in the report: valid markup, every name escaped, small however many samples there are."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from labelsieve.issues.rules import SAMPLE_ISSUES
from labelsieve.report.maps import DOTS, HUES, KEYS, dot_map, tone
from labelsieve.report.page import Odd, odd_gallery


def as_tree(markup: str) -> ElementTree.Element:
    return ElementTree.fromstring(re.sub(r"(<img [^>]*)>", r"\1/>", markup))


def drawn(count: int, classes: int, seed: int = 0) -> str:
    rng = np.random.default_rng(seed)
    names = [f"<b>{k}</b>" for k in range(classes)]
    given = np.arange(count) % classes
    return dot_map(rng.random((count, 2)), given, rng.random(count) < 0.05, rng.random(count) < 0.02, names, "The <map>")


@pytest.mark.parametrize(("count", "classes"), [(1, 2), (300, 2), (500, 100)])
def test_the_map_is_one_drawing_and_a_legend(count: int, classes: int) -> None:
    found = ElementTree.fromstring(f"<div>{drawn(count, classes)}</div>")
    assert len(found.findall(".//svg")) == 1
    named = [item.text or "".join(item.itertext()) for item in found.iter("li")]
    present = min(count, classes)
    assert len(named) == min(present, KEYS) + (present > KEYS)
    assert "".join(found.findall(".//li")[0].itertext()) == "<b>0</b>"


def test_each_sample_has_a_dot_and_each_issue_a_ring() -> None:
    at = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]])
    issue, odd = np.array([0, 1, 0, 0, 0], bool), np.array([0, 0, 1, 0, 0], bool)
    found = ElementTree.fromstring(f"<div>{dot_map(at, np.array([0, 0, 1, 1, 0]), issue, odd, ['a', 'b'], 'map')}</div>")
    paths = found.findall(".//path")
    assert sum(path.get("d", "").count("M") for path in paths) == 5 + 2  # two of them with an edge below
    assert [path.get("stroke-linecap") for path in paths if path.get("class") == "edge"] == ["round", "square"]
    places = {part for path in paths for part in path.get("d", "").strip("M").split("M")}
    assert places == {"16,16h0", "984,16h0", "16,984h0", "984,984h0", "500,500h0"}


def test_fifty_thousand_samples_stay_small() -> None:
    found = drawn(50_000, 10)
    assert len(found) < 400_000 and found.count("h0") < DOTS + 10_000


def test_colours_of_a_few_classes_differ() -> None:
    for classes in (2, len(HUES), 30):
        assert len({tone(k, classes) for k in range(classes)}) == classes


def test_both_pictures_of_a_copy_stand_side_by_side() -> None:
    image = np.zeros((3, 8, 8), np.uint8)
    one, two = Odd([image], [("x<y", "cat & dog")]), Odd([image, image], [("a", "cat"), ("test:b", "test set")])
    found = as_tree(odd_gallery([one, two]))
    assert found.get("class") == "gallery wide" and len(found.findall("li")) == 2
    assert len(found.findall("li")[1].findall(".//img")) == 2 and "".join(found.findall("li")[0].itertext()) == "cat & dogx<y"
    assert as_tree(odd_gallery([one])).get("class") == "gallery"


def test_every_kind_is_explained() -> None:
    assert all(meaning for meaning in SAMPLE_ISSUES.values())
