"""What `inspect` says of made folders: counts, sizes, broken files, duplicates, plan and warnings."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelsieve.data.inspection import Duplicates, inspection
from labelsieve.data.pictures.opening import open_pictures
from labelsieve.data.pictures.options import PictureOptions

from .made import class_folders, noise, save


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """4 cats and 1 dog that can be read, a cut file, a copy with the same label and one with another."""
    root = tmp_path / "data"
    class_folders(root / "train", each=3)
    shutil.copy(root / "train/cat/0.png", root / "train/cat/copy.png")
    shutil.copy(root / "train/cat/1.png", root / "train/dog/2.png")
    cut = root / "train/dog/1.png"
    cut.write_bytes(cut.read_bytes()[:200])
    save(noise(5, 40), root / "train/cat/big.jpg")
    (root / "train/emu").mkdir()
    class_folders(root / "test", each=1)
    return root


def test_everything_is_told(folder: Path, own_cache: Path) -> None:
    found = inspection(folder)
    assert found.counts == {"train": {"cat": 5, "dog": 2}, "test": {"cat": 1, "dog": 1}}
    assert found.samples == 7 and found.smallest == ("dog", 2) and found.imbalance == 2.5
    assert found.widths == (12, 12, 40) == found.heights
    assert found.formats == {"PNG": 8, "JPEG": 1} and found.modes == {"RGB": 9}
    assert [(row.path, row.reason.split()[0]) for row in found.left_out] == [("train/dog/1.png", "cut")]
    assert found.empty_classes == ("train/emu",)
    assert ("train/cat/0.png", "train/cat/copy.png", "test/cat/0.png") in [group.ids for group in found.same_label]
    (group,) = found.different_labels
    assert group.ids == ("train/cat/1.png", "train/dog/2.png") and group.labels == ("cat", "dog")
    assert not own_cache.exists(), "looking writes nothing"


def test_the_plan_is_what_training_does(folder: Path) -> None:
    found, opened = inspection(folder), open_pictures(folder)
    assert found.plan == opened.plan and found.shape == opened.collection.train.shape
    squashed = inspection(folder, PictureOptions(size=32, fit="squash"))
    assert squashed.shape == (3, 32, 32) and "both sides resized" in "\n".join(squashed.lines())


def test_the_words(folder: Path) -> None:
    text = "\n".join(replace(inspection(folder), network="net").lines())
    for part in [
        "split folders (the folders test, train, each with class folders)",
        "train: 7 samples in 2 classes",
        '  "cat": 5',
        'smallest class: "dog" with 2; largest over smallest: 2.5',
        "width: 12 to 40 pixels, median 12",
        "formats: PNG 8, JPEG 1",
        '"train/dog/1.png": cut short',
        "exact duplicates with different labels: 1 picture\n",
        '"train/cat/1.png" as "cat"; "train/dog/2.png" as "dog"',
        "training would use 3 x 8 x 8 pixels per picture (shorter side resized, middle kept); the cache takes",
        "network: net",
        "warning: 7 samples are few: check every suggestion",
        "warning: 2 classes have fewer than 20 samples",
        "in the training split and in another one, too",
        '1 class folder holds no picture: "train/emu"',
    ]:
        assert part in text, part


def test_copies_between_val_and_test_are_not_in_the_training_split(folder: Path) -> None:
    found = inspection(folder)
    outside = Duplicates(("val/cat/0.png", "test/cat/0.png"), ("cat", "cat"), ("val", "test"))
    only = replace(found, same_label=(outside,), different_labels=())
    assert not any("in the training split" in warning for warning in only.warnings)
    both = replace(found, same_label=(replace(outside, splits=("train", "test")),), different_labels=())
    assert any("1 picture is in the training split" in warning for warning in both.warnings)


def test_it_is_plain_json(folder: Path) -> None:
    told = json.loads(json.dumps(inspection(folder).as_dict()))
    assert told["samples"] == 7 and told["plan"]["cache_bytes"] > 0 and told["layout"]["kind"] == "split folders"


def test_names_stay_on_their_line(tmp_path: Path) -> None:
    class_folders(tmp_path, ("new\nline", "new line"), each=1)
    found = inspection(tmp_path)
    assert not any("\n" in line for line in found.lines()) and '  "new\\nline": 1' in found.lines()
    assert any("may be meant as one" in warning for warning in found.warnings)


def test_a_class_named_without_pictures_is_not_the_smallest(tmp_path: Path) -> None:
    found = inspection(class_folders(tmp_path), PictureOptions(classes=("boot", "cat", "dog")))
    assert found.smallest == ("cat", 3) and found.imbalance == 1
    assert '  "boot": 0' in found.lines() and not any("inf" in line or "as one" in line for line in found.lines())


def test_words_for_no_label_are_told(tmp_path: Path) -> None:
    class_folders(tmp_path)
    (tmp_path / "t.csv").write_text("path,label\ncat/0.png,cat\ncat/1.png,nan\ndog/0.png,dog\ndog/1.png,nan\n")
    found = inspection(tmp_path / "t.csv")
    assert found.training == {"cat": 1, "dog": 1, "nan": 2}
    assert any('2 samples have the label "nan"' in line and line.startswith("warning:") for line in found.lines())


def test_imbalance_and_many_classes(tmp_path: Path) -> None:
    class_folders(tmp_path, tuple(f"c{k:02d}" for k in range(25)), each=1)
    class_folders(tmp_path, ("big",), each=40, seed=10**6)
    found = inspection(tmp_path)
    assert found.imbalance == 40 and any("40 times the smallest" in warning for warning in found.warnings)
    assert "  ... 6 more ..." in found.lines()


def test_arrays_and_vectors(tmp_path: Path) -> None:
    labels = np.array([0, 1, 0, 1])
    np.savez(tmp_path / "p.npz", images=np.zeros((4, 8, 8), np.uint8), labels=labels)
    found = inspection(tmp_path / "p.npz")
    assert found.shape == (1, 8, 8) and len(found.different_labels) == 1 and found.plan is None
    np.savez(tmp_path / "v.npz", X=np.eye(4), y=labels)
    vectors = inspection(tmp_path / "v.npz")
    assert vectors.counts == {"train": {"0": 2, "1": 2}} and vectors.different_labels == ()
    assert any("4 numbers per sample" in line for line in vectors.lines())


def test_vectors_are_not_called_pictures(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", features=np.ones((4, 3), np.float32), labels=np.array([0, 1, 0, 1]))
    text = "\n".join(inspection(tmp_path / "v.npz").lines())
    assert "1 vector occurs more than once" in text and "picture" not in text
