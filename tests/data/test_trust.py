"""When an outcome should not be trusted is said, and only then."""

import pytest

from labelsieve.data.doubts import doubts


def said(counts: dict[str, int]) -> str:
    return " | ".join(doubts(counts))


def test_plenty_of_everything_raises_no_doubt() -> None:
    assert said({"a": 500, "b": 600}) == ""
    assert said({str(k): 20 for k in range(1000)}) == ""
    assert said({"-1": 500, "+1": 600}) == ""  # signs of two classes: neither formulas nor gaps
    assert said({"-3": 500, "+2": 600, "-": 600, "-2e3": 600}) == ""  # numbers are no formulas


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ({"a": 600}, "fewer than two classes"),
        ({}, "fewer than two classes"),
        ({"a": 250, "b": 249}, "499 samples are few"),
        ({"a": 600, "b": 19}, 'fewer than 20 samples ("b": 19)'),
        ({"a": 2000, "b": 100}, "20 times the smallest"),
        ({"a": 2000, "b": 0}, "fewer than two classes"),
        ({"a": 600, "b": 600, "NaN": 1200}, '1,200 samples have the label "NaN", which often means that there is none'),
        ({"a": 600, "N/A": 21, "b": 300}, "--set pictures.skip_unlabelled=true"),
        ({"a": 600, "None": 1}, '1 sample has the label "None"'),
        ({"a": 600, "b": 19}, "1 class has fewer"),
        ({"Dog": 300, "dog": 300}, '"Dog" and "dog" may be meant as one'),
        ({"7": 300, "7.0": 300}, '"7" and "7.0" may be meant as one'),
        ({"zebra": 300, "horse": 300, "hosre": 2}, '"hosre" and "horse" may be meant as one'),
        ({"=cmd|x": 300, "@b": 300, "-1": 300}, 'the class "=cmd|x" (and 1 more) looks like a formula'),
        ({"caf\u00e9": 300, "cafe\u0301": 300}, "may be meant as one (they differ only in how Unicode stores"),
        ({"-1": 300, "0": 300, "2": 300}, 'the label "-1", which often means that there is none'),
        ({f"{k / 7:.3f}": 1 for k in range(100)} | {"5.0": 20}, "101 classes for 120 samples: are these labels?"),
        ({str(k): 5 for k in range(1000)}, "all 1000 classes have fewer than 20"),
    ],
)
def test_each_doubt(counts: dict[str, int], word: str) -> None:
    assert word in said(counts)


def test_classes_without_samples_raise_no_doubt() -> None:
    assert said({"boot": 0, "bag": 300, "shoe": 300, "boots": 0}) == ""


def test_names_stay_on_one_line() -> None:
    assert "\n" not in said({"two\nlines": 1, "b": 600})


def test_minus_one_against_one_is_a_pair_of_classes() -> None:
    assert said({"-1": 300, "1": 300}) == "" == said({"-1": 300, "0": 300, "1": 300})


def test_names_of_their_own_are_not_called_misspelt() -> None:
    assert "meant as one" not in said({"7": 300, "77": 300, "a7": 2, "cat": 300, "cart": 200, "7.5": 300})
    assert "meant as one" not in said({"zebra": 300, "horse": 59, "hosre": 3})  # not so rare beside it
    assert '"hosre" and "horse" may be' in said({"zebra": 300, "horse": 60, "hosre": 3})
