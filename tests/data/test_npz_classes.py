"""Classes that an .npz names and has no sample of are left out, as those of folders are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelsieve.data.arrays import read_arrays
from labelsieve.data.embeddings import read_embeddings
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.errors import ToolError

NAMES = ["ant", "bee", "cat", "dog"]
LABELS = [0, 2, 0, 2, 3, 3]


@pytest.mark.parametrize(
    ("key", "read"), [("images", read_arrays), ("features", lambda path: read_embeddings(path, PictureOptions()))]
)
def test_they_are_left_out_and_told(tmp_path: Path, key: str, read: Any) -> None:
    values = np.random.default_rng(0).random((6, 8, 8) if key == "images" else (6, 8)).astype(np.float32)
    more = {f"test_{key}": values[:3], "test_labels": [1, 2, 3]}
    np.savez(tmp_path / "x.npz", **{key: values}, labels=LABELS, classes=NAMES, true_labels=[0, 2, 0, 2, 3, 0], **more)
    found = read(tmp_path / "x.npz")
    data, test, truth = found.collection.train, found.collection.test, found.collection.truth
    assert data.classes == ("ant", "cat", "dog") and data.labels.tolist() == [0, 1, 0, 1, 2, 2]
    assert test is not None and test.labels.tolist() == [1, 2] and len(test.images) == 2
    assert truth is not None and truth.labels.tolist() == [0, 1, 0, 1, 2, 0]
    assert any('no training picture for "bee": left out' in note for note in found.notes)
    assert any("1 test picture is of a class without" in note for note in found.notes)


def test_one_class_is_too_few(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", images=np.zeros((6, 8, 8), np.uint8), labels=[1] * 6, classes=NAMES)
    with pytest.raises(ToolError, match="fewer than two classes"):
        read_arrays(tmp_path / "x.npz")


def test_labels_that_number_no_class_are_still_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", images=np.zeros((6, 8, 8), np.uint8), labels=[0, 1, 0, 1, 4, 0], classes=NAMES)
    with pytest.raises(ToolError, match="row 4 has label 4"):
        read_arrays(tmp_path / "x.npz")
