"""Files of predicted probabilities: .npz and tables, and what is wrong with them in one sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.probabilities import read_probabilities
from labelsieve.errors import ToolError, UsageError

PROBS = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
HEAD = "id,label,cat,dog,owl\n"
ROWS = "a,cat,0.7,0.2,0.1\nb,owl,0.1,0.8,0.1\nc,owl,0.3,0.3,0.4\n"


def npz(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "p.npz", **({"pred_probs": PROBS, "labels": np.array([0, 2, 2])} | arrays))
    return folder / "p.npz"


def table(folder: Path, text: str) -> Path:
    (folder / "p.csv").write_text(text)
    return folder / "p.csv"


def test_an_npz_without_names(tmp_path: Path) -> None:
    found = read_probabilities(npz(tmp_path), PictureOptions())
    assert found.labels.classes == ("0", "1", "2") and found.labels.codes.tolist() == [0, 2, 2]
    assert found.ids == ["00000", "00001", "00002"] and found.values == pytest.approx(PROBS)


def test_an_npz_with_names_and_ids(tmp_path: Path) -> None:
    path = npz(
        tmp_path, labels=np.array(["cat", "owl", "owl"]), classes=np.array(["cat", "dog", "owl"]), ids=np.array(list("xyz"))
    )
    found = read_probabilities(path, PictureOptions())
    assert found.labels.classes == ("cat", "dog", "owl") and found.labels.codes.tolist() == [0, 2, 2] and found.ids == list("xyz")


@pytest.mark.parametrize("labels", [("cat", "owl", "owl"), (0, 2, 2)])
def test_a_table_by_name_or_by_place(tmp_path: Path, labels: tuple[Any, ...]) -> None:
    rows = [f"{name},{label},{','.join(map(str, row))}" for name, label, row in zip("abc", labels, PROBS.tolist())]
    found = read_probabilities(table(tmp_path, HEAD + "\n".join(rows)), PictureOptions())
    assert found.ids == ["a", "b", "c"] and found.labels.codes.tolist() == [0, 2, 2]
    assert found.labels.classes == ("cat", "dog", "owl") and found.values == pytest.approx(PROBS)


def test_paths_are_ids_and_other_columns_are_left_alone_when_classes_are_named(tmp_path: Path) -> None:
    rows = [f"p/{n}.png,cat,good,{','.join(map(str, row))}" for n, row in enumerate(PROBS.tolist())]
    path = table(tmp_path, "file,label,note,cat,dog,owl\n" + "\n".join(rows))
    found = read_probabilities(path, PictureOptions(classes=("dog", "cat", "owl")))
    assert found.paths == found.ids == ["p/0.png", "p/1.png", "p/2.png"]
    assert found.values[0] == pytest.approx([0.2, 0.7, 0.1]) and found.labels.codes.tolist() == [1, 1, 1]
    with pytest.raises(ToolError, match=r"row 1: \"note\" is 'good', and no number"):
        read_probabilities(path, PictureOptions())


def test_parquet_with_columns_or_a_list(tmp_path: Path) -> None:
    columns = {"label": ["cat", "owl", "owl"], **dict(zip(("cat", "dog", "owl"), PROBS.T.tolist()))}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    pq.write_table(pa.table({"label": [0, 2, 2], "pred_probs": PROBS.tolist()}), tmp_path / "b.parquet")
    for name, classes in (("a.parquet", ("cat", "dog", "owl")), ("b.parquet", ("0", "1", "2"))):
        found = read_probabilities(tmp_path / name, PictureOptions())
        assert found.values == pytest.approx(PROBS) and found.labels.classes == classes


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"pred_probs": PROBS * 2}, "row 0 adds up to 2, not to 1"),
        ({"pred_probs": np.where(np.eye(3) > 0, np.nan, PROBS)}, "row 0 has nan"),
        ({"pred_probs": PROBS - [[0.5, 0, -0.5]]}, "row 1 has -0.4, and no share is negative"),
        ({"pred_probs": PROBS[:2]}, r"the shape is \(2, 3\); 3 labels of 3 classes need \(3, 3\)"),
        ({"pred_probs": PROBS[:, 0]}, "the shape is"),
        ({"pred_probs": PROBS.astype(str)}, "must be numbers"),
        ({"labels": np.array([0, 3, 1])}, "row 2 has label 3, outside 0..2"),
        ({"labels": np.array([0, -1, 1])}, "row 2 has no label"),
        ({"ids": np.array(["a", "a", "b"])}, '"a" is in row 1 and again in row 2'),
        ({"ids": np.array(["a"])}, "1 ids for 3 labels"),
        ({"labels": np.array(["cat", "dgo", "owl"]), "classes": np.array(["cat", "dog", "owl"])}, "did you mean"),
    ],
)
def test_a_bad_npz_is_one_sentence(tmp_path: Path, arrays: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError, match=words):
        read_probabilities(npz(tmp_path, **arrays), PictureOptions())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + ROWS.replace("0.8", "0.9"), "row 2 adds up to 1.1"),
        (HEAD + ROWS.replace("0.8", ""), "row 2: \"dog\" is '', and no number"),
        (HEAD + ROWS.replace("b,owl", "b,fox"), 'label "fox" is not one of 3 classes'),
        (HEAD + ROWS.replace("b,owl", "b,"), "row 2 has no label"),
        ("label,cat\ncat,1\n", "there is 1 class"),
        ("label\ncat\n", "no columns of probabilities"),
        ("label,cat,cat\ncat,0,1\n", 'two columns are named "cat"'),
    ],
)
def test_a_bad_table_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        read_probabilities(table(tmp_path, text), PictureOptions())


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "q.npz", features=PROBS, labels=np.array([0, 1, 2]))
    with pytest.raises(ToolError, match=r"it has no pred_probs \(N, K\); the keys are features, labels"):
        read_probabilities(tmp_path / "q.npz", PictureOptions())
    with pytest.raises(UsageError, match="none has a usual name"):
        read_probabilities(table(tmp_path, "a,b\n1,0\n"), PictureOptions())
    with pytest.raises(ToolError, match="no such file"):
        read_probabilities(tmp_path / "none.npz", PictureOptions())
