"""Poor pictures are told by the others of their set, be they files, arrays or seen through a backbone."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageFilter

from data.pictures.test_near_copies import photo
from labelsieve.data.inspection import inspection
from labelsieve.data.pictures.looks import BLANK, BLURRED, BRIGHT, DARK, KINDS, LOOK, look, of_arrays, of_texts, poor, unknown
from labelsieve.issues.rules import SAMPLE_ISSUES


def blank(side: int = 96) -> Image.Image:
    return Image.fromarray(np.clip(np.random.default_rng(0).normal((200, 40, 90), 1.5, (side, side, 3)), 0, 255).astype(np.uint8))


def bright(picture: Image.Image) -> Image.Image:
    return Image.fromarray((255 - 0.12 * (255 - np.asarray(picture, float))).astype(np.uint8))


SPOILT = {
    BLANK: lambda picture: blank(),
    BLURRED: lambda picture: picture.filter(ImageFilter.GaussianBlur(4)),
    DARK: lambda picture: ImageEnhance.Brightness(picture).enhance(0.1),
    BRIGHT: bright,
}


def looks(pictures: list[Image.Image]) -> np.ndarray:
    return np.frombuffer(b"".join(map(look, pictures)), np.uint8).reshape(-1, LOOK)


@pytest.mark.parametrize("kind", KINDS)
def test_a_spoilt_picture_is_told_and_no_other(kind: str) -> None:
    pictures = [photo(seed) for seed in range(60)]
    pictures[7] = SPOILT[kind](pictures[7])
    assert np.flatnonzero(poor(looks(pictures)) != "").tolist() == [7] and poor(looks(pictures))[7] == kind


def test_arrays_are_judged_as_files_are() -> None:
    pictures = [photo(seed) for seed in range(40)]
    for place, kind in enumerate(KINDS):
        pictures[place] = SPOILT[kind](pictures[place])
    stacked = np.stack([np.asarray(one).transpose(2, 0, 1) for one in pictures])
    assert poor(of_arrays(stacked)).tolist() == [*KINDS, *[""] * 36]


def test_what_is_usual_in_a_set_is_no_issue() -> None:
    """X-rays are dark, and photos of one small camera are soft."""
    for kind in (DARK, BLURRED, BRIGHT, BLANK):
        assert set(poor(looks([SPOILT[kind](photo(seed)) for seed in range(40)])).tolist()) == {""}


def test_of_few_or_unknown_pictures_nothing_is_said() -> None:
    pictures = [blank(), *(photo(seed) for seed in range(20))]
    assert set(poor(looks(pictures)).tolist()) == {""}
    found = poor(np.concatenate((looks([blank(), *(photo(seed) for seed in range(40))]), unknown(3))))
    assert found.tolist() == [BLANK, *[""] * 43]


def test_tiny_arrays_are_never_blurred() -> None:
    made = np.random.default_rng(0).integers(0, 256, (50, 1, 8, 8)).astype(np.uint8)
    made[3] = 128
    assert poor(of_arrays(made)).tolist() == [BLANK if row == 3 else "" for row in range(50)]


def test_every_kind_has_a_meaning() -> None:
    assert set(KINDS) < set(SAMPLE_ISSUES)


def test_inspect_names_them_and_odd_shapes(tmp_path: Path) -> None:
    for label, name in enumerate(("cat", "dog")):
        (tmp_path / name).mkdir()
        for k in range(20):
            photo(100 * label + k).save(tmp_path / name / f"{k:02}.png")
    blank().save(tmp_path / "cat" / "lens cap.png")
    photo(7, 96).filter(ImageFilter.GaussianBlur(4)).save(tmp_path / "dog" / "shaken.jpg")
    photo(8, 96).resize((400, 90)).save(tmp_path / "dog" / "wide.png")
    photo(9, 96).resize((16, 16)).save(tmp_path / "cat" / "stamp.png")
    found = inspection(tmp_path)
    assert dict(found.poor) == {
        BLANK: ("cat/lens cap.png",),
        BLURRED: ("dog/shaken.jpg",),
        "odd shape": ("dog/wide.png",),
        "tiny": ("cat/stamp.png",),
    }
    assert 'blurred: 1 picture: "dog/shaken.jpg"' in found.lines() and found.as_dict()["poor"]["tiny"] == ("cat/stamp.png",)


def test_texts_give_looks_back() -> None:
    from labelsieve.data.pictures.looks import as_text

    assert np.array_equal(of_texts([as_text(look(photo(1)))]), looks([photo(1)]))
