"""Corrected vectors: rows are found by the ids that the run had, and what is written can be trained on again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelsieve.config.schema import override
from labelsieve.corrected.apply import apply_run
from labelsieve.data.embeddings import measured_vectors, read_embeddings
from labelsieve.data.pictures.options import PictureOptions, PictureSettings
from labelsieve.decisions.decision import Decision
from labelsieve.errors import ToolError
from labelsieve.issues.policy import Correction
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rounds import Carried, Round
from runs.made_runs import as_advised, made_run

VECTORS = np.random.default_rng(0).normal(size=(6, 4))
LABELS = ["b", "a", "b", "a", "b", "a"]
NUMBERS = [f"{row:05d}" for row in range(6)]
DECIDED = {"00001": Correction("relabel", "b"), "00004": Correction("drop", None)}


@pytest.mark.parametrize("more", [{}, {"path": [f"p/{k}.png" for k in range(6)]}, {"image": [f"{k}" for k in range(6)]}])
def test_parquet_rows_go_by_number_whatever_the_columns_are_called(more: dict[str, Any], tmp_path: Path) -> None:
    source = tmp_path / "v.parquet"
    pq.write_table(pa.table({"emb": VECTORS.tolist(), "label": LABELS} | more), source)
    assert read_embeddings(source, PictureOptions(image_column="emb")).collection.train.ids == tuple(NUMBERS)
    made_run(tmp_path / "run", f"embeddings:{source}", NUMBERS, LABELS, {}, pictures=PictureSettings(image_column="emb"))
    done = apply_run(tmp_path / "run", tmp_path / "new.parquet", DECIDED)
    found = pq.read_table(tmp_path / "new.parquet")
    assert done.left == 5 and found["label"].to_pylist() == ["b", "b", "b", "a", "a"]
    assert found.column_names == ["emb", "label", *more]


def test_rows_without_a_label_are_left_out_where_that_is_asked_for(tmp_path: Path) -> None:
    some = [*LABELS[:2], None, *LABELS[3:]]
    pq.write_table(pa.table({"emb": VECTORS.tolist(), "label": some}), tmp_path / "v.parquet")
    np.save(tmp_path / "v.npy", VECTORS)
    (tmp_path / "v.txt").write_text("\n".join(label or "" for label in some) + "\n")
    np.savez(tmp_path / "v.npz", X=VECTORS, y=[label or "" for label in some], true_labels=LABELS, spare=np.arange(6))
    for name in ("v.parquet", "v.npy", "v.npz"):
        with pytest.raises(ToolError, match=r"1 rows have no label, the first is row 3; .*--set pictures.skip_unlabelled=true"):
            read_embeddings(tmp_path / name, PictureOptions(labels_file=tmp_path / "v.txt"))
        options = PictureOptions(labels_file=tmp_path / "v.txt", skip_unlabelled=True)
        found = read_embeddings(tmp_path / name, options)
        assert found.collection.train.ids == (*NUMBERS[:2], *NUMBERS[3:]) and "1 rows have no label: left out" in found.notes
        assert np.allclose(found.collection.train.images[2], VECTORS[3])
        assert len(measured_vectors(tmp_path / name, options).held.labels) == 5
    ids, source = [*NUMBERS[:2], *NUMBERS[3:]], f"embeddings:{tmp_path / 'v.npz'}"
    chosen = PictureSettings(skip_unlabelled=True)
    made_run(tmp_path / "run", source, ids, [*LABELS[:2], *LABELS[3:]], {}, pictures=chosen)
    apply_run(tmp_path / "run", tmp_path / "new.npz", DECIDED)
    new = np.load(tmp_path / "new.npz")
    assert new["spare"].tolist() == [0, 1, 3, 5] and new["y"].tolist() == ["b", "b", "a", "a"] and len(new["X"]) == 4


def test_only_training_rows_of_vectors_need_labels(tmp_path: Path) -> None:
    splits = ["train"] * 3 + ["test"] * 3
    pq.write_table(pa.table({"emb": VECTORS.tolist(), "label": [*LABELS[:5], None], "split": splits}), tmp_path / "v.parquet")
    found = read_embeddings(tmp_path / "v.parquet").collection
    assert found.test is not None and len(found.test.labels) == 2 and len(found.train) == 3
    np.savez(tmp_path / "v.npz", X=VECTORS, y=LABELS, X_test=VECTORS[:2], y_test=["a", ""])
    held = read_embeddings(tmp_path / "v.npz").collection.test
    assert held is not None and len(held.labels) == 1
    np.savez(tmp_path / "v.npz", X=VECTORS, y=LABELS, X_test=VECTORS[:2], y_test=["", ""])
    assert read_embeddings(tmp_path / "v.npz").collection.test is None


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_the_table_of_an_npy_file_is_written_with_its_splits(suffix: str, tmp_path: Path) -> None:
    splits = ["train", "train", "test", "train", "train", "train"]
    table = pa.table({"label": LABELS, "split": splits, "path": [f"{k}.png" for k in range(6)]})
    np.save(tmp_path / "v.npy", VECTORS)
    labels, new = tmp_path / f"labels{suffix}", tmp_path / "out" / f"labels{suffix}"
    if suffix == ".parquet":
        pq.write_table(table, labels)
    elif suffix == ".jsonl":
        labels.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        labels.write_text("label,split,path\n" + "".join(f"{','.join(row.values())}\n" for row in table.to_pylist()))
    chosen = PictureSettings(labels_file=str(labels))
    train = [row for row, split in zip(NUMBERS, splits) if split == "train"]
    given = [label for label, split in zip(LABELS, splits) if split == "train"]
    made_run(tmp_path / "run", f"embeddings:{tmp_path / 'v.npy'}", train, given, {}, pictures=chosen)
    done = apply_run(tmp_path / "run", new, DECIDED)
    assert done.left == 5 and f"pictures.labels_file={new}" in done.notes[0] and "skip_unlabelled=true" in done.notes[0]
    assert done.notes[1].startswith("one of the rows that are left the run did not judge (it was")  # the test row
    found = read_embeddings(tmp_path / "v.npy", PictureOptions(labels_file=new, skip_unlabelled=True)).collection
    assert found.train.ids == ("00000", "00001", "00003", "00005") and found.train.labels.tolist() == [1, 1, 0, 0]
    assert found.test is not None and np.allclose(found.test.images[0], VECTORS[2])


def test_what_an_earlier_round_dropped_has_no_label_in_the_table_of_an_npy_file_either(tmp_path: Path) -> None:
    """And the command that reads it back says so: without it the table was refused."""
    np.save(tmp_path / "v.npy", VECTORS)
    (tmp_path / "labels.csv").write_text("label\n" + "".join(f"{label}\n" for label in LABELS))
    told = Decision("k", NUMBERS[0], "drop", None, "ada", "2026-11-15T00:00:00Z", 0.5, None)
    made_run(tmp_path / "run", f"embeddings:{tmp_path / 'v.npy'}", NUMBERS[1:], LABELS[1:], {})
    folder = RunFolder(tmp_path / "run")
    folder.round.write_text(Round(2, "first", (), (Carried(told, 1, LABELS[0]),)).text())
    folder.write_config(override(folder.read_config(), {"data.decisions": "first"}))
    done = apply_run(tmp_path / "run", tmp_path / "out" / "labels.csv", as_advised(tmp_path / "run"))
    assert done.actions["drop"] == 1 and done.left == 5
    assert done.notes[0].startswith("1 dropped row has no label") and "skip_unlabelled=true" in done.notes[0]


def test_a_table_of_other_labels_is_refused(tmp_path: Path) -> None:
    """Ids of the run that the table does not have: it would be written as it is, and called corrected."""
    np.save(tmp_path / "v.npy", VECTORS)
    (tmp_path / "labels.csv").write_text("label\n" + "".join(f"{label}\n" for label in LABELS))
    chosen = PictureSettings(labels_file=str(tmp_path / "labels.csv"))
    made_run(tmp_path / "run", f"embeddings:{tmp_path / 'v.npy'}", ["a", "b"], LABELS[:2], {"a": LABELS[-1]}, pictures=chosen)
    with pytest.raises(ToolError, match="none of the run's 2 samples is in it"):
        apply_run(tmp_path / "run", tmp_path / "out" / "labels.csv", as_advised(tmp_path / "run"))
    assert not (tmp_path / "out" / "labels.csv").exists()
