"""The same picture in another format, quality or size is recognised; pictures that are only alike are not."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from labelsieve.data.inspection import inspection
from labelsieve.data.pictures.looks import NEIGHBOURS, as_text, look, near_copies, of_arrays, of_texts, thumbs


def photo(seed: int, side: int = 96) -> Image.Image:
    """Smooth in most places, as photographs are, with some grain."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (6, 6, 3)).astype(np.uint8)).resize((side, side), Image.Resampling.BICUBIC)
    return Image.fromarray(np.clip(np.asarray(coarse) + rng.normal(0, 6, (side, side, 3)), 0, 255).astype(np.uint8))


def encoded(picture: Image.Image, form: str, **told: int) -> bytes:
    stream = BytesIO()
    picture.save(stream, form, **told)  # type: ignore[arg-type]
    return stream.getvalue()


def rows(*pictures: Image.Image) -> np.ndarray:
    return thumbs(of_texts(as_text(look(picture)) for picture in pictures))


def test_copies_are_found_and_others_are_not() -> None:
    one, other = photo(0), photo(1)
    worse = Image.open(BytesIO(encoded(one, "JPEG", quality=50)))
    small = one.resize((41, 64), Image.Resampling.LANCZOS)
    assert near_copies(rows(one, other, worse, photo(2), small)) == [[0, 2, 4]]
    assert near_copies(rows(one, ImageOps.mirror(one), one.rotate(2), ImageOps.grayscale(one))) == []
    assert near_copies(rows()) == near_copies(rows(one)) == []


def test_blank_pages_are_no_copies() -> None:
    pages = [Image.fromarray(np.full((20, 20), 250 + k, np.uint8)) for k in range(3)]
    assert near_copies(rows(*pages)) == []


def test_many_copies_are_one_group() -> None:
    """More than the neighbours that are looked at, some of them with the same thumb."""
    grains = np.random.default_rng(0).integers(-1, 2, (5 * NEIGHBOURS, 192))
    base = np.random.default_rng(1).integers(5, 250, (2, 192))
    made = np.concatenate((base[:1] + grains, base[:1], base[:1], base[1:])).astype(np.uint8)
    assert near_copies(made) == [list(range(5 * NEIGHBOURS + 2))]


def test_near_along_the_main_axes_alone_is_not_near() -> None:
    """The first 12 values vary by far the most. In the others the last two rows are 1.4 and 1.6 away from the one before them."""
    made = np.full((402, 192), 128)
    made[:400, :12] = np.random.default_rng(0).integers(0, 256, (400, 12))
    made[400:, :12] = made[399, :12]
    made[400, 12:106] += 2  # 2 sqrt(94 / 192)
    made[401, 69:] += np.where(np.arange(123) % 2, 2, -2)  # 2 sqrt(123 / 192)
    assert near_copies(made.astype(np.uint8)) == [[399, 400]]


def test_arrays_have_the_thumbs_of_files() -> None:
    pictures = [photo(k, 32) for k in range(3)]
    stacked = np.stack([np.asarray(one).transpose(2, 0, 1) for one in pictures])
    assert np.abs(thumbs(of_arrays(stacked)).astype(int) - rows(*pictures)).max() <= 1  # Pillow rounds in between
    assert of_arrays(stacked[:, :1]).shape == of_arrays(stacked[:, :2]).shape == of_arrays(stacked).shape


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for label, name in enumerate(("cat", "dog")):
        (tmp_path / name).mkdir()
        for k in range(4):
            photo(10 * label + k).save(tmp_path / name / f"{k}.png")
    (tmp_path / "dog" / "exact.png").write_bytes((tmp_path / "cat" / "0.png").read_bytes())
    (tmp_path / "dog" / "again.jpg").write_bytes(encoded(photo(1), "JPEG", quality=75))
    turned = photo(2).transpose(Image.Transpose.ROTATE_90)  # stored lying on its side, with a note to turn it back
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(tmp_path / "dog" / "turned.jpg", exif=exif, quality=90)
    photo(3).resize((50, 50)).save(tmp_path / "cat" / "same label.webp")
    return tmp_path


def test_inspect_names_those_with_different_labels(folder: Path) -> None:
    found = inspection(folder)
    assert [group.ids for group in found.near_different] == [("cat/1.png", "dog/again.jpg"), ("cat/2.png", "dog/turned.jpg")]
    assert [group.ids for group in found.different_labels] == [("cat/0.png", "dog/exact.png")]
    text = "\n".join(found.lines())
    assert 'nearly the same, with different labels: 2 pictures\n  "cat/1.png" as "cat"; "dog/again.jpg" as "dog"\n' in text
    assert "warning: 2 pictures occur again, resized or saved in another format, with different labels" in text


def test_an_exact_copy_beside_a_near_one_is_named_once(folder: Path) -> None:
    (folder / "dog" / "more.jpg").write_bytes((folder / "dog" / "again.jpg").read_bytes())
    assert inspection(folder).near_different[0].ids == ("cat/1.png", "dog/again.jpg")


def test_a_copy_in_another_split_is_told(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for label, name in enumerate(("cat", "dog")):
            (tmp_path / split / name).mkdir(parents=True)
            for k in range(3):
                photo(100 * label + 10 * (split == "test") + k).save(tmp_path / split / name / f"{k}.png")
    (tmp_path / "test" / "cat" / "again.jpg").write_bytes(encoded(photo(1), "JPEG", quality=75))
    found = inspection(tmp_path)
    assert [group.ids for group in found.near_leaked] == [("train/cat/1.png", "test/cat/again.jpg")]
    text = "\n".join(found.lines())
    assert "nearly the same, in the training split and in another one: 1" in text
    assert "warning: 1 picture is in the training split and in another one, too" in text
