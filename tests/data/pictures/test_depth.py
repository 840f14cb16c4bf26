"""16-bit grey that uses fewer bits: what is white, what is said, and that all who read pictures agree."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from labelsieve.data.arrays import read_arrays
from labelsieve.data.inspection import inspection
from labelsieve.data.pictures.decode import WHITEST, about_white, common_white, counted, narrowing, white_for
from labelsieve.data.pictures.held import labelled_pictures
from labelsieve.data.pictures.opening import open_pictures
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.errors import ToolError, UsageError


def wide(root: Path, *tops: int) -> Path:
    """A grey picture of 16 bits for each of `tops`, its largest value, in two class folders by turns."""
    for row, top in enumerate(tops):
        pixels = np.linspace(0, top, 64).reshape(8, 8).astype(np.uint16)
        file = root / "ab"[row % 2] / f"{row}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(file)
    return root


def test_white_by_the_fewest_bits() -> None:
    assert [white_for(top) for top in (0, 255, 256, 4095, 4096, 65535, 70000)] == [255, 255, 1023, 4095, 16383, 65535, 65535]
    assert common_white(counted([3, 4000, 100])) == 4095 and common_white(()) == WHITEST
    assert np.array_equal(narrowing(WHITEST), np.rint(np.arange(65536) / 257).astype(np.uint8))
    assert narrowing(4095)[[0, 4095, 65535]].tolist() == [0, 255, 255]


def test_twelve_bits_are_scaled_and_told(tmp_path: Path) -> None:
    found = open_pictures(wide(tmp_path, 4095, 2000, 3000, 4000))
    assert found.collection.white == 4095 and found.collection.train.images.amax((1, 2, 3)).tolist() == [255, 187, 125, 249]
    assert any("4 pictures have 16 bits: 4,095 is white" in note for note in found.notes)
    assert found.notes == open_pictures(tmp_path).notes  # what was looked at is kept in the cache
    assert any("4,095 is white" in note for note in inspection(tmp_path).notes)


def test_all_bits_stay_as_they_were_and_dark_ones_are_told(tmp_path: Path) -> None:
    found = open_pictures(wide(tmp_path, 65535, 4095, 60000, 3000))
    assert found.collection.white == WHITEST and found.collection.train.images.amax((1, 2, 3)).tolist() == [255, 233, 16, 12]
    assert "2 of 4 pictures of 16 bits use less than 1/16 of the range and become nearly black" in found.notes[0]


def test_a_white_that_was_said_counts(tmp_path: Path) -> None:
    found = open_pictures(wide(tmp_path, 4095, 2000, 1000, 500), PictureOptions(white=1023))
    assert found.collection.train.images.amax((1, 2, 3)).tolist() == [255, 249, 255, 125]
    assert "2 of 4 pictures of 16 bits have values above 1,023" in found.notes[1]
    with pytest.raises(UsageError, match="must be between 1 and 65535"):
        PictureOptions(white=0)


def test_what_is_measured_on_is_read_like_the_training_pictures(tmp_path: Path) -> None:
    other = wide(tmp_path, 2000, 1000)
    held = labelled_pictures(other, PictureOptions(white=4095), (1, 8, 8), ("a", "b")).held
    assert held.images.amax((1, 2, 3)).tolist() == [125, 62]
    held = labelled_pictures(other, PictureOptions(), (1, 8, 8), ("a", "b")).held  # by a model of 16 bits, or of 8
    assert held.images.amax((1, 2, 3)).tolist() == [8, 4]


def test_eight_bit_pictures_say_nothing(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / name / "0.png")
    found = open_pictures(tmp_path)
    assert found.collection.white is None and found.notes == () and about_white((), WHITEST) == ()


@pytest.mark.parametrize("kind", [np.uint16, np.int16])
def test_arrays_of_sixteen_bits(tmp_path: Path, kind: type) -> None:
    images = np.zeros((4, 8, 8), kind)
    images[:, 0, 0] = [4095, 2000, 3000, 4000]
    file = tmp_path / "x.npz"
    np.savez(file, images=images, labels=[0, 1, 0, 1], test_images=images[:1] // 2, test_labels=[0])
    found = read_arrays(file)
    assert found.collection.train.images.amax((1, 2, 3)).tolist() == [255, 125, 187, 249] and found.collection.white == 4095
    assert found.collection.test is not None and int(found.collection.test.images.max()) == 127
    assert "5 pictures have 16 bits: 4,095 is white" in found.notes[0]
    assert int(read_arrays(file, white=WHITEST).collection.train.images.max()) == 16
    np.savez(file, images=images.astype(np.int64), labels=[0, 1, 0, 1])
    with pytest.raises(ToolError, match="the largest value is 4095"):
        read_arrays(file)
