"""Folders named train, val and test that hold pictures without class folders: the labels come from a table, or it is an error."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelsieve.corrected.apply import apply_run
from labelsieve.data.pictures.opening import Opened, open_pictures
from labelsieve.data.pictures.options import PictureOptions, PictureSettings
from labelsieve.data.pictures.recognise import recognise
from labelsieve.errors import ToolError, UsageError
from runs.made_runs import as_advised, made_run

from .made import class_folders, noise, save


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """Three pictures in train/, two in test/."""
    for number in range(5):
        save(noise(number), tmp_path / "data" / ("train" if number < 3 else "test") / f"{number}.png")
    return tmp_path / "data"


def opened(path: Path, **options: Any) -> Opened:
    return open_pictures(path, PictureOptions(size=12, **options))


TRAIN_ROWS = "image,label\ntrain/0.png,cat\ntrain/1.png,dog\ntrain/2.png,cat\n"


def test_the_one_table_has_the_labels(flat: Path) -> None:
    (flat / "train.csv").write_text(TRAIN_ROWS)
    found = opened(flat)
    assert found.layout.kind == "manifest" and found.collection.train.classes == ("cat", "dog")
    assert found.collection.train.ids == ("train/0.png", "train/1.png", "train/2.png")


def test_of_two_tables_the_one_named_after_the_training_split(flat: Path) -> None:
    (flat / "train.csv").write_text(TRAIN_ROWS)
    (flat / "sample_submission.csv").write_text("image,label\ntest/3.png,cat\ntest/4.png,cat\n")
    found = opened(flat)
    assert len(found.collection.train) == 3 and "not used: sample_submission.csv" in found.layout.why
    (flat / "train.csv").rename(flat / "labels.csv")
    with pytest.raises(ToolError, match=r"the tables labels.csv, sample_submission.csv all have .*; give one of them"):
        recognise(flat)


def test_without_a_table_the_folders_and_the_remedy_are_named(flat: Path) -> None:
    with pytest.raises(ToolError, match=r'"test" and "train" are named after splits .* class folders .* train.csv'):
        recognise(flat)
    (flat / "ids.csv").write_text("a,b\n1,2\n")
    (flat / "notes").mkdir()
    with pytest.raises(ToolError, match="are named after splits .* ids.csv has the columns a, b; .* --image-column"):
        recognise(flat)


@pytest.mark.parametrize("ending", ["", ".png"])
def test_paths_without_an_ending_are_found(ending: str, flat: Path) -> None:
    rows = "".join(f"{row}{ending},{label}\n" for row, label in enumerate(("cat", "dog", "cat")))
    (flat / "train.csv").write_text(f"image,label\n{rows}")
    (flat / "sample_submission.csv").write_text("id,label\n3,cat\n4,cat\n")
    with pytest.raises(ToolError, match=r"There is \S+train/0.png. Give the folder .* root \(--root\)$"):
        opened(flat)
    (flat / "train.csv").write_text(f"id,label\n{rows}")
    with pytest.raises(ToolError, match=r"names pictures in the column .*--image-column id --root \S+/train --out RUN"):
        opened(flat)
    found = open_pictures(flat / "train.csv", PictureOptions(size=12, image_column="id", root=flat / "train"))
    assert len(found.collection.train) == 3
    if not ending:
        shutil.copy(flat / "train" / "0.png", flat / "train" / "0.jpg")  # which of the two is meant, nobody can know
        found = open_pictures(flat / "train.csv", PictureOptions(size=12, image_column="id", root=flat / "train"))
        assert [one.path for one in found.left_out] == ["0"] and "that of the file" in str(found.notes)


@pytest.mark.parametrize("name", ["sample_submission.csv", "test.csv", "test_labels.csv"])
def test_a_table_to_fill_in_or_to_measure_on_is_never_trained_on(name: str, flat: Path) -> None:
    (flat / name).write_text("image,label\ntest/3.png,cat\ntest/4.png,dog\n")
    with pytest.raises(ToolError, match=f"{name} has the columns image, label, and its name says it is not for training"):
        recognise(flat)
    assert len(opened(flat / name).collection.train) == 2


def test_a_split_beside_another_folder_of_pictures_is_a_class(flat: Path) -> None:
    save(noise(9), flat / "plane" / "0.png")
    assert recognise(flat).kind == "class folders"


def metadata(folder: Path, rows: dict[str, str], column: str = "label") -> None:
    lines = [f"file_name,{column}", *(f"{name},{value}" for name, value in rows.items())]
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("held", ["none", "caption", "blank"])
def test_only_training_metadata_need_labels(held: str, flat: Path) -> None:
    metadata(flat / "train", {"0.png": "cat", "1.png": "dog", "2.png": "cat"})
    if held != "none":
        rows = {"3.png": "x", "4.png": "x"} if held == "caption" else {"3.png": "", "4.png": ""}
        metadata(flat / "test", rows, "label" if held == "blank" else held)
    found = opened(flat)
    assert found.layout.kind == "imagefolder" and found.collection.train.classes == ("cat", "dog")
    assert found.collection.test is None and 'the folder "test" has no labels: not used' in found.notes
    assert np.array_equal(found.collection.train.labels.numpy(), [0, 1, 0])


def test_a_label_column_of_the_training_split_need_not_be_in_the_others(flat: Path, tmp_path: Path) -> None:
    (flat / "train" / "metadata.csv").write_text("file_name,noisy_label,label\n0.png,cat,cat\n1.png,dog,dog\n2.png,cat,dog\n")
    metadata(flat / "test", {"3.png": "cat", "4.png": "dog"})
    found = opened(flat, label_column="noisy_label").collection
    assert found.train.labels.tolist() == [0, 1, 0] and found.test is not None and found.test.labels.tolist() == [0, 1]
    names, chosen = ["train/0.png", "train/1.png", "train/2.png"], PictureSettings(label_column="noisy_label")
    made_run(tmp_path / "run", f"pictures:{flat}", names, ["cat", "dog", "cat"], {"train/0.png": "dog"}, pictures=chosen)
    apply_run(tmp_path / "run", tmp_path / "new", as_advised(tmp_path / "run"))
    assert (tmp_path / "new" / "train" / "metadata.csv").read_text().splitlines()[1] == "0.png,dog,cat"
    assert (tmp_path / "new" / "test" / "metadata.csv").read_text() == (flat / "test" / "metadata.csv").read_text()
    (flat / "train" / "metadata.csv").write_text("file_name,label\n0.png,cat\n1.png,dog\n")
    with pytest.raises(UsageError, match='no column "noisy_label"'):
        opened(flat, label_column="noisy_label")


def test_training_metadata_without_labels_are_none(flat: Path) -> None:
    metadata(flat / "train", {"0.png": "x"}, "caption")
    metadata(flat / "test", {"3.png": "cat"})
    with pytest.raises(ToolError, match="are named after splits"):
        recognise(flat)


def test_a_corrected_folder_leaves_out_the_split_without_labels_and_says_so(flat: Path, tmp_path: Path) -> None:
    metadata(flat / "train", {"0.png": "cat", "1.png": "dog", "2.png": "cat"})
    metadata(flat / "test", {"3.png": "x", "4.png": "x"}, "caption")
    names = ["train/0.png", "train/1.png", "train/2.png"]
    made_run(tmp_path / "run", f"pictures:{flat}", names, ["cat", "dog", "cat"], {"train/0.png": "dog"})
    done = apply_run(tmp_path / "run", tmp_path / "new", as_advised(tmp_path / "run"))
    assert done.left == 3 and any('"test" has no labels: left out' in note for note in done.notes)
    assert (tmp_path / "new" / "train" / "metadata.csv").read_text().splitlines()[1] == "0.png,dog"


def test_class_folders_below_splits_are_read_as_before(tmp_path: Path) -> None:
    class_folders(tmp_path / "train")
    class_folders(tmp_path / "test", each=1)
    (tmp_path / "train.csv").write_text("path,label\ntrain/cat/0.png,cat\n")
    assert recognise(tmp_path).kind == "split folders"
