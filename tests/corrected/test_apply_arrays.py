"""Corrected arrays and vectors: labels are written as they were, and what goes by row loses the dropped rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelsieve.corrected.apply import apply_run
from labelsieve.data.arrays import load_arrays
from labelsieve.data.noisy_data import MEMORY
from labelsieve.errors import ToolError, UsageError
from labelsieve.issues.policy import Correction
from runs.made_runs import as_advised, made_run


@pytest.mark.parametrize("text", [True, False])
def test_arrays_become_arrays(tmp_path: Path, text: bool) -> None:
    images = np.random.default_rng(0).integers(0, 255, (6, 8, 8), np.uint8)
    labels = np.array(["b", "aaa"] * 3) if text else np.array([1, 0] * 3)
    np.savez(tmp_path / "data.npz", images=images, labels=labels, test_images=images[:2], test_labels=labels[:2])
    ids = [f"{row:05d}" for row in range(6)]
    given = [str(label) for label in labels.tolist()]
    made_run(tmp_path / "run", f"arrays:{tmp_path / 'data.npz'}", ids, given, {ids[0]: given[1]})
    before = (tmp_path / "data.npz").read_bytes()
    told = {ids[0]: Correction("relabel", None), ids[3]: Correction("drop", None)}
    done = apply_run(tmp_path / "run", tmp_path / "new.npz", told)
    found = load_arrays(tmp_path / "new.npz")
    assert found.train.ids == ("00000", "00001", "00002", "00004", "00005") and done.left == 5
    assert [found.train.classes[int(label)] for label in found.train.labels] == [given[1], given[1], given[0], given[0], given[1]]
    assert np.array_equal(found.train.images[3, 0].numpy(), images[4]) and found.test is not None
    assert (tmp_path / "data.npz").read_bytes() == before


@pytest.mark.parametrize(
    ("labels", "classes", "corrected"),
    [
        ([1, 2, 3, 1], None, [3, 2, 3, 1]),
        ([0.0, 1.0, 2.0, 0.0], None, [2.0, 1.0, 2.0, 0.0]),
        ([True, False, False, True], None, [False, False, False, True]),
        (["a", "b", "c", " a"], None, ["c", "b", "c", " a"]),
        (["a", "b ", "c", "b"], None, ["c", "b ", "c", "b"]),
        ([0, 1, 2, 0], ["1", "2", "0"], [2, 1, 2, 0]),
    ],
)
def test_labels_of_arrays_are_written_as_they_were(tmp_path: Path, labels: list[Any], classes: Any, corrected: list[Any]) -> None:
    images = np.random.default_rng(0).integers(0, 255, (4, 8, 8), np.uint8)
    more = {} if classes is None else {"classes": np.array(classes)}
    np.savez(tmp_path / "data.npz", images=images, labels=np.array(labels), **more)
    found = load_arrays(tmp_path / "data.npz").train
    given = [found.classes[code] for code in found.labels.tolist()]
    made_run(tmp_path / "run", f"arrays:{tmp_path / 'data.npz'}", list(found.ids), given, {"00000": given[2]})
    apply_run(tmp_path / "run", tmp_path / "new.npz", {"00000": Correction("relabel", None)})
    with np.load(tmp_path / "new.npz") as arrays:
        assert arrays["labels"].tolist() == corrected and arrays["labels"].dtype.kind == np.array(labels).dtype.kind
    again = load_arrays(tmp_path / "new.npz").train
    assert [again.classes[code] for code in again.labels.tolist()] == [given[2], *given[1:]]


def test_vectors_keep_their_keys(tmp_path: Path) -> None:
    vectors, labels = np.random.default_rng(0).normal(size=(4, 3)), np.array(["x", "y", "x", "y"])
    np.savez(tmp_path / "v.npz", X=vectors, y=labels, ids=np.array(list("abcd")))
    made_run(tmp_path / "run", f"embeddings:{tmp_path / 'v.npz'}", list("abcd"), labels.tolist(), {"b": "x"})
    apply_run(tmp_path / "run", tmp_path / "new.npz", as_advised(tmp_path / "run"))
    with np.load(tmp_path / "new.npz") as arrays:
        assert arrays["y"].tolist() == ["x", "x", "x", "y"] and np.array_equal(arrays["X"], vectors)


def test_every_array_by_row_loses_the_dropped_rows_and_the_rest_stays(tmp_path: Path) -> None:
    vectors, labels = np.random.default_rng(0).normal(size=(4, 3)), np.array([0, 1, 2, 3])
    others = {"weight": np.arange(4.0), "boxes": np.arange(16).reshape(4, 4), "version": np.array(3), "scale": np.arange(3)}
    held = {"test_features": vectors + 1, "test_labels": labels, "val_weight": np.arange(4)}
    classes = np.array(list("wxyz"))
    np.savez(tmp_path / "v.npz", features=vectors, labels=labels, classes=classes, **others, **held)  # type: ignore[arg-type]
    ids = [f"{row:05d}" for row in range(4)]
    made_run(tmp_path / "run", f"embeddings:{tmp_path / 'v.npz'}", ids, list("wxyz"), {})
    apply_run(tmp_path / "run", tmp_path / "new.npz", {ids[1]: Correction("drop", None)})
    with np.load(tmp_path / "new.npz") as arrays:
        for key, values in ({"features": vectors, "labels": labels} | others).items():
            stays = key in ("version", "scale")
            assert np.array_equal(arrays[key], values if stays else values[[0, 2, 3]]), key
        for key, values in ({"classes": classes} | held).items():
            assert np.array_equal(arrays[key], values), key
        assert arrays["ids"].tolist() == [ids[0], ids[2], ids[3]]


def test_a_set_that_is_built_in_becomes_arrays_or_labels(tmp_path: Path) -> None:
    from labelsieve.data.sources import load_digits

    data = load_digits(None).train
    given = [data.classes[int(label)] for label in data.labels]
    made_run(tmp_path / "run", "digits", data.ids, given, {data.ids[5]: "0" if given[5] != "0" else "1"})
    apply_run(tmp_path / "run", tmp_path / "new" / "digits.npz", as_advised(tmp_path / "run"))
    found = load_arrays(tmp_path / "new" / "digits.npz")
    assert found.train.ids == data.ids and found.test is not None and not found.mirror
    assert int((found.train.labels != data.labels).sum()) == 1
    with pytest.raises(UsageError, match=r"\.csv or \.npz"):
        apply_run(tmp_path / "run", tmp_path / "folder", as_advised(tmp_path / "run"))


@pytest.mark.parametrize("kind", ["arrays", "embeddings", "digits"])
def test_a_list_of_labels_says_how_many_rows_are_not_in_it(kind: str, tmp_path: Path) -> None:
    from labelsieve.data.sources import load_digits

    data, source = load_digits(None).train, kind
    if kind == "arrays":
        np.savez(tmp_path / "a.npz", images=data.images[:50, 0].numpy(), labels=data.labels[:50].numpy())
    elif kind == "embeddings":
        np.savez(tmp_path / "a.npz", X=data.images[:50].flatten(1).numpy().astype(float), y=data.labels[:50].numpy())
    if kind != "digits":
        source = f"{kind}:{tmp_path / 'a.npz'}"
    ids = data.ids if kind == "digits" else [f"{row:05d}" for row in range(50)]
    given = [data.classes[int(label)] for label in data.labels]
    made_run(tmp_path / "run", source, ids[:40], given[:40], {})
    done = apply_run(tmp_path / "run", tmp_path / "new" / "labels.csv", as_advised(tmp_path / "run"))
    (note,) = done.notes
    assert done.left == 40
    assert note == (
        f"{len(ids) - 40:,} rows are not in it, for the run did not judge them (they were unreadable, held out or beyond "
        f"--limit, or are new)"
    )
    made_run(tmp_path / "whole", source, ids, given[: len(ids)], {})
    assert apply_run(tmp_path / "whole", tmp_path / "all" / "labels.csv", as_advised(tmp_path / "whole")).notes == ()


def test_a_list_of_labels_is_written_without_the_data(tmp_path: Path) -> None:
    """It needs none of them; that rows beyond it were not counted is said where there may be some."""
    made_run(tmp_path / "run", f"cifar10:{tmp_path / 'gone'}", ["a", "b"], ["x", "y"], {})
    done = apply_run(tmp_path / "run", tmp_path / "one" / "labels.csv", as_advised(tmp_path / "run"))
    (note,) = done.notes
    assert note.startswith("rows that the run did not judge are not in it, and were not counted: ") and "gone" in note
    assert (tmp_path / "one" / "labels.csv").read_text() == "id,label\na,x\nb,y\n"
    made_run(tmp_path / "fit", MEMORY, ["a", "b"], ["x", "y"], {})
    assert apply_run(tmp_path / "fit", tmp_path / "two" / "labels.csv", as_advised(tmp_path / "fit")).notes == ()


def test_rows_beyond_a_limit_are_not_counted_in_silence(tmp_path: Path) -> None:
    from labelsieve.data.sources import load_digits

    data = load_digits(None).train
    given = [data.classes[int(label)] for label in data.labels[:40]]
    made_run(tmp_path / "run", "digits", data.ids[:40], given, {})
    done = apply_run(tmp_path / "run", tmp_path / "new" / "digits.npz", as_advised(tmp_path / "run"))
    (note,) = done.notes
    assert done.left == len(data) and note.startswith(f"{len(data) - 40:,} of the rows that are left the run did not judge")


def test_labels_of_arrays_that_were_corrected_since_the_run_stay(tmp_path: Path) -> None:
    arrays = {"images": np.zeros((4, 8, 8), np.uint8), "classes": np.array(["cat", "dog"])}
    np.savez(tmp_path / "data.npz", labels=np.array([0, 1, 0, 1]), **arrays)
    ids = [f"{row:05d}" for row in range(4)]
    made_run(tmp_path / "run", f"arrays:{tmp_path / 'data.npz'}", ids, ["cat", "dog"] * 2, {ids[0]: "dog"})
    np.savez(tmp_path / "data.npz", labels=np.array([0, 0, 0, 1]), **arrays)
    done = apply_run(tmp_path / "run", tmp_path / "new.npz", as_advised(tmp_path / "run"))
    with np.load(tmp_path / "new.npz") as found:
        assert found["labels"].tolist() == [1, 0, 0, 1]
    assert any("one label is as in the source, such as that of 00001" in note for note in done.notes)
    listed = apply_run(tmp_path / "run", tmp_path / "list" / "labels.csv", as_advised(tmp_path / "run"))
    rows = (tmp_path / "list" / "labels.csv").read_text().split()
    assert rows == ["id,label", "00000,dog", "00001,cat", "00002,cat", "00003,dog"]
    assert any("one label is as in the source, such as that of 00001" in note for note in listed.notes)


@pytest.mark.parametrize("named", [True, False])
def test_rows_deleted_from_arrays_move_no_correction_to_another_row(tmp_path: Path, named: bool) -> None:
    """Rows without ids go by their numbers, and those behind a deleted one have moved up."""
    labels, ids = np.array(["cat", "dog", "cat", "dog"]), [f"{row:05d}" for row in range(4)]
    arrays = {"images": np.zeros((4, 8, 8), np.uint8), "labels": labels} | ({"ids": np.array(ids)} if named else {})
    made_run(tmp_path / "run", f"arrays:{tmp_path / 'data.npz'}", ids, labels.tolist(), {ids[2]: "dog"})
    np.savez(tmp_path / "data.npz", **{key: values[1:] for key, values in arrays.items()})
    if named:
        done = apply_run(tmp_path / "run", tmp_path / "new.npz", as_advised(tmp_path / "run"))
        with np.load(tmp_path / "new.npz") as found:
            assert found["labels"].tolist() == ["dog", "dog", "dog"] and found["ids"].tolist() == ids[1:]
        assert any("one sample of the run is no longer in the source, such as 00000" in note for note in done.notes)
    else:
        with pytest.raises(ToolError, match=r"it has 3 rows, and the run had more, such as 00003; without `ids`"):
            apply_run(tmp_path / "run", tmp_path / "new.npz", as_advised(tmp_path / "run"))
        assert not (tmp_path / "new.npz").exists()
