"""The names that published arrays go by: pictures or vectors by their shape, with test and validation sets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelsieve.corrected.apply import apply_run
from labelsieve.data.pictures.opening import Opened, open_pictures
from labelsieve.data.pictures.recognise import recognise
from labelsieve.errors import ToolError
from labelsieve.issues.policy import Correction
from runs.made_runs import made_run

PICTURES = np.random.default_rng(0).integers(0, 256, (6, 8, 8), dtype=np.uint8)
VECTORS = np.random.default_rng(0).normal(size=(6, 4))
LABELS = np.array([0, 1, 2, 0, 1, 2])


def opened(folder: Path, arrays: dict[str, Any]) -> Opened:
    np.savez(folder / "set.npz", **arrays)
    return open_pictures(folder / "set.npz")


@pytest.mark.parametrize("values", ["images", "X", "x", "x_train", "X_train", "train_images", "features"])
@pytest.mark.parametrize("labels", ["labels", "y", "label", "y_train", "train_labels", "target"])
def test_pictures(values: str, labels: str, tmp_path: Path) -> None:
    found = opened(tmp_path, {values: PICTURES, labels: LABELS})
    assert found.layout.kind == "arrays" and np.array_equal(found.collection.train.images[:, 0].numpy(), PICTURES)
    assert found.collection.train.labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize("values", ["features", "X", "x", "embedding", "feature", "vectors", "x_train", "train_features"])
@pytest.mark.parametrize("labels", ["labels", "label", "y", "y_train"])
def test_vectors(values: str, labels: str, tmp_path: Path) -> None:
    found = opened(tmp_path, {values: VECTORS, labels: LABELS, "other": np.zeros(3)})
    assert found.layout.kind == "embeddings" and values in found.layout.why
    assert np.allclose(found.collection.train.images.numpy(), VECTORS)
    assert found.collection.train.labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize("values", [PICTURES, VECTORS])
def test_keras_and_its_columns_of_labels(values: Any, tmp_path: Path) -> None:
    held = {"x_test": values[:2], "y_test": LABELS[:2, None]}
    found = opened(tmp_path, {"x_train": values, "y_train": LABELS[:, None]} | held).collection
    assert found.train.labels.tolist() == LABELS.tolist()
    assert found.test is not None and found.test.labels.tolist() == [0, 1] and len(found.test.images) == 2


def medmnist(splits: tuple[str, ...]) -> dict[str, Any]:
    images = {f"{split}_images": PICTURES + number for number, split in enumerate(splits)}
    return images | {f"{split}_labels": np.roll(LABELS, number)[:, None] for number, split in enumerate(splits)}


def test_medmnist(tmp_path: Path) -> None:
    found = opened(tmp_path, medmnist(("train", "val", "test")))
    assert found.collection.train.labels.tolist() == LABELS.tolist()
    assert found.val is not None and found.val.labels.tolist() == np.roll(LABELS, 1).tolist()
    assert found.collection.test is not None and found.collection.test.labels.tolist() == np.roll(LABELS, 2).tolist()
    found = opened(tmp_path, medmnist(("train", "val")))
    assert found.val is not None and found.collection.test is found.val


def test_corrected_labels_keep_their_key_and_shape(tmp_path: Path) -> None:
    arrays = medmnist(("train", "test"))
    found = opened(tmp_path, arrays).collection.train
    source = f"arrays:{tmp_path / 'set.npz'}"
    made_run(tmp_path / "run", source, list(found.ids), [str(label) for label in LABELS], {"00000": "2"})
    told = {"00000": Correction("relabel", None), "00001": Correction("drop", None)}
    apply_run(tmp_path / "run", tmp_path / "new.npz", told)
    with np.load(tmp_path / "new.npz") as new:
        assert new["train_labels"].tolist() == [[2], [2], [0], [1], [2]]
        assert np.array_equal(new["train_images"], PICTURES[[0, 2, 3, 4, 5]])
        assert all(np.array_equal(new[key], arrays[key]) for key in ("test_images", "test_labels"))
    assert open_pictures(tmp_path / "new.npz").collection.train.labels.tolist() == [2, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"arr_0": VECTORS, "arr_1": LABELS}, r"keys, which are arr_0, arr_1\. Name pictures .* images.*vectors .* features"),
        ({"imags": PICTURES, "labels": LABELS}, r'imags \(did you mean "images"\?\), labels.*features'),
        ({"x_train": VECTORS, "train_images": PICTURES, "y": LABELS}, "x_train and train_images would both do"),
        ({"features": VECTORS, "lables": LABELS}, r'lables \(did you mean "labels"\?\)'),
        ({"x_train": VECTORS, "y_train": LABELS, "x_test": VECTORS}, "x_test and its labels go together.*test_labels, y_test"),
        ({"x_train": PICTURES, "y_train": LABELS, "y_test": LABELS}, "y_test and its samples go together"),
    ],
)
def test_what_cannot_be_told_is_refused(arrays: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=says):
        opened(tmp_path, arrays)


def test_arrays_for_other_purposes_do_not_matter_beside_vectors(tmp_path: Path) -> None:
    others = {"x": VECTORS + 1, "label": LABELS[::-1], "val_features": VECTORS, "test_images": PICTURES}
    np.savez(tmp_path / "set.npz", X=VECTORS, labels=LABELS, **others)
    assert recognise(tmp_path / "set.npz").kind == "embeddings"
    found = open_pictures(tmp_path / "set.npz").collection
    assert np.allclose(found.train.images.numpy(), VECTORS) and found.train.labels.tolist() == LABELS.tolist()
    assert found.test is None
