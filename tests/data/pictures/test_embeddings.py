"""Vectors with labels from every kind of file, and every fault that is named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from labelsieve.corrected.apply import apply_run
from labelsieve.data.embeddings import load_embeddings
from labelsieve.data.noisy_data import Collection
from labelsieve.data.pictures.opening import open_pictures
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.recognise import recognise
from labelsieve.data.sources import open_data
from labelsieve.errors import ToolError, UsageError
from labelsieve.issues.policy import Correction
from runs.made_runs import as_advised, made_run

VECTORS = np.random.default_rng(0).normal(size=(6, 4))
LABELS = np.array(["b", "a", "b", "a", "b", "a"])


def check(found: Collection) -> None:
    train = found.train
    assert train.images.dtype == torch.float32 and train.images.ndim == 2 and not found.mirror
    assert (
        np.allclose(train.images.numpy(), VECTORS) and train.labels.tolist() == [1, 0, 1, 0, 1, 0] and train.classes == ("a", "b")
    )
    assert np.allclose(found.mean, VECTORS.mean(0)) and np.allclose(found.std, VECTORS.std(0))


@pytest.mark.parametrize(("key", "label"), [("features", "labels"), ("embeddings", "y"), ("X", "y")])
def test_npz(key: str, label: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", **{key: VECTORS, label: LABELS})  # type: ignore[arg-type]
    opened = open_pictures(tmp_path / "v.npz")
    assert opened.layout.kind == "embeddings" and opened.collection.name == "embeddings"
    check(opened.collection)
    check(open_data(f"embeddings:{tmp_path / 'v.npz'}"))


def test_npz_with_everything(tmp_path: Path) -> None:
    numbers = np.array([1, 0, 1, 0, 1, 0])
    held = {"test_features": VECTORS[:2].astype(np.float16), "test_labels": numbers[:2]}
    np.savez(
        tmp_path / "v.npz",
        features=VECTORS,
        labels=numbers,
        classes=["x", "y"],
        ids=list("uvwxyz"),
        true_labels=1 - numbers,
        **held,
    )  # type: ignore[arg-type]
    found = load_embeddings(tmp_path / "v.npz")
    assert (
        found.train.classes == ("x", "y")
        and found.train.ids == tuple("uvwxyz")
        and found.train.labels.tolist() == numbers.tolist()
    )
    assert found.truth is not None and found.truth.labels.tolist() == (1 - numbers).tolist()
    assert found.test is not None and found.test.images.shape == (2, 4) and found.test.labels.tolist() == [1, 0]


def test_an_npz_of_pictures_is_still_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", images=np.zeros((4, 8, 8), np.uint8), labels=np.array([0, 1, 0, 1]))
    opened = open_pictures(tmp_path / "v.npz")
    assert opened.layout.kind == "arrays" and opened.collection.train.images.shape == (4, 1, 8, 8)


@pytest.mark.parametrize("name", ["labels.npy", "v_labels.npy", "labels.txt", "labels.csv"])
def test_npy_with_labels_beside_it(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VECTORS)
    if name.endswith("npy"):
        np.save(tmp_path / name, LABELS)
    else:
        (tmp_path / name).write_text(("label\n" if name.endswith("csv") else "") + "\n".join(LABELS) + "\n")
    check(open_pictures(tmp_path / "v.npy").collection)
    moved = (tmp_path / name).rename(tmp_path / f"other{Path(name).suffix}")
    with pytest.raises(UsageError, match="labels_file"):
        open_pictures(tmp_path / "v.npy")
    check(open_pictures(tmp_path / "v.npy", PictureOptions(labels_file=moved)).collection)


@pytest.mark.parametrize("name", ["labels.npy", "v.npz"])
def test_labels_may_be_a_column(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VECTORS)
    np.save(tmp_path / "labels.npy", LABELS[:, None])
    np.savez(tmp_path / "v.npz", features=VECTORS, labels=LABELS[:, None])
    check(open_pictures(tmp_path / ("v.npy" if name == "labels.npy" else name)).collection)


def test_empty_lines_at_the_end_are_no_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VECTORS)
    (tmp_path / "labels.txt").write_text("\n".join(LABELS) + "\n\n\n")
    check(open_pictures(tmp_path / "v.npy").collection)
    (tmp_path / "labels.txt").write_text("\n".join(LABELS[:-1]))
    with pytest.raises(ToolError, match=r"6 vectors, 5 labels in labels\.txt; the counts"):
        open_pictures(tmp_path / "v.npy")


def test_a_table_beside_an_npy_gives_ids_and_splits(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VECTORS)
    rows = [f"{name},{label}" for name, label in zip("uvwxyz", LABELS)]
    (tmp_path / "labels.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    found = open_pictures(tmp_path / "v.npy").collection
    check(found)
    assert found.train.ids == tuple("uvwxyz")
    splits = ["test", "test", *["train"] * 4]
    (tmp_path / "labels.csv").write_text("\n".join(["id,label,split", *(f"{r},{s}" for r, s in zip(rows, splits))]) + "\n")
    found = open_pictures(tmp_path / "v.npy").collection
    assert found.train.ids == tuple("wxyz") and found.test is not None and found.test.labels.tolist() == [1, 0]
    for text, says in (("id,label\nu,a\nu,b\n" + "\n".join(rows[2:]), 'id "u" occurs'), ("id,label\nu,a\nv,b\n", "2 labels")):
        (tmp_path / "labels.csv").write_text(text)
        with pytest.raises(ToolError, match=says):
            open_pictures(tmp_path / "v.npy")


@pytest.mark.parametrize("kind", ["list", "fixed", "large"])
def test_parquet(kind: str, tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kinds = {"list": pa.list_(pa.float64()), "fixed": pa.list_(pa.float32(), 4), "large": pa.large_list(pa.float64())}
    columns = {"embedding": pa.array(VECTORS.tolist(), kinds[kind]), "label": pa.array(LABELS.tolist()), "id": pa.array(range(6))}
    parquet.write_table(pa.table(columns), tmp_path / "v.parquet", row_group_size=4)
    assert recognise(tmp_path / "v.parquet").kind == "embeddings"
    found = load_embeddings(tmp_path / "v.parquet")
    check(found)
    assert found.train.ids == tuple("012345")


def test_parquet_with_splits(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    splits = ["train", "test", "train", "val", "train", "test"]
    table = pa.table({"embedding": VECTORS.tolist(), "label": ["b", "b", "a", "a", "b", "c"], "split": splits})
    parquet.write_table(table, tmp_path / "v.parquet")
    found = open_pictures(tmp_path / "v.parquet")
    train, test = found.collection.train, found.collection.test
    assert train.ids == ("00000", "00002", "00004") and train.labels.tolist() == [1, 0, 1] and train.classes == ("a", "b")
    own = VECTORS[[0, 2, 4]]
    assert np.allclose(train.images.numpy(), own) and np.allclose(found.collection.mean, own.mean(0))
    assert test is not None and test.labels.tolist() == [1] and np.allclose(test.images.numpy(), VECTORS[[1]])
    assert found.val is not None and found.val.labels.tolist() == [0]
    assert any('"c"' in note for note in found.notes)
    assert len(load_embeddings(tmp_path / "v.parquet", PictureOptions(split_column="")).train) == 6


def test_a_corrected_parquet_keeps_its_test_rows(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"x": VECTORS.tolist(), "label": LABELS.tolist(), "split": ["test", *["train"] * 5]})
    parquet.write_table(table, tmp_path / "v.parquet")
    ids = [f"{row:05d}" for row in range(1, 6)]
    made_run(tmp_path / "run", f"embeddings:{tmp_path / 'v.parquet'}", ids, LABELS[1:].tolist(), {"00001": "b"})
    apply_run(tmp_path / "run", tmp_path / "new.parquet", as_advised(tmp_path / "run") | {"00002": Correction("drop", None)})
    assert parquet.read_table(tmp_path / "new.parquet").column("label").to_pylist() == ["b", "b", "a", "b", "a"]


def test_parquet_of_uneven_lists(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"vector": [[1.0, 2.0], [1.0]], "label": ["a", "b"]}), tmp_path / "v.parquet")
    with pytest.raises(ToolError, match='"vector": row 2 has 1 numbers, row 1 has 2'):
        load_embeddings(tmp_path / "v.parquet")


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "NaN": ({"X": np.where(VECTORS[3, 2] == VECTORS, np.nan, VECTORS)}, "row 3 has a value that is NaN"),
    "beyond float32": ({"X": VECTORS * 1e200}, "beyond float32"),
    "pictures": ({"X": np.zeros((6, 2, 2))}, r"the shape is \(6, 2, 2\); vectors must be \(N, D\)"),
    "text": ({"X": VECTORS.astype("U")}, "must be numbers"),
    "counts": ({"y": LABELS[:5]}, "6 vectors, 5 labels"),
    "missing": ({"y": np.array(["a", "", "b", "a", "b", "a"])}, "1 rows have no label, the first is row 2"),
    "one class": ({"y": np.zeros(6, int)}, "1 class"),
    "both": ({"features": VECTORS}, "features and X would both do"),
    "table": ({"y": np.stack([LABELS, LABELS], 1)}, r"labels must be \(N,\)"),
    "one-hot": ({"y": np.eye(2)[[0, 1, 0, 1, 0, 1]]}, r"one-hot: store labels.argmax\(1\)"),
    "half a test set": ({"X_test": VECTORS}, "none of the keys test_labels, y_test"),
    "odd test set": ({"X_test": VECTORS[:, :2], "y_test": LABELS}, r"shape \(2,\)"),
    "ids twice": ({"ids": list("aabcde")}, 'id "a" occurs more than once'),
}


@pytest.mark.parametrize("what", FAULTS)
def test_faults_are_named(what: str, tmp_path: Path) -> None:
    arrays, says = FAULTS[what]
    np.savez(tmp_path / "v.npz", **({"X": VECTORS, "y": LABELS} | arrays))
    with pytest.raises(ToolError, match=says):
        load_embeddings(tmp_path / "v.npz")


def test_files_that_are_not_there_or_are_something_else(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no such file"):
        load_embeddings(tmp_path / "v.npz")
    with pytest.raises(UsageError, match="embeddings:FILE"):
        open_data("embeddings")
    with pytest.raises(UsageError, match="pictures:PATH"):
        open_data("pictures")
    (tmp_path / "v.npz").write_text("x")
    with pytest.raises(ToolError, match=r"not a whole NumPy file"):
        recognise(tmp_path / "v.npz")
