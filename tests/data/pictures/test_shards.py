"""Parquet files with pictures in them, as the Hugging Face Hub gives them, written here with pyarrow in the same form."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelsieve.data.inspection import inspection
from labelsieve.data.pictures import arrow
from labelsieve.data.pictures.held import labelled_pictures
from labelsieve.data.pictures.opening import open_pictures
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.errors import ToolError, UsageError

from .made import noise
from .test_saved import LABEL, cells, png

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
CELL = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
FEATURES = {"image": {"_type": "Image"}, "label": LABEL}


def shard(
    file: Path,
    pictures: list[Any],
    labels: list[Any],
    said: dict[str, Any] | None = FEATURES,
    kind: Any = CELL,
    **more: list[Any],
) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"image": pa.array(pictures, kind), "label": pa.array(labels), **more})
    if said is not None:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": said}})})
    pa.parquet.write_table(table, file, row_group_size=2)
    return file


def hub(root: Path) -> Path:
    """Two training files and a test file, six and two pictures."""
    shard(root / "data" / "train-00000-of-00002.parquet", cells(4), [0, 1, 2, 0])
    shard(root / "data" / "train-00001-of-00002-0123456789abcdef.parquet", cells(6)[4:], [1, 2])
    shard(root / "data" / "test-00000-of-00001.parquet", cells(2), [1, 0])
    (root / "README.md").write_text("a card")
    return root


def test_a_folder_from_the_hub(tmp_path: Path) -> None:
    opened = open_pictures(hub(tmp_path), PictureOptions(size=12))
    train, test = opened.collection.train, opened.collection.test
    assert opened.layout.kind == "parquet pictures" and train.classes == ("cat", "dog", "emu")
    assert train.ids == tuple(f"train/{row:06d}" for row in range(6)) and train.labels.tolist() == [0, 1, 2, 0, 1, 2]
    for row in range(6):
        assert np.array_equal(train.images[row].numpy(), np.asarray(noise(row)).transpose(2, 0, 1))
    assert test is not None and test.labels.tolist() == [1, 0]
    assert opened.paths[5] == "train-00001-of-00002-0123456789abcdef.parquet#1"


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_one_file_of_plain_bytes_with_labels_as_text(tmp_path: Path, kind: Any) -> None:
    file = shard(tmp_path / "x.parquet", [png(k) for k in range(4)], ["b", "a", "b", "a"], None, kind)
    train = open_pictures(file, PictureOptions(size=12)).collection.train
    assert train.ids[3] == "000003" and train.classes == ("a", "b") and train.labels.tolist() == [1, 0, 1, 0]


def test_ids_and_splits_by_column(tmp_path: Path) -> None:
    splits = pa.array(["test", "train", "train"])
    file = shard(tmp_path / "x.parquet", cells(3), [0, 1, 0], None, id=pa.array(["x", "y", "z"]), split=splits)
    found = open_pictures(file).collection
    assert found.train.ids == ("y", "z") and found.train.classes == ("0", "1")
    assert found.test is not None and len(found.test.labels) == 1


def test_files_without_a_split_are_all_trained_on(tmp_path: Path) -> None:
    shard(tmp_path / "0000.parquet", cells(2), [0, 1])
    shard(tmp_path / "0001.parquet", cells(2), [1, 0])
    assert open_pictures(tmp_path).collection.train.ids == ("000000", "000001", "000002", "000003")


def test_folders_named_after_splits(tmp_path: Path) -> None:
    for split in ("train", "validation"):
        shard(tmp_path / "default" / split / "0000.parquet", cells(2), [0, 1])
    found = open_pictures(tmp_path)
    assert found.collection.train.ids[0] == "train/000000" and found.val is not None


def test_broken_pictures_are_left_out_and_counted(tmp_path: Path) -> None:
    odd = [*cells(3), {"bytes": b"no picture", "path": None}, None, {"bytes": None, "path": "/etc/hostname"}]
    found = open_pictures(shard(tmp_path / "x.parquet", odd, [0, 1, 0, 1, 1, 1]))
    assert len(found.collection.train) == 3 and [row.id for row in found.left_out] == ["000003", "000004", "000005"]
    assert "only its path is stored" in found.left_out[2].reason
    with pytest.raises(ToolError, match="3 pictures cannot be read"):
        open_pictures(tmp_path / "x.parquet", PictureOptions(strict=True))


def test_inspection_and_measuring(tmp_path: Path) -> None:
    found = inspection(hub(tmp_path))
    assert found.samples == 6 and found.counts["test"] == {"cat": 1, "dog": 1, "emu": 0} and found.formats == {"PNG": 8}
    held = labelled_pictures(tmp_path, PictureOptions(), (3, 12, 12), ("emu", "dog", "cat"))
    assert held.split == "test" and held.held.labels.tolist() == [1, 2]
    alone = tmp_path / "data" / "test-00000-of-00001.parquet"
    assert labelled_pictures(alone, PictureOptions(), (3, 12, 12), ("cat", "dog")).split == "all"
    (tmp_path / "data" / "train-00000-of-00002.parquet").unlink()
    (tmp_path / "data" / "train-00001-of-00002-0123456789abcdef.parquet").unlink()
    assert labelled_pictures(tmp_path, PictureOptions(), (3, 12, 12), ("cat", "dog")).split == "test"
    with pytest.raises(ToolError, match="it has no training split"):
        open_pictures(tmp_path)


def test_unlabelled_rows(tmp_path: Path) -> None:
    shard(tmp_path / "train.parquet", cells(3), [0, 1, -1])
    shard(tmp_path / "test.parquet", cells(2), [-1, -1])
    with pytest.raises(ToolError, match="1 of 5 rows have no label"):
        open_pictures(tmp_path)
    found = open_pictures(tmp_path, PictureOptions(skip_unlabelled=True))
    assert len(found.collection.train) == 2 and found.collection.test is None


def test_faults_are_named(tmp_path: Path) -> None:
    hub(tmp_path / "a")
    other = FEATURES | {"label": {"names": ["dog", "cat", "emu"], "_type": "ClassLabel"}}
    shard(tmp_path / "a" / "data" / "val-00000-of-00001.parquet", cells(2), [0, 1], other)
    with pytest.raises(ToolError, match=r'val-00000-of-00001\.parquet: its schema says other classes of "label"'):
        open_pictures(tmp_path / "a")
    (tmp_path / "a" / "data" / "val-00000-of-00001.parquet").write_bytes(b"cut")
    with pytest.raises(ToolError, match=r"val-00000-of-00001\.parquet: .*not a whole Parquet file"):
        open_pictures(tmp_path / "a")
    for name in ("mnist", "kmnist"):
        shard(tmp_path / "b" / name / "train-00000-of-00001.parquet", cells(2), [0, 1])
    with pytest.raises(ToolError, match="kmnist, mnist hold Parquet files, a data set each; give one of them"):
        open_pictures(tmp_path / "b")
    shard(tmp_path / "c" / "train.parquet", cells(2), [0, 1], coarse_label=pa.array([0, 0]), fine=pa.array([1, 0]))
    shard(tmp_path / "c" / "tset.parquet", cells(2), [0, 1])
    with pytest.raises(ToolError, match='split "tset" is not known.*"test"'):
        open_pictures(tmp_path / "c")
    two = FEATURES | {"fine": LABEL}
    file = shard(tmp_path / "d.parquet", cells(2), [0, 1], two, fine=pa.array([1, 0]))
    with pytest.raises(UsageError, match='"label" and "fine" would both do'):
        open_pictures(file)
    assert open_pictures(file, PictureOptions(label_column="fine")).collection.train.labels.tolist() == [1, 0]
    extra = shard(tmp_path / "e" / "train.parquet", cells(2), [0, 1]).parent
    shard(extra / "extra.parquet", cells(2), [0, 1])
    assert 'the split "extra" is neither train, val nor test: not used' in open_pictures(extra).notes


def test_a_table_of_paths_stays_one(tmp_path: Path) -> None:
    noise(1).save(tmp_path / "a.png")
    noise(2).save(tmp_path / "b.png")
    table = pa.table({"path": ["a.png", "b.png"], "label": ["x", "y"]})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    assert open_pictures(tmp_path / "t.parquet").layout.kind == "manifest"


def test_rows_in_any_order_and_little_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "BATCH", 3)
    table = pa.table({"x": pa.array([bytes([row]) for row in range(40)])})
    pa.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=16)
    rows = arrow.ParquetRows(tmp_path / "x.parquet", "x")
    for row in [0, 39, 15, 16, 5, 4, 3, 31, 32, 0, *range(40)]:
        assert rows.cell(row) == bytes([row])
        assert len(rows._values) <= 3


def test_many_rows_go_through_decoding_processes(tmp_path: Path) -> None:
    file = shard(tmp_path / "x.parquet", cells(60), [row % 2 for row in range(60)])
    found = open_pictures(file, PictureOptions(size=12, workers=2)).collection.train
    assert np.array_equal(found.images[59].numpy(), np.asarray(noise(59)).transpose(2, 0, 1))
