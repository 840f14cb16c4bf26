"""`predict` for runs on vectors, and what `--out` may be."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import Shell
from cli.own import QUICK

NAMES = np.array(["a", "b", "c"])


def made(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    labels = np.arange(count) % 3
    return np.random.default_rng(seed).normal(size=(count, 12)) + 6 * np.eye(12)[labels], labels


@pytest.fixture
def run(tmp_path: Path, shell: Shell) -> Path:
    features, labels = made(90)
    np.savez(tmp_path / "v.npz", features=features, labels=NAMES[labels])
    answer = shell("train", tmp_path / "v.npz", "--out", tmp_path / "run", *QUICK, "--set", "training.epochs=8")
    assert answer.code == 0, answer.err
    return tmp_path / "run"


def test_vectors_of_every_form_are_classified(tmp_path: Path, shell: Shell, run: Path) -> None:
    features, labels = made(30, seed=1)
    ids = [f"new {k}" for k in range(30)]
    np.savez(tmp_path / "new.npz", embeddings=features, ids=np.array(ids))
    np.save(tmp_path / "new.npy", features.astype(np.float32))
    first = shell("predict", run, tmp_path / "new.npz", "--top-k", 2)
    assert first.code == 0, first.err
    rows = list(csv.DictReader(first.out.splitlines()))
    assert list(rows[0]) == ["id", "label", "probability", "label_2", "probability_2", "error"]
    assert [row["id"] for row in rows] == ids
    assert np.mean([row["label"] for row in rows] == NAMES[labels]) > 0.9
    second = shell("predict", run, tmp_path / "new.npy", "--format", "jsonl")
    records = [json.loads(line) for line in second.out.splitlines()]
    assert [record["id"] for record in records] == [f"{k:05d}" for k in range(30)]
    assert [record["predictions"][0]["label"] for record in records] == [row["label"] for row in rows]
    both = shell("predict", run, tmp_path / "new.npz", tmp_path / "new.npy", "--out", tmp_path / "both.csv")
    assert both.code == 0, both.err
    said = [row["id"] for row in csv.DictReader((tmp_path / "both.csv").open(newline=""))]
    assert said[0] == f"{tmp_path / 'new.npz'}:new 0" and said[30] == f"{tmp_path / 'new.npy'}:00000"


def test_vectors_of_every_split(tmp_path: Path, shell: Shell, run: Path) -> None:
    features, labels = made(30, seed=1)
    np.savez(tmp_path / "new.npz", features=features[:20], ids=np.arange(100, 120), test_features=features[20:])
    answer = shell("predict", run, tmp_path / "new.npz")
    assert answer.code == 0, answer.err
    rows = list(csv.DictReader(answer.out.splitlines()))
    assert [row["id"] for row in rows] == [*map(str, range(100, 120)), *(f"test/{k:05d}" for k in range(10))]
    assert np.mean([row["label"] for row in rows] == NAMES[labels]) > 0.9
    np.savez(tmp_path / "odd.npz", features=features, test_features=features[:, :5])
    odd = shell("predict", run, tmp_path / "odd.npz")
    assert odd.code == 1 and '12 in "features", 5 in "test_features"' in odd.err
    np.savez(tmp_path / "few.npz", features=features, ids=["a"], test_features=features)
    assert '1 ids for 30 samples of "features"' in shell("predict", run, tmp_path / "few.npz").err


def test_a_parquet_file_of_vectors(tmp_path: Path, shell: Shell, run: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    features, _ = made(6, seed=2)
    table = pa.table({"key": [f"k{row}" for row in range(6)], "embedding": features.tolist()})
    pyarrow.parquet.write_table(table, tmp_path / "new.parquet")
    answer = shell("predict", run, tmp_path / "new.parquet")
    assert answer.code == 0, answer.err
    assert [row["id"] for row in csv.DictReader(answer.out.splitlines())] == [f"k{row}" for row in range(6)]


def test_vectors_that_cannot_be_used_leave_nothing_behind(tmp_path: Path, shell: Shell, run: Path) -> None:
    np.save(tmp_path / "wide.npy", np.zeros((3, 13)))
    wide = shell("predict", run, tmp_path / "wide.npy", "--out", tmp_path / "out.csv")
    assert wide.code == 1 and "13 numbers" in wide.err and "reads 12" in wide.err and not wide.out
    for path in (tmp_path, tmp_path / "none.npy"):
        answer = shell("predict", run, path)
        assert answer.code == 1 and "vectors of 12 numbers" in answer.err and not answer.out
    assert not (tmp_path / "out.csv").exists()


def test_nothing_is_overwritten_and_endings_are_kept(tmp_path: Path, shell: Shell, run: Path) -> None:
    np.save(tmp_path / "new.npy", made(3)[0])
    kept = tmp_path / "important.csv"
    kept.write_text("mine")
    answer = shell("predict", run, tmp_path / "new.npy", "--out", kept)
    assert answer.code == 2 and "nothing that exists is overwritten" in answer.err and kept.read_text() == "mine"
    odd = shell("predict", run, tmp_path / "new.npy", "--out", tmp_path / "y.parquet")
    assert odd.code == 2 and ".csv or .jsonl" in odd.err and not (tmp_path / "y.parquet").exists()
    assert shell("predict", run, tmp_path / "new.npy", "--out", tmp_path / "y.txt", "--format", "csv").code == 0
