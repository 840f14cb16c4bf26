"""Anybody's .npz: every axis order and number type that is read, and every fault that is named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from labelsieve.data.noisy_data import Collection
from labelsieve.data.sources import open_data
from labelsieve.errors import ToolError

BYTES = np.random.default_rng(0).integers(0, 256, (6, 8, 9, 3), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def opened(folder: Path, **arrays: Any) -> Collection:
    np.savez(folder / "set.npz", **({"images": BYTES, "labels": LABELS} | arrays))
    return open_data(f"arrays:{folder / 'set.npz'}")


def test_the_least_there_can_be(tmp_path: Path) -> None:
    found = opened(tmp_path)
    assert found.name == "arrays" and found.truth is None and found.test is None and found.mirror
    assert found.train.classes == ("0", "1", "2") and found.train.ids[5] == "00005"
    assert np.array_equal(found.train.images.numpy(), BYTES.transpose(0, 3, 1, 2))
    assert found.train.labels.dtype == torch.int64 and found.train.labels.tolist() == LABELS.tolist()


def test_everything_there_can_be(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        labels=np.array(["dog", "cat", "cow", "dog", "cat", "cow"]),
        true_labels=np.array(["dog", "dog", "cow", "cat", "cat", "cow"]),
        classes=np.array(["dog", "cow", "cat"]),
        ids=np.array(["u", "v", "w", "x", "y", "z"]),
        test_images=BYTES[:2],
        test_labels=np.array([2, 0]),
        mirror=np.array(False),
    )
    assert found.train.classes == ("dog", "cow", "cat") and found.train.ids == tuple("uvwxyz")
    assert found.train.labels.tolist() == [0, 2, 1, 0, 2, 1]
    assert found.truth is not None and found.truth.labels.tolist() == [0, 0, 1, 2, 2, 1]
    assert found.test is not None and found.test.labels.tolist() == [2, 0]
    assert not found.mirror


@pytest.mark.parametrize("kind", ["U", "S"])
def test_text_labels_name_the_classes_in_order(kind: str, tmp_path: Path) -> None:
    found = opened(tmp_path, labels=np.array(["b", "a", "c", "b", "a", "c"]).astype(kind))
    assert found.train.classes == ("a", "b", "c") and found.train.labels.tolist() == [1, 0, 2, 1, 0, 2]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([" b", "a", "c ", "b", "a ", "c"], ("a", "b", "c")),
        (["9", "10", "2"] * 2, ("10", "2", "9")),
        (LABELS + 1, ("1", "2", "3")),
        (LABELS * 2, ("0", "2", "4")),
        (LABELS * 1.0, ("0", "1", "2")),
        (LABELS * 0.5, ("0", "0.5", "1")),
        (LABELS > 0, ("false", "true")),
        ([0, 1, 2, 0, 1, 10**12], ("0", "1", "2", "1000000000000")),
    ],
)
def test_labels_are_named_as_in_every_other_file(labels: Any, classes: tuple[str, ...], tmp_path: Path) -> None:
    found = opened(tmp_path, labels=np.array(labels), true_labels=np.array(labels), test_images=BYTES, test_labels=labels)
    assert found.train.classes == classes
    words = [str(value).strip().lower().removesuffix(".0") for value in np.array(labels).tolist()]
    assert [classes[code] for code in found.train.labels.tolist()] == words
    assert found.truth is not None and torch.equal(found.truth.labels, found.train.labels)
    assert found.test is not None and torch.equal(found.test.labels, found.train.labels)


def test_numbers_are_places_among_the_names_unless_they_can_only_be_names(tmp_path: Path) -> None:
    assert opened(tmp_path, classes=["1", "2", "0"]).train.labels.tolist() == LABELS.tolist()
    assert opened(tmp_path, labels=10 * LABELS, classes=["20", "10", "0"]).train.labels.tolist() == [2, 1, 0, 2, 1, 0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((6, 8, 9), (6, 1, 8, 9)),
        ((6, 8, 9, 1), (6, 1, 8, 9)),
        ((6, 8, 9, 3), (6, 3, 8, 9)),
        ((6, 8, 9, 4), (6, 4, 8, 9)),
        ((6, 1, 8, 9), (6, 1, 8, 9)),
        ((6, 3, 8, 9), (6, 3, 8, 9)),
        ((6, 3, 8, 4), (6, 4, 3, 8)),
    ],
)
def test_the_channel_axis(given: tuple[int, ...], expected: tuple[int, ...], tmp_path: Path) -> None:
    images = np.random.default_rng(1).integers(0, 256, given, dtype=np.uint8)
    found = opened(tmp_path, images=images).train.images
    assert found.shape == expected and found.is_contiguous()
    moved = images.transpose(0, 3, 1, 2) if len(given) == 4 and given != expected else images
    assert np.array_equal(found.numpy(), moved.reshape(expected))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_up_to_one_are_scaled(dtype: Any, tmp_path: Path) -> None:
    found = opened(tmp_path, images=(BYTES / 255).astype(dtype))
    assert np.array_equal(found.train.images.numpy(), BYTES.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint16])
def test_numbers_up_to_255_are_rounded(dtype: Any, tmp_path: Path) -> None:
    shift = 0.4 if dtype == np.float32 else 0
    images = np.minimum(BYTES.astype(dtype) + dtype(shift), 255)
    assert np.array_equal(opened(tmp_path, images=images).train.images.numpy(), BYTES.transpose(0, 3, 1, 2))


def test_a_dark_test_set_is_scaled_as_the_training_set_is(tmp_path: Path) -> None:
    dark = np.ones((1, 8, 9, 3), np.float32)
    found = opened(tmp_path, images=BYTES.astype(np.float32), test_images=dark, test_labels=[0])
    assert found.test is not None and int(found.test.images.max()) == 1


def with_value(value: float, row: int = 4) -> Any:
    images = BYTES / 255
    images[row, 1, 1, 1] = value
    return images


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "NaN": ({"images": with_value(np.nan)}, r'"images": row 4 has a value that is NaN .*\(1 such'),
    "infinite": ({"images": with_value(np.inf)}, "row 4 .* infinite"),
    "negative": ({"images": with_value(-0.5, 2)}, "row 2 has a negative value"),
    "too bright": ({"images": with_value(256.0)}, "largest value is 256"),
    "32 bit": ({"images": BYTES.astype(np.uint32) * 257}, "largest value is 65535"),
    "bool": ({"images": BYTES > 7}, "values are bool"),
    "complex": ({"images": BYTES * 1j}, "values are complex128"),
    "two axes": ({"images": BYTES.reshape(6, -1)}, r"shape is \(6, 216\)"),
    "no width": ({"images": BYTES[:, :, :0]}, r"\(6, 8, 0, 3\)"),
    "seven channels": ({"images": np.zeros((6, 8, 9, 7), np.uint8)}, "1, 3 or 4 channels neither"),
    "test NaN": ({"test_images": with_value(np.nan), "test_labels": LABELS}, '"test_images": row 4'),
    "no labels for the test": ({"test_images": BYTES}, "go together"),
    "other test size": ({"test_images": BYTES[:, :4], "test_labels": LABELS}, r"\(3, 4, 9\)"),
    "test label outside": ({"test_images": BYTES, "test_labels": LABELS + 1}, "test set: row 2 has label 3"),
    "fewer labels": ({"labels": LABELS[:5]}, "6 pictures, 5 labels"),
    "fewer pictures": ({"images": BYTES[:5]}, "5 pictures, 6 labels"),
    "nothing": ({"images": BYTES[:0], "labels": LABELS[:0]}, "no samples"),
    "negative label": ({"labels": LABELS - 1}, "run from -1 to 1"),
    "text without a label": ({"labels": ["a", " ", "b", "a", "", "b"]}, '"labels": 2 rows have no label, the first is row 2'),
    "NaN as a label": ({"labels": [0.0, 1.0, np.nan, 0.0, 1.0, 2.0]}, "1 rows have no label, the first is row 3"),
    "lists of labels": ({"labels": LABELS * 1j}, "the label is a complex"),
    "true label of no class": ({"labels": LABELS + 1, "true_labels": LABELS}, '"true_labels": row 1: label "0" is not one of'),
    "outside the names": (
        {"labels": LABELS + 1, "classes": ["a", "b", "c"]},
        r"row 2 has label 3, outside 0\.\.2",
    ),
    "one class": ({"labels": LABELS * 0}, "1 class"),
    "class of true labels only": (
        {"classes": ["a", "b", "c", "d"], "true_labels": [3, *LABELS[1:]]},
        'no sample has the label "d"',
    ),
    "names twice": ({"classes": ["a", "b", "a"]}, 'class name "a" occurs more than once'),
    "names as floats": ({"classes": [0.5, 1.0, 2.0]}, '"classes": it is float64'),
    "unknown word": (
        {"labels": ["cat", "dog", "catt", "dog", "cat", "dog"], "classes": ["cat", "dog"]},
        r'row 3: label "catt" is not one of 2 classes \(did you mean "cat"\?\)',
    ),
    "labels as a table": ({"labels": np.stack([LABELS, LABELS], 1)}, r"shape is \(6, 2\)"),
    "one-hot labels": ({"labels": np.eye(3)[LABELS]}, r"one-hot: store labels.argmax\(1\)"),
    "words as objects": ({"labels": LABELS.astype("U").astype(object)}, r"pandas of text.*\.astype\(str\)"),
    "bytes not UTF-8": ({"labels": np.array([b"\xff", b"a"] * 3)}, "not UTF-8"),
    "true label outside": ({"true_labels": LABELS + 1}, "true labels: row 2 has label 3"),
    "fewer true labels": ({"true_labels": LABELS[:4]}, "4 true labels for 6 rows"),
    "ids twice": ({"ids": ["a", "b", "c", "d", "e", "a"]}, 'id "a" occurs more than once'),
    "fewer ids": ({"ids": ["a"]}, "1 ids"),
    "mirror": ({"mirror": np.array([1, 0])}, "one true or false"),
    "mirror as text": ({"mirror": np.array("no")}, "one true or false"),
    "unknown key": ({"true_label": LABELS}, 'unknown key "true_label".*did you mean "true_labels"'),
}


def test_arrays_of_other_names_are_not_used(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.zeros((6, 8, 8), np.uint8), labels=LABELS, exposure=np.zeros(3))
    assert len(open_data(f"arrays:{tmp_path / 'a.npz'}").train) == 6


@pytest.mark.parametrize("what", BROKEN)
def test_a_faulty_array_is_refused_with_the_file_and_the_fault(what: str, tmp_path: Path) -> None:
    arrays, says = BROKEN[what]
    with pytest.raises(ToolError, match=says) as caught:
        opened(tmp_path, **arrays)
    assert str(tmp_path / "set.npz") in str(caught.value)


@pytest.mark.parametrize("key", ["images", "labels"])
def test_a_missing_key_is_named(key: str, tmp_path: Path) -> None:
    arrays = {"images": BYTES, "labels": LABELS}
    del arrays[key]
    np.savez(tmp_path / "set.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(ToolError, match=f'the key "{key}" is missing'):
        open_data(f"arrays:{tmp_path / 'set.npz'}")


def test_pictures_of_mixed_size_are_refused_unread(tmp_path: Path) -> None:
    mixed = np.empty(6, object)
    mixed[:] = [np.zeros((k + 1, 2)) for k in range(6)]
    with pytest.raises(ToolError, match="pictures must have one size"):
        opened(tmp_path, images=mixed)


def test_every_kind_of_cut_file_is_refused(tmp_path: Path) -> None:
    opened(tmp_path)
    content = (tmp_path / "set.npz").read_bytes()
    damaged = content[:300] + bytes(200) + content[500:]
    for number, broken in enumerate([b"", content[:100], content[:-30], content[:-1], damaged, b"text, not arrays"]):
        path = tmp_path / f"{number}.npz"
        path.write_bytes(broken)
        with pytest.raises(ToolError, match=f"{number}.npz"):
            open_data(f"arrays:{path}")


def test_an_npy_under_another_name_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", BYTES)
    with pytest.raises(ToolError, match=r"not an \.npz"):
        open_data(f"arrays:{tmp_path / 'one.npy'}")
