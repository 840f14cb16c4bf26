"""CIFAR's python layout, made small: folders, archives, and everything that can be missing or wrong."""

import pickle
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from labelsieve.data.sources import open_data
from labelsieve.errors import ToolError

NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def pixels(count: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (count, 3072), dtype=np.uint8)


def write(path: Path, content: object, protocol: int = 2) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(content, protocol))


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    """A folder that holds cifar-10-batches-py: five batches of 4, keys as bytes, and 3 test pictures."""
    folder = tmp_path / "sets" / "cifar-10-batches-py"
    for i in range(5):
        labels = [(4 * i + j) % 10 for j in range(4)]
        write(folder / f"data_batch_{i + 1}", {b"data": pixels(4, i), b"labels": labels})
    write(folder / "test_batch", {b"data": pixels(3, 9), b"labels": [9, 0, 4]})
    write(folder / "batches.meta", {b"label_names": [name.encode() for name in NAMES]})
    return folder.parent


@pytest.fixture
def hundred(tmp_path: Path) -> Path:
    """cifar-100-python itself: 200 pictures, keys as text; class k is in superclass k % 20."""
    folder = tmp_path / "cifar-100-python"
    fine = [k % 100 for k in range(200)]
    coarse = [k % 20 for k in fine]
    write(folder / "train", {"data": pixels(200, 0), "fine_labels": fine, "coarse_labels": coarse}, 5)
    write(folder / "test", {"data": pixels(2, 1), "fine_labels": [99, 3], "coarse_labels": [19, 3]}, 5)
    write(folder / "meta", {"fine_label_names": [f"fine {k}" for k in range(100)]}, 5)
    return folder


def test_cifar10_is_read_batch_after_batch(ten: Path) -> None:
    found = open_data(f"cifar10:{ten}")
    assert found.name == "cifar10" and found.mirror and found.groups is None
    assert found.train.classes == tuple(NAMES)
    assert found.mean == (0.4914, 0.4822, 0.4465) and found.std == (0.2023, 0.1994, 0.2010)
    assert found.train.labels.tolist() == [k % 10 for k in range(20)]
    assert found.truth is not None and torch.equal(found.truth.labels, found.train.labels)
    assert found.train.ids[0] == "00000" and found.train.ids[19] == "00019"
    for i in range(5):
        expected = pixels(4, i).reshape(4, 3, 32, 32)
        assert np.array_equal(found.train.images[4 * i : 4 * i + 4].numpy(), expected)
    assert found.test is not None and found.test.labels.tolist() == [9, 0, 4]
    assert np.array_equal(found.test.images.numpy(), pixels(3, 9).reshape(3, 3, 32, 32))


def test_cifar100_has_its_superclasses(hundred: Path) -> None:
    found = open_data(f"cifar100:{hundred}")
    assert len(found.train) == 200 and len(found.train.classes) == 100
    assert found.groups == tuple(k % 20 for k in range(100))
    assert found.mean == (0.507, 0.487, 0.441) and found.std == (0.267, 0.256, 0.276)


def archive(folder: Path, path: Path) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    return path


def test_the_folder_itself_the_archive_and_a_folder_with_the_archive_give_the_same(ten: Path) -> None:
    inside = ten / "cifar-10-batches-py"
    packed = archive(inside, ten / "cifar-10-python.tar.gz")
    first = open_data(f"cifar10:{ten}")
    alike = [open_data(f"cifar10:{inside}"), open_data(f"cifar10:{packed}")]
    before = sorted(path.name for path in ten.iterdir())
    shutil.rmtree(inside)
    alike.append(open_data(f"cifar10:{ten}"))
    assert sorted(path.name for path in ten.iterdir()) == [before[-1]], "nothing is unpacked to disk"
    for other in alike:
        assert torch.equal(other.train.images, first.train.images)
        assert torch.equal(other.train.labels, first.train.labels)


