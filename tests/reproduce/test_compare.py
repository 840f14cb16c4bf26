"""Runs side by side: names that tell them apart, and a page whose tables fit it."""

import re
from pathlib import Path

import pytest

from labelsieve.reproduce.compare import compare_runs, short_names
from labelsieve.reproduce.compare_page import compare_page


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (("t3/runs/c-sym90+gmm-agn/seed0", "t3/runs/c-sym90+cpc-awr/seed0"), ["gmm-agn", "cpc-awr"]),
        (("t3/runs/c-sym90+cpc-awr/seed0", "t3/runs/c-sym90+cpc-awr/seed1"), ["seed0", "seed1"]),
        (("t3/runs/c-sym90+cpc-awr/seed0", "t3/runs/c-sym90+ce/seed1"), ["cpc-awr/seed0", "ce/seed1"]),
        (("c-sym50+cpc-awr", "c-sym90+cpc-awr"), ["c-sym50+cpc-awr", "c-sym90+cpc-awr"]),
        (("c-sym90", "c-sym90+tau0.6"), ["c-sym90", "c-sym90+tau0.6"]),
        (("a/run", "b/run"), ["a", "b"]),
    ],
)
def test_names_are_what_differs(paths: tuple[str, ...], names: list[str]) -> None:
    assert short_names([Path(path) for path in paths]) == names


def test_the_page_has_two_narrow_tables_of_numbers(swept: Path) -> None:
    runs = compare_runs([swept / "runs" / f"stripes+{name}" / "seed0" for name in ("gmm-agn", "cpc-awr")])
    text = compare_page(runs)
    headers = [re.findall(r"<th[^>]*>([^<]*)</th>", part) for part in re.findall(r"<thead>.*?</thead>", text, re.DOTALL)]
    assert headers[0] == ["run", "epochs", "last", "mean of last 10", "best", "95 % interval"]
    assert headers[1] == ["run", "against the first", "AUC"]
    assert "gmm-agn is what the others are held against" in text
