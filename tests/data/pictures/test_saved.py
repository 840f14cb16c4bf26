"""Folders as `datasets` saves them, written here with pyarrow in the same form."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelsieve.data.pictures.opening import open_pictures
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.errors import ToolError, UsageError

from .made import noise, save

pa = pytest.importorskip("pyarrow")
LABEL = {"names": ["cat", "dog", "emu"], "_type": "ClassLabel"}


def png(seed: int) -> bytes:
    stream = io.BytesIO()
    noise(seed).save(stream, "PNG")
    return stream.getvalue()


def saved(folder: Path, cells: list[dict[str, Any]], labels: list[Any], shards: int = 1, **features: Any) -> Path:
    folder.mkdir(parents=True)
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    files = []
    for shard in range(shards):
        name = f"data-{shard:05d}-of-{shards:05d}.arrow"
        columns = {"image": pa.array(cells[shard::shards], kind), "label": pa.array(labels[shard::shards])}
        for extra in features:
            columns.setdefault(extra, columns["label"])
        table = pa.table(columns)
        with pa.ipc.new_stream(str(folder / name), table.schema) as stream:
            stream.write_table(table, max_chunksize=2)
        files.append({"filename": name})
    described = {"image": {"_type": "Image"}, "label": LABEL} | features
    (folder / "dataset_info.json").write_text(json.dumps({"features": described}))
    (folder / "state.json").write_text(json.dumps({"_data_files": files, "_indices_data_files": None}))
    return folder


def cells(count: int) -> list[dict[str, Any]]:
    return [{"bytes": png(k), "path": f"{k}.png"} for k in range(count)]


def test_one_split_in_two_files(tmp_path: Path) -> None:
    opened = open_pictures(saved(tmp_path / "set", cells(6), [0, 1, 2, 0, 1, 2], shards=2), PictureOptions(size=12))
    train = opened.collection.train
    assert opened.layout.kind == "saved dataset" and train.classes == ("cat", "dog", "emu")
    assert train.ids[4] == "000004" and train.labels.tolist() == [0, 2, 1, 1, 0, 2]
    assert np.array_equal(train.images[4].numpy(), np.asarray(noise(3)).transpose(2, 0, 1))


def test_splits_and_unlabelled_rows(tmp_path: Path) -> None:
    saved(tmp_path / "train", cells(4), [0, 1, -1, 1])
    saved(tmp_path / "test", cells(2), [1, 0])
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(ToolError, match="1 of 6 rows have no label"):
        open_pictures(tmp_path)
    opened = open_pictures(tmp_path, PictureOptions(skip_unlabelled=True))
    assert opened.collection.train.ids == ("train/000000", "train/000001", "train/000003")
    assert opened.collection.train.classes == ("cat", "dog") and any("emu" in note for note in opened.notes)
    assert opened.collection.test is not None and opened.collection.test.labels.tolist() == [1, 0]


def test_paths_instead_of_bytes_are_followed_only_when_allowed(tmp_path: Path) -> None:
    file = save(noise(9), tmp_path / "x.png")
    folder = saved(tmp_path / "set", [*cells(3), {"bytes": None, "path": str(file)}, None], [0, 1, 0, 1, 1])
    reasons = [row.reason for row in open_pictures(folder).left_out]
    assert "only its path is stored" in reasons[0] and "holds no picture" in reasons[1]
    assert len(open_pictures(folder, PictureOptions(outside=True)).collection.train) == 4


def test_labels_by_their_text_and_in_a_given_order(tmp_path: Path) -> None:
    folder = saved(tmp_path / "a", cells(2), ["x", "y"], label={"dtype": "string", "_type": "Value"})
    assert open_pictures(folder).collection.train.classes == ("x", "y")
    folder = saved(tmp_path / "b", cells(3), [0, 1, 2])
    opened = open_pictures(folder, PictureOptions(classes=("emu", "dog", "cat")))
    assert opened.collection.train.classes == ("emu", "dog", "cat") and opened.collection.train.labels.tolist() == [2, 1, 0]
    with pytest.raises(UsageError, match='differ in "emu"'):
        open_pictures(folder, PictureOptions(classes=("cat", "dog")))


def test_faults_are_named(tmp_path: Path) -> None:
    folder = saved(tmp_path / "two", cells(2), [0, 1], fine=LABEL)
    with pytest.raises(UsageError, match='"label" and "fine" would both do'):
        open_pictures(folder)
    assert open_pictures(folder, PictureOptions(label_column="fine")).collection.train.labels.tolist() == [0, 1]
    folder = saved(tmp_path / "cut", cells(2), [0, 1])
    (folder / "data-00000-of-00001.arrow").write_bytes(b"cut")
    with pytest.raises(ToolError, match="not a whole Arrow file"):
        open_pictures(folder)
    (folder / "data-00000-of-00001.arrow").unlink()
    with pytest.raises(ToolError, match=r"state\.json names it"):
        open_pictures(folder)
    (folder / "state.json").write_text(json.dumps({"_indices_data_files": [{"filename": "x"}]}))
    with pytest.raises(ToolError, match="flatten_indices"):
        open_pictures(folder)
    (folder / "state.json").write_text("{")
    with pytest.raises(ToolError, match=r"state\.json: damaged"):
        open_pictures(folder)
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["unsupervised"]}')
    with pytest.raises(ToolError, match='split "unsupervised" is not known'):
        open_pictures(tmp_path)


def test_test_pictures_may_be_without_labels(tmp_path: Path) -> None:
    saved(tmp_path / "train", cells(4), [0, 1, 0, 1])
    saved(tmp_path / "test", cells(2), [-1, -1])
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    found = open_pictures(tmp_path, PictureOptions(size=12))
    assert found.collection.test is None and "2 test rows have no label: not used" in found.notes


def test_other_splits_beside_train_are_not_used_and_said(tmp_path: Path) -> None:
    for name in ("train", "unsupervised"):
        saved(tmp_path / name, cells(4), [0, 1, 0, 1])
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "unsupervised"]}))
    found = open_pictures(tmp_path, PictureOptions(size=12))
    assert len(found.collection.train) == 4 and 'the split "unsupervised" is neither train, val nor test: not used' in found.notes
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "vaild"]}))
    with pytest.raises(ToolError, match='did you mean "valid"'):
        open_pictures(tmp_path)
