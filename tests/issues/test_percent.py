"""Percentages for eyes: rounding makes neither all of nearly all nor none of a few."""

import pytest

from labelsieve.issues.estimate import Share, in_words
from labelsieve.report.markup import percent
from labelsieve.texts import ends, rounded


@pytest.mark.parametrize(
    ("share", "decimals", "text"),
    [
        (0.0, 1, "0.0"),
        (-0.0, 1, "0.0"),
        (1e-6, 1, "under 0.1"),
        (0.0006, 1, "0.1"),
        (0.1234, 1, "12.3"),
        (0.9994, 1, "99.9"),
        (0.9996, 1, "over 99.9"),
        (1.0, 1, "100.0"),
        (0.004, 0, "under 1"),
        (0.996, 0, "over 99"),
    ],
)
def test_only_none_is_none_and_only_all_is_all(share: float, decimals: int, text: str) -> None:
    assert rounded(share, decimals) == text
    assert percent(share, decimals) == f"{text} %".replace(" ", "\u00a0")


def test_intervals_are_rounded_outwards_at_both_ends() -> None:
    assert ends(0, 0) == ("0.0", "0.0") and ends(1, 1) == ("100.0", "100.0")
    assert ends(0, 1e-4) == ("0.0", "0.1") and ends(0.9999, 1) == ("99.9", "100.0")
    assert ends(0.123, 0.456) == ("12.3", "45.6")


def test_three_wrong_labels_in_a_million_are_some() -> None:
    assert in_words(Share(3e-6, 0, 9e-6)) == ("under 0.1 %", "0.0 to 0.1 %")
    assert in_words(Share(0.2, 0.19, 0.21)) == ("about 20.0 %", "19.0 to 21.0 %")
    assert in_words(Share(0.2, 0.1, 0.3)) == ("between 10.0 and 30.0 %", "point estimate 20.0 %")