def edit(path: Path, **changes: Any) -> None:
    content = {key if isinstance(key, str) else key.decode(): value for key, value in pickle.loads(path.read_bytes()).items()}
    write(path, content | changes, protocol=4)


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "a batch missing": (lambda f: (f / "data_batch_3").unlink(), "data_batch_3 missing"),
    "meta missing": (lambda f: (f / "batches.meta").unlink(), r"batches\.meta missing"),
    "cut short": (
        lambda f: (f / "data_batch_2").write_bytes((f / "data_batch_2").read_bytes()[:5000]),
        "data_batch_2: damaged",
    ),
    "empty file": (lambda f: (f / "test_batch").write_bytes(b""), "test_batch: damaged"),
    "other width": (lambda f: edit(f / "data_batch_1", data=np.zeros((4, 1024), np.uint8)), r"\(4, 1024\)"),
    "other type": (lambda f: edit(f / "data_batch_1", data=np.zeros((4, 3072))), "float64"),
    "no pictures": (lambda f: edit(f / "data_batch_1", data=np.zeros((0, 3072), np.uint8)), r"\(0, 3072\)"),
    "a scalar": (lambda f: edit(f / "data_batch_1", data=np.array(3, np.uint8)), "data_batch_1"),
    "pictures as list": (lambda f: edit(f / "data_batch_1", data=[[0], [1, 2]]), '"data" is list'),
    "too few labels": (
        lambda f: edit(f / "data_batch_4", labels=[1, 2]),
        "data_batch_4.*2 values, not a list of 4",
    ),
    "labels as text": (lambda f: edit(f / "data_batch_4", labels=["1"] * 4), "class numbers"),
    "a huge label": (lambda f: edit(f / "data_batch_4", labels=[2**70, 0, 0, 0]), "class numbers"),
    "label out of range": (lambda f: edit(f / "data_batch_1", labels=[10, 1, 2, 3]), "row 0 has label 10"),
    "test label out of range": (lambda f: edit(f / "test_batch", labels=[0, 1, 10]), "test set: row 2"),
    "no labels": (lambda f: write(f / "data_batch_1", {"data": pixels(4, 0)}), '"labels" is NoneType'),
    "nine names": (lambda f: edit(f / "batches.meta", label_names=NAMES[:9]), "9 class names where 10"),
    "no names": (lambda f: write(f / "batches.meta", {}), "label_names"),
    "a class without pictures": (
        lambda f: [edit(f / f"data_batch_{i}", labels=[0, 1, 2, 3]) for i in range(1, 6)],
        'no sample has the label "deer"',
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_damaged_folder_is_refused_by_file_and_fault(what: str, ten: Path) -> None:
    spoil, says = BROKEN[what]
    spoil(ten / "cifar-10-batches-py")
    with pytest.raises(ToolError, match=says) as caught:
        open_data(f"cifar10:{ten}")
    assert str(ten) in str(caught.value)


def test_a_forbidden_global_in_a_batch_is_refused(ten: Path) -> None:
    (ten / "cifar-10-batches-py" / "data_batch_5").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ToolError, match=r'data_batch_5: the pickle asks for "os\.system"'):
        open_data(f"cifar10:{ten}")


def test_a_class_in_two_superclasses_is_refused(hundred: Path) -> None:
    edit(hundred / "train", coarse_labels=[k % 20 for k in range(199)] + [3])
    with pytest.raises(ToolError, match="puts class 99 in superclass"):
        open_data(f"cifar100:{hundred}")


def test_cifar100_without_coarse_labels_is_refused(hundred: Path) -> None:
    write(hundred / "train", {"data": pixels(2, 0), "fine_labels": [0, 1]})
    with pytest.raises(ToolError, match="coarse_labels"):
        open_data(f"cifar100:{hundred}")


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9])
def test_a_cut_archive_is_refused(part: float, ten: Path) -> None:
    packed = archive(ten / "cifar-10-batches-py", ten / "cut.tar.gz")
    content = packed.read_bytes()
    packed.write_bytes(content[: int(part * len(content))])
    with pytest.raises(ToolError, match=r"cut\.tar\.gz"):
        open_data(f"cifar10:{packed}")


def test_the_wrong_archive_says_what_is_missing(hundred: Path, tmp_path: Path) -> None:
    packed = archive(hundred, tmp_path / "cifar-100-python.tar.gz")
    with pytest.raises(ToolError, match=r"data_batch_1.* missing"):
        open_data(f"cifar10:{packed}")
    (tmp_path / "notes.txt").write_text("not an archive")
    with pytest.raises(ToolError, match="damaged"):
        open_data(f"cifar10:{tmp_path / 'notes.txt'}")
