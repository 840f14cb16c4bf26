"""Many strings in one block: what goes in comes out, and searching finds what is inside one text only."""

import unicodedata

import pytest

from labelsieve.review.table import Texts

NAMES = ["Cat_1", "", "ab", "ca", "naïve Ü", "tabby", "x" * 50]


def test_what_goes_in_comes_out() -> None:
    texts = Texts.of(NAMES)
    assert len(texts) == 7 and texts.tolist() == NAMES and texts[4] == "naïve Ü"
    assert Texts.of([]).tolist() == []


@pytest.mark.parametrize(
    ("asked", "found"),
    [("cat", [0]), ("CA", [0, 3]), ("ü", [4]), ("", list(range(7))), ("abca", []), ("bc", []), ("ab", [2, 5]), ("zebra", [])],
)
def test_search_ignores_capitals_and_never_crosses_from_one_text_to_the_next(asked: str, found: list[int]) -> None:
    assert Texts.of(NAMES).containing(asked).nonzero()[0].tolist() == found


@pytest.mark.parametrize("asked", ["고양이", "é"])
def test_search_finds_accents_and_syllables_in_either_form(asked: str) -> None:
    apart = unicodedata.normalize("NFD", asked)
    assert apart != asked
    assert Texts.of([f"a/{apart}.png", f"a/{asked}.png"]).containing(asked).all()
    assert Texts.of([f"a/{apart}.png", f"a/{asked}.png"]).containing(apart).all()


def test_a_hit_across_two_texts_does_not_hide_one_inside_the_second() -> None:
    assert Texts.of(["xa", "aab", "a"]).containing("aa").tolist() == [False, True, False]


def test_arrow_columns_of_several_pieces_with_nulls() -> None:
    arrow = pytest.importorskip("pyarrow")
    column = arrow.chunked_array([["a", None], ["ü", "bb"]], type=arrow.string())
    assert Texts.of_arrow(column).tolist() == ["a", "", "ü", "bb"]
    assert Texts.of_arrow(column.slice(1, 2)).tolist() == ["", "ü"]
    assert Texts.of_arrow(arrow.chunked_array([], type=arrow.string())).tolist() == []
