"""Data files that strangers made or that were cut: whatever a reader raises is one sentence that names the file."""

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from data.pictures.made import noise, save
from labelsieve.data.embeddings import load_embeddings
from labelsieve.data.label_files import read_saved
from labelsieve.data.npz import npz_keys, read_npz
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.recognise import list_pictures, recognise
from labelsieve.errors import ToolError
from labelsieve.exports.decisions import read_tasks

COUNT = 600


def listed(path: Path) -> int:
    return len(list_pictures(recognise(path), PictureOptions()))


def pictures(path: Path, count: int, **columns: list[object]) -> Path:
    """A Parquet file of picture bytes and labels."""
    save(noise(1), path.with_suffix(".png"))
    content = path.with_suffix(".png").read_bytes()
    table = {"image": pa.array([content] * count, pa.binary()), "label": pa.array(["cat", "dog"] * (count // 2), pa.string())}
    pa.parquet.write_table(pa.table(table | columns), path)
    return path


def vectors(path: Path, count: int) -> Path:
    values = [[float(k), 1.0] for k in range(count)]
    table = {"vector": pa.array(values, pa.list_(pa.float64())), "label": pa.array(["cat", "dog"] * (count // 2), pa.string())}
    pa.parquet.write_table(pa.table(table), path, compression="none")
    return path


def damaged(path: Path) -> Path:
    """Pages in the middle overwritten: header and footer are whole."""
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = b"\xff" * (len(content) // 2 - 4)
    path.write_bytes(content)
    return path


def test_a_parquet_table_with_a_damaged_page(tmp_path: Path) -> None:
    paths = [f"{k}.png" for k in range(COUNT)]
    pa.parquet.write_table(pa.table({"path": paths, "label": ["cat", "dog"] * (COUNT // 2)}), tmp_path / "t.parquet")
    with pytest.raises(ToolError, match=r"t\.parquet: .*write it again"):
        listed(damaged(tmp_path / "t.parquet"))


def test_parquet_files_of_pictures_or_vectors_with_a_damaged_page(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"p\.parquet: "):
        listed(damaged(pictures(tmp_path / "p.parquet", 40)))
    with pytest.raises(ToolError, match=r"v\.parquet: .*write it again"):
        load_embeddings(damaged(vectors(tmp_path / "v.parquet", COUNT)))


def test_parquet_files_of_no_rows(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"p\.parquet: it has no rows"):
        listed(pictures(tmp_path / "p.parquet", 0))
    with pytest.raises(ToolError, match=r"v\.parquet: "):
        load_embeddings(vectors(tmp_path / "v.parquet", 0))
    empty = {name: pa.array([], pa.string()) for name in ("path", "label")}
    pa.parquet.write_table(pa.table(empty), tmp_path / "t.parquet")
    with pytest.raises(ToolError, match=r"t\.parquet: it has a header and no rows"):
        listed(tmp_path / "t.parquet")


@pytest.mark.parametrize("form", ["pictures", "table"])
def test_a_split_column_of_lists(tmp_path: Path, form: str) -> None:
    splits: list[object] = [["train"], ["test"]]
    if form == "pictures":
        path = pictures(tmp_path / "t.parquet", 2, split=splits)
    else:
        path = tmp_path / "t.parquet"
        pa.parquet.write_table(pa.table({"path": ["a.png", "b.png"], "label": ["cat", "dog"], "split": splits}), path)
    with pytest.raises(ToolError, match=r"t\.parquet: row 1: split .*train.* is not known"):
        listed(path)


@pytest.mark.parametrize("place", [6, 7, 10, 28, 30])
def test_an_npz_with_a_damaged_directory(tmp_path: Path, place: int) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, images=np.zeros((4, 8, 8), np.uint8), labels=np.arange(4))
    content = bytearray(path.read_bytes())
    content[content.find(b"PK\x01\x02") + place] = 255
    path.write_bytes(content)
    said = []
    for read in (read_npz, npz_keys):
        try:
            read(path)
        except ToolError as error:
            said.append(str(error))
    assert all(words.startswith(f"{path}: ") and len(words) < 400 for words in said)
    assert said or place != 6


def test_a_label_file_with_damaged_deflate(tmp_path: Path) -> None:
    path = tmp_path / "CIFAR-10_human.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"a": list(range(9000))}, 2))
    content = bytearray(path.read_bytes())
    content[60:80] = b"\xff" * 20
    path.write_bytes(content)
    with pytest.raises(ToolError, match=r"human\.pt: damaged .*fetch it again"):
        read_saved(path)


@pytest.mark.parametrize("action", [["x"], {"x": 1}, 3, None])
def test_label_studio_tasks_with_a_strange_action(tmp_path: Path, action: object) -> None:
    """It is none of our records then, and the annotation counts as the annotator's."""
    record = {"action": action, "label": "cat", "who": "ada", "when": "2026", "key": "k"}
    task = {
        "data": {"id": "1", "decisions": [record]},
        "annotations": [{"id": 7, "result": [{"from_name": "label", "value": {"choices": ["cat"]}}]}],
    }
    (tmp_path / "tasks.json").write_text(json.dumps([task]))
    (found,) = read_tasks(tmp_path / "tasks.json", "eve", "2027")
    assert (found.who, found.action, found.label) == ("eve", "", "cat")


@pytest.mark.parametrize("content", [b"\xff", b"[" * 100_000, b"{}", b"[1]", b""])
def test_label_studio_files_that_are_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tasks.json").write_bytes(content)
    with pytest.raises(ToolError, match=r"tasks\.json: .*Label Studio as JSON"):
        read_tasks(tmp_path / "tasks.json", "eve", "2027")
