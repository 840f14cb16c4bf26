"""Rows of pictures in an .npz without a label: refused with the remedy, or left out and told where that is asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelsieve.data.arrays import read_arrays
from labelsieve.errors import ToolError
from runs.tiny import pictures

NONE: dict[str, Any] = {
    "text": (lambda labels: np.array(["cat", "dog", "cow"])[labels], ""),
    "blank text": (lambda labels: np.array(["cat", "dog", "cow"])[labels], "  "),
    "bytes": (lambda labels: np.array([b"cat", b"dog", b"cow"])[labels], b""),
    "numbers": (lambda labels: labels.astype(np.int64), -1),
    "floats": (lambda labels: labels.astype(np.float32), np.nan),
}


def saved(path: Path, case: str, bare: tuple[int, ...] = (0, 7), bare_test: tuple[int, ...] = (), **more: Any) -> Path:
    write, nothing = NONE[case]
    arrays = pictures()
    for key, rows in (("labels", bare), ("test_labels", bare_test)):
        arrays[key] = write(arrays[key])
        for row in rows:
            arrays[key][row] = nothing
    np.savez(path, **arrays, **more)
    return path


@pytest.mark.parametrize("case", NONE)
def test_rows_without_a_label_are_left_out_and_told(tmp_path: Path, case: str) -> None:
    path = saved(tmp_path / "a.npz", case, bare_test=(3,))
    with pytest.raises(ToolError, match="skip_unlabelled"):
        read_arrays(path)
    found, whole = read_arrays(path, skip_unlabelled=True), read_arrays(saved(tmp_path / "b.npz", case, ()))
    keep = [row for row in range(48) if row not in (0, 7)]
    data, all_rows = found.collection.train, whole.collection.train
    assert data.ids == tuple(f"{row:05d}" for row in keep) and data.classes == all_rows.classes
    assert data.labels.equal(all_rows.labels[keep]) and data.images.equal(all_rows.images[keep])
    assert found.collection.test is not None and len(found.collection.test.labels) == 15
    assert found.notes == ("2 rows have no label: left out", "1 test rows have no label: left out") and whole.notes == ()


def test_ids_and_true_labels_go_with_their_rows(tmp_path: Path) -> None:
    more = {"ids": np.array([f"n{row}" for row in range(48)]), "true_labels": pictures()["labels"]}
    found = read_arrays(saved(tmp_path / "a.npz", "numbers", (5,), **more), skip_unlabelled=True).collection
    assert found.train.ids[4:6] == ("n4", "n6") and found.truth is not None and len(found.truth.labels) == 47
    assert found.truth.labels.equal(found.train.labels)


def test_a_test_set_without_labels_is_none_and_data_without_labels_are_refused(tmp_path: Path) -> None:
    found = read_arrays(saved(tmp_path / "a.npz", "text", (), tuple(range(16))), skip_unlabelled=True)
    assert found.collection.test is None and found.notes == ("16 test rows have no label: left out",)
    with pytest.raises(ToolError, match="no row has a label"):
        read_arrays(saved(tmp_path / "b.npz", "text", tuple(range(48))), skip_unlabelled=True)


def test_other_negative_numbers_stay_errors(tmp_path: Path) -> None:
    arrays = pictures()
    arrays["labels"][3] = -2
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ToolError, match="run from -2"):
        read_arrays(tmp_path / "a.npz", skip_unlabelled=True)
