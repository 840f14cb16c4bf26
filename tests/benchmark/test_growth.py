"""How a run grows with its pictures: what is said of made figures. The smallest real run is among the verbs."""

from pathlib import Path

import pytest

from labelsieve.benchmark.growth import Grown, Stage, draw, exponents

MADE = [
    Grown(n, 0.1, "cpu", {"even": Stage(n / 1e3, 1), "square": Stage(n**2 / 1e6, 1), "brief": Stage(1e-3, 1)})
    for n in (1000, 4000)
]


def test_a_stage_grows_by_a_power_of_the_samples_where_it_takes_long_enough_to_tell() -> None:
    assert exponents(MADE) == {"even": pytest.approx(1), "square": pytest.approx(2)} and exponents(MADE[:1]) == {}


def test_the_picture_names_every_stage_slowest_first_and_every_size(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(MADE, tmp_path / "grown.svg")
    drawn = (tmp_path / "grown.svg").read_text()
    places = [drawn.index(f"<!-- {words} -->") for words in ("even", "brief", "linear growth")]
    assert drawn.index("<!-- square -->") < places[0] and places == sorted(places)
    assert "<!-- 1,000 -->" in drawn and "<!-- 4,000 -->" in drawn
