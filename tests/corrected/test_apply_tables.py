"""Corrected tables of pictures: their columns, types, line ends and paths stay; or class folders are made of them."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

from data.pictures.made import noise, save
from labelsieve.corrected.apply import apply_run
from labelsieve.data.pictures.opening import open_pictures
from labelsieve.errors import UsageError
from labelsieve.issues.policy import Correction
from runs.made_runs import as_advised, files_in, made_run

pytestmark = pytest.mark.usefixtures("own_cache")


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        import pyarrow.parquet

        found: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
        return found
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


def table_file(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return path


def manifest(tmp_path: Path, suffix: str, labels: tuple[Any, Any]) -> Path:
    """Six rows with a note of odd characters each; row 1 is wrong and row 4 is strange."""
    rows = []
    for k in range(6):
        save(noise(k), tmp_path / "data" / "pictures" / f"{k}.png")
        rows.append({"note": f'{k}, "x"\n\t<b>', "path": f"pictures/{k}.png", "label": labels[k % 2]})
    ids = [str(row["path"]) for row in rows]
    given = [str(row["label"]) for row in rows]
    file = table_file(tmp_path / "data" / f"labels{suffix}", rows)
    made_run(tmp_path / "run", f"pictures:{file}", ids, given, {ids[1]: given[0]}, strange=[ids[4]])
    return file


@pytest.mark.parametrize("labels", [("cat", "dog"), (3, 7)])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_table_keeps_its_columns_and_types(tmp_path: Path, suffix: str, labels: tuple[Any, Any]) -> None:
    file = manifest(tmp_path, suffix, labels)
    before, old = file.read_bytes(), rows_of(file)
    told = {"pictures/4.png": Correction("drop", None), "pictures/1.png": Correction("relabel", None)}
    done = apply_run(tmp_path / "run", tmp_path / "data" / f"new{suffix}", told)
    expected = [row | ({"label": old[0]["label"]} if k == 1 else {}) for k, row in enumerate(old) if k != 4]
    assert rows_of(done.out) == expected and done.left == 5
    assert [type(row["label"]) for row in rows_of(done.out)] == [type(row["label"]) for row in expected]
    assert file.read_bytes() == before
    found = open_pictures(done.out).collection.train
    assert list(found.ids) == [row["path"] for row in expected]


def test_a_table_in_another_folder_names_its_pictures_in_full(tmp_path: Path) -> None:
    file = manifest(tmp_path, ".csv", ("cat", "dog"))
    done = apply_run(tmp_path / "run", tmp_path / "elsewhere" / "new.csv", as_advised(tmp_path / "run"))
    assert all(Path(row["path"]).is_file() and os.path.isabs(row["path"]) for row in rows_of(done.out))  # noqa: PTH117
    assert any("absolute" in note for note in done.notes)
    assert rows_of(file)[0]["path"] == "pictures/0.png"


def test_a_table_wants_its_own_suffix_and_is_never_written_over(tmp_path: Path) -> None:
    file = manifest(tmp_path, ".csv", ("cat", "dog"))
    with pytest.raises(UsageError, match=r"name a \.csv file; or a folder"):
        apply_run(tmp_path / "run", tmp_path / "new.parquet", as_advised(tmp_path / "run"))
    before = file.read_bytes()
    with pytest.raises(UsageError, match="it exists"):
        apply_run(tmp_path / "run", file, as_advised(tmp_path / "run"))
    assert file.read_bytes() == before


def test_a_tables_pictures_as_class_folders(tmp_path: Path) -> None:
    """Two files of one name in a class get two names, and what the table keeps for a test stays apart."""
    rows, names = [], ("a/1.png", "b/1.png", "a/2.png", "b/2.png", "a/3.png", "gone.png")
    for k, name in enumerate(names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        save(noise(k), tmp_path / name)
        rows.append({"path": name, "label": ("cat", "cat", "cat", "dog", "dog", "dog")[k], "split": "train"})
    rows.append({"path": "a/3.png", "label": "dog", "split": "test", "id": "t"})
    rows = [{"id": f"k{k}"} | row for k, row in enumerate(rows)]
    file = table_file(tmp_path / "labels.csv", rows)
    ids, given = [f"k{k}" for k in range(6)], [row["label"] for row in rows[:6]]
    made_run(tmp_path / "run", f"pictures:{file}", ids, given, {"k3": "cat"})
    (tmp_path / "gone.png").unlink()
    done = apply_run(tmp_path / "run", tmp_path / "new", as_advised(tmp_path / "run") | {"k4": Correction("drop", None)}, "copy")
    after = files_in(tmp_path / "new")
    assert set(after) == {
        "changes.csv",
        *(f"train/cat/{name}.png" for name in ("1", "1-from-b", "2", "2-from-b")),
        "test/dog/3.png",
    }
    assert after["train/cat/2-from-b.png"] == (tmp_path / "b" / "2.png").read_bytes() and done.left == 5
    assert 'one picture was left out: "gone.png" (there is no such file)' in done.notes


def test_a_class_that_no_folder_can_be_called_is_named_beforehand(tmp_path: Path) -> None:
    manifest(tmp_path, ".csv", ("cat/small", "dog"))
    with pytest.raises(UsageError, match=r'no folder can be called "cat/small"; name a \.csv file'):
        apply_run(tmp_path / "run", tmp_path / "new", as_advised(tmp_path / "run"))
    assert not (tmp_path / "new").exists()


def test_semicolons_byte_order_marks_and_line_ends_stay(tmp_path: Path) -> None:
    for k in range(4):
        save(noise(k), tmp_path / f"{k}.png")
    file = tmp_path / "labels.csv"
    file.write_bytes('\ufeffpath;label;more\r\n0.png;é;"a;b"\r\n1.png;o;\r\n2.png;é;c\r\n3.png;o;d\r\n'.encode())
    made_run(tmp_path / "run", f"pictures:{file}", [f"{k}.png" for k in range(4)], ["é", "o", "é", "o"], {"1.png": "é"})
    apply_run(tmp_path / "run", tmp_path / "new.csv", as_advised(tmp_path / "run"))
    expected = '\ufeffpath;label;more\r\n0.png;é;"a;b"\r\n1.png;é;\r\n2.png;é;c\r\n3.png;o;d\r\n'.encode()
    assert (tmp_path / "new.csv").read_bytes() == expected


def test_a_table_with_spaces_before_its_paths(tmp_path: Path) -> None:
    for k in range(3):
        save(noise(k), tmp_path / f"{k}.png")
    (tmp_path / "t.csv").write_text("label, path\na, 0.png\nb, 1.png\na, 2.png\n")
    made_run(tmp_path / "run", f"pictures:{tmp_path / 't.csv'}", ["0.png", "1.png", "2.png"], list("aba"), {"2.png": "b"})
    apply_run(tmp_path / "run", tmp_path / "else" / "new.csv", as_advised(tmp_path / "run"))
    with (tmp_path / "else" / "new.csv").open() as file:
        assert list(csv.reader(file))[1:] == [[label, str(tmp_path / f"{k}.png")] for k, label in enumerate("abb")]


def test_an_imagefolder_gets_new_metadata(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for k in range(4):
        save(noise(k), source / "train" / f"{k}.png")
    table_file(source / "train" / "metadata.csv", [{"file_name": f"{k}.png", "label": "ab"[k % 2]} for k in range(4)])
    ids = [f"train/{k}.png" for k in range(4)]
    made_run(tmp_path / "run", f"pictures:{source}", ids, list("abab"), {ids[1]: "a"})
    told = {ids[1]: Correction("relabel", "a"), ids[2]: Correction("drop", None)}
    apply_run(tmp_path / "run", tmp_path / "new", told)
    assert [(row["file_name"], row["label"]) for row in rows_of(tmp_path / "new" / "train" / "metadata.csv")] == [
        ("0.png", "a"),
        ("1.png", "a"),
        ("3.png", "b"),
    ]
    assert set(files_in(tmp_path / "new" / "train")) == {"0.png", "1.png", "3.png", "metadata.csv"}


def test_rows_that_the_run_did_not_judge_are_told(tmp_path: Path) -> None:
    file = manifest(tmp_path, ".csv", ("ant", "bee"))
    assert apply_run(tmp_path / "run", tmp_path / "data" / "new.csv", as_advised(tmp_path / "run")).notes == ()
    save(noise(9), tmp_path / "data" / "pictures" / "9.png")
    file.write_text(file.read_text() + "x,pictures/9.png,ant\n")
    (tmp_path / "data" / "changes.csv").unlink()
    done = apply_run(tmp_path / "run", tmp_path / "data" / "newer.csv", as_advised(tmp_path / "run"))
    (note,) = done.notes
    assert done.left == 7 and note.startswith("one of the rows that are left the run did not judge (it was unreadable,")


@pytest.mark.parametrize(
    ("kind", "out"), [(".csv", "new.csv"), (".parquet", "new.parquet"), (".jsonl", "new.csv"), (".csv", "tree")]
)
def test_labels_that_were_corrected_in_the_source_since_the_run_stay(tmp_path: Path, kind: str, out: str) -> None:
    """Nothing was decided about 0 and 2; 5 was confirmed as it was, 1 is suggested to be another: both are as told."""
    file = manifest(tmp_path, kind, ("cat", "dog"))
    rows = rows_of(file)
    for k, label in ((0, "dog"), (2, "fox"), (5, "fox"), (1, "cat")):
        rows[k]["label"] = label
    table_file(file, rows)
    said = {"pictures/5.png": Correction("keep", None), "pictures/1.png": Correction("relabel", "cat")}
    done = apply_run(tmp_path / "run", tmp_path / "new" / out, said)
    expected = ["dog", "cat", "fox", "dog", "cat", "dog"]
    if out == "tree":
        found = {path.stem: path.parent.name for path in (tmp_path / "new" / out).rglob("*.png")}
        assert [found[str(k)] for k in range(6)] == expected
    else:
        assert [row["label"] for row in rows_of(tmp_path / "new" / out)] == expected
    stayed, overruled = (note for note in done.notes if "the source was changed since the run" in note)
    assert "2 labels are as in the source, such as that of pictures/0.png" in stayed
    assert "one label is as decided or suggested all the same, such as that of pictures/5.png" in overruled


def test_labels_of_made_noise_are_not_taken_for_edits(tmp_path: Path) -> None:
    file = manifest(tmp_path, ".csv", ("cat", "dog"))
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace("noise: none", "noise: sym:0.5"))
    table_file(file, [row | {"label": "cat"} for row in rows_of(file)])
    done = apply_run(tmp_path / "run", tmp_path / "new.csv", as_advised(tmp_path / "run"))
    assert [row["label"] for row in rows_of(tmp_path / "new.csv")] == ["cat", "cat", "cat", "dog", "cat", "dog"]
    assert not any("changed since the run" in note for note in done.notes)


@pytest.mark.parametrize(("kind", "out"), [(".csv", "new.csv"), (".jsonl", "new.csv")])
def test_rows_that_are_gone_from_a_table_are_told(tmp_path: Path, kind: str, out: str) -> None:
    file = manifest(tmp_path, kind, ("cat", "dog"))
    table_file(file, rows_of(file)[2:])
    done = apply_run(tmp_path / "run", tmp_path / "new" / out, as_advised(tmp_path / "run"))
    assert done.left == len(rows_of(tmp_path / "new" / out)) == 4
    assert any("2 samples of the run are no longer in the source, such as pictures/0.png" in note for note in done.notes)
    assert not any("did not judge" in note for note in done.notes)
