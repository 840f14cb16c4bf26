"""Tables of paths and labels: every format, every fault, and the columns that are guessed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelsieve.data.pictures.listing import name_labels, number_labels
from labelsieve.data.pictures.opening import Opened, open_pictures
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.recognise import recognise
from labelsieve.errors import ToolError, UsageError

from .made import noise, save

ROWS: list[dict[str, Any]] = [
    {"path": "img/0.png", "label": "dog"},
    {"path": "img/1.png", "label": "cat"},
    {"path": "./img/2.png", "label": "dog"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    for number in range(3):
        save(noise(number), root / "img" / f"{number}.png")
    return root


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    names = list(rows[0])
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", "utf-8")
    else:
        mark = "\t" if path.suffix == ".tsv" else ","
        lines = [mark.join(names), *(mark.join(str(row[name]) for name in names) for row in rows)]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def opened(path: Path, **options: Any) -> Opened:
    return open_pictures(path, PictureOptions(size=12, **options))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_every_format(suffix: str, folder: Path) -> None:
    found = opened(write(folder / f"t.{suffix}", ROWS))
    train = found.collection.train
    assert found.layout.kind == "manifest" and train.classes == ("cat", "dog") and train.labels.tolist() == [1, 0, 1]
    assert train.ids == ("img/0.png", "img/1.png", "img/2.png")
    assert np.array_equal(train.images[2].numpy(), np.asarray(noise(2)).transpose(2, 0, 1))


def test_a_folder_with_one_table_is_that_table(folder: Path) -> None:
    write(folder / "labels.csv", ROWS)
    (folder / "other.csv").write_text("a,b\n1,2\n")
    assert recognise(folder).path == folder / "labels.csv"


@pytest.mark.parametrize("names", [("file", "Class"), ("filename", "category"), ("image_path", "target"), ("img", "given_label")])
def test_usual_names_are_guessed(names: tuple[str, str], folder: Path) -> None:
    rows = [{names[0]: row["path"], names[1]: row["label"], "weight": 1} for row in ROWS]
    assert opened(write(folder / "t.csv", rows)).collection.train.labels.tolist() == [1, 0, 1]


def test_columns_can_be_named_and_ids_and_splits_are_used(folder: Path) -> None:
    rows = [
        {"id": f"n{k}", "where": row["path"], "what": row["label"], "split": s}
        for k, (row, s) in enumerate(zip(ROWS, ["test", "Train", "training"]))
    ]
    found = opened(write(folder / "t.csv", rows), image_column="where", label_column="what")
    assert found.collection.train.ids == ("n1", "n2") and found.paths == ("img/1.png", "img/2.png")
    assert found.collection.test is not None and found.collection.test.labels.tolist() == [1]
    plain = opened(folder / "t.csv", image_column="where", label_column="what", id_column="", split_column="")
    assert plain.collection.train.ids == ("img/0.png", "img/1.png", "img/2.png")


def test_text_as_spreadsheets_write_it(folder: Path) -> None:
    quoted = 'path;label\r\n"img/0.png";"a;b\nc"\r\nimg/1.png; cat \r\n\r\nimg/2.png;cat;\r\n'
    (folder / "t.csv").write_bytes(b"\xef\xbb\xbf" + quoted.encode())
    found = opened(folder / "t.csv")
    assert found.collection.train.classes == ("a;b\nc", "cat") and any("spaces" in note for note in found.notes)


def test_line_breaks_in_quoted_names_are_kept(folder: Path) -> None:
    text = (
        'path,label,note\r\nimg/0.png,"a, ""b""\n","one, two\nthree, four"\r\nimg/1.png,"c\r\nd","x"\r\nimg/2.png,"c\r\nd",""\r\n'
    )
    (folder / "t.csv").write_bytes(text.encode())
    assert opened(folder / "t.csv").collection.train.classes == ('a, "b"', "c\r\nd")


def test_another_encoding_is_named_by_line_and_can_be_given(folder: Path) -> None:
    text = "path,label\nimg/0.png,dog\nimg/1.png,k\xf6ter\nimg/2.png,dog\n"
    (folder / "t.csv").write_bytes(text.encode("cp1252"))
    with pytest.raises(ToolError, match=r"line 3 is not UTF-8 .* encoding \(--encoding\), often cp1252"):
        opened(folder / "t.csv")
    assert "k\xf6ter" in opened(folder / "t.csv", encoding="cp1252").collection.train.classes
    (folder / "t.csv").write_text(text, "utf-16")
    with pytest.raises(ToolError, match=r"UTF-16, .*utf-16 as encoding \(--encoding\)"):
        opened(folder / "t.csv")
    assert len(opened(folder / "t.csv", encoding="utf-16").collection.train) == 3
    with pytest.raises(ToolError, match='no encoding "utf-99"; write encoding .--encoding.'):
        opened(folder / "t.csv", encoding="utf-99")


FAULTS: dict[str, tuple[str, str]] = {
    "two label columns": ("path,label,class\nimg/0.png,a,b\n", '"label" and "class" would both do; choose one with label_column'),
    "three label columns": ("path,label,class,category\nimg/0.png,a,b,c\n", '"label" and "class" and "category" would all do'),
    "two path columns": ("path,file,label\na,b,c\n", '"path" and "file" would both do; .* image_column'),
    "no label column": (
        "path,lable\nimg/0.png,a\n",
        'columns "path", "lable" none has .* the labels: label_column \\(--label-column\\)',
    ),
    "no header": ("img/0.png,cat\nimg/1.png,dog\n", "none has a usual name; say which one holds the paths of the pictures"),
    "a column twice": ("path,label,label\na,b,c\n", '"label" and "label" would both do|two columns'),
    "missing labels": ("path,label\nimg/0.png,a\nimg/1.png,\nimg/2.png\n", "2 of 3 rows have no label, the first is row 2"),
    "no path": ("path,label\nimg/0.png,a\n ,b\n", "row 2 has no picture path"),
    "same path": ("path,label\nimg/0.png,a\nimg/1.png,b\nimg/0.png,b\n", 'path "img/0.png" is in row 1 and again in row 3'),
    "same id": ("id,path,label\n7,img/0.png,a\n7,img/1.png,b\n", 'id "7" is in row 1 and again in row 2'),
    "no id": ("id,path,label\n7,img/0.png,a\n,img/1.png,b\n", "row 2 has no id"),
    "too many fields": ("path,label\nimg/0.png,a,b\n", "line 2 has 3 fields, the header has 2"),
    "unclosed quote": ('path,label\nimg/0.png,a\nimg/1.png,"b\nimg/2.png,a\n', "starts on line 3 .*unexpected end"),
    "unclosed in the header": ('path,"label\nimg/0.png,a\nimg/1.png,b\n', "starts on line 1 .*double quote"),
    "closed rows later": ('path,label\nimg/0.png,"a\nimg/1.png,b"\nimg/2.png,a\n', "starts on line 2 .*goes on over line breaks"),
    "text after a quote": ('path,label\nimg/0.png,"a\nimg/1.png,"b"\nimg/2.png,a\n', "starts on line 2 .*double quote"),
    "unknown split": ("path,label,split\nimg/0.png,a,trian\n", 'split "trian" is not known .did you mean "train"'),
    "nothing to train on": ("path,label,split\nimg/0.png,a,test\n", "no row is in the training split"),
    "empty": ("", "it is empty"),
    "only a header": ("path,label\n", "no rows"),
    "parent": ("path,label\nimg/0.png,a\n../x.png,b\n", '"../x.png" leads out of the root'),
    "parent inside": ("path,label\nimg/../../x.png,b\nimg/0.png,a\n", "leads out of the root"),
    "absolute": ("path,label\n/etc/passwd,b\nimg/0.png,a\n", '"/etc/passwd" leads out of the root'),
    "all missing": ("path,label\na.png,b\nb.png,a\n", 'none of its 2 pictures .* "a.png".* as root'),
    "one class": ("path,label\nimg/0.png,a\nimg/1.png,a\n", "fewer than two classes"),
}  # fmt: skip


@pytest.mark.parametrize("what", FAULTS)
def test_a_faulty_table_is_refused_with_its_fault(what: str, folder: Path) -> None:
    text, says = FAULTS[what]
    (folder / "t.csv").write_text(text)
    with pytest.raises(ToolError, match=says) as caught:
        opened(folder / "t.csv")
    assert str(folder / "t.csv") in str(caught.value)


def test_links_that_lead_out_are_refused_unless_allowed(folder: Path) -> None:
    outside = save(noise(5), folder.parent / "x.png")
    (folder / "img" / "link.png").symlink_to(outside)
    (folder / "linked").symlink_to(folder.parent)
    for name in ("img/link.png", "linked/x.png"):
        path = write(folder / "t.csv", [*ROWS, {"path": name, "label": "cat"}])
        with pytest.raises(ToolError, match=f'"{name}" leads out'):
            opened(path)
        assert len(opened(path, outside=True).collection.train) == 4
    path = write(folder / "t.csv", [*ROWS, {"path": str(outside), "label": "cat"}])
    assert str(outside) in opened(path, outside=True).collection.train.ids


def test_absolute_paths_inside_the_root_become_relative(folder: Path) -> None:
    rows = [{**row, "path": str(folder / row["path"])} for row in ROWS]
    assert opened(write(folder / "t.csv", rows)).collection.train.ids[0] == "img/0.png"


def test_another_root(folder: Path) -> None:
    path = write(folder.parent / "t.csv", ROWS)
    assert len(opened(path, root=folder).collection.train) == 3


def test_spaces_around_paths_are_left_out_where_only_so_there_is_a_file(folder: Path) -> None:
    save(noise(7), folder / "img" / " 1.png")
    (folder / "t.csv").write_text("label, path\ndog, img/0.png\ncat,img/ 1.png\ndog,img/2.png \ncat, img/9.png\n")
    found = opened(folder / "t.csv")
    assert found.collection.train.ids == ("img/0.png", "img/ 1.png", "img/2.png")
    assert "spaces around paths are left out" in found.notes and [row.path for row in found.left_out] == [" img/9.png"]
    save(noise(8), folder / " img" / "0.png")
    assert opened(folder / "t.csv").collection.train.ids[0] == " img/0.png"


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        ((".\\imgs\\0.png", "imgs\\1.png"), "paths hold backslashes: write them with / instead. Give the folder .*--root"),
        ((" imgs/0.png", "imgs/1.png"), "paths begin or end with spaces"),
        (("imgs/0.png", "imgs/1.png"), r"no such file\. Give the folder"),
        (("https://a.org/0.png", "https://a.org/1.png"), r'"https://a\.org/0\.png".*web address.*download the pictures'),
        (("IMG/0.PNG", "IMG/1.PNG"), r'There is "img/0\.png": write upper and lower case'),
    ],
)
def test_what_is_odd_about_paths_that_lead_nowhere_is_said(paths: tuple[str, str], says: str, folder: Path) -> None:
    rows = [{"label": label, "path": path} for label, path in zip("ab", paths)]
    with pytest.raises(ToolError, match=says):
        opened(write(folder / "t.csv", rows))


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("img\\{}.png", "backslashes in paths are read as /"),
        (".\\img\\{}.png", "backslashes in paths are read as /"),
        ("img/%7b{}%7d.png", "signs such as %20"),
        ("file://{root}/img/{}.png", "paths that begin with file://"),
        ("img/e\u0301{}.png", "letters with accents"),
        ("img/\u00fc{}.png", "letters with accents"),
    ],
)
def test_paths_are_read_as_the_files_are_named(written: str, says: str, folder: Path) -> None:
    for number in range(3):
        for name in (f"{{{number}}}", f"\u00e9{number}", f"u\u0308{number}"):
            save(noise(number), folder / "img" / f"{name}.png")
    rows = [{"path": written.format(number, root=folder), "label": "ab"[number % 2]} for number in range(3)]
    found = opened(write(folder / "t.csv", rows))
    assert len(found.collection.train) == 3 and not found.left_out and any(says in note for note in found.notes)


def test_a_path_that_leads_to_a_file_as_it_is_written_stays(folder: Path) -> None:
    rows = [{"path": path, "label": label} for path, label in (("img/%30.png", "a"), ("img\\0.png", "b"), ("img/0.png", "a"))]
    for row in rows:
        save(noise(0), folder / row["path"])
    found = opened(write(folder / "t.csv", rows))
    assert found.collection.train.ids == ("img/%30.png", "img\\0.png", "img/0.png") and not found.notes


def test_a_path_that_goes_up_and_comes_back_stays_in_the_root(folder: Path) -> None:
    rows = [{**row, "path": f"../data/{row['path']}"} for row in ROWS]
    assert opened(write(folder / "t.csv", rows)).collection.train.ids[0] == "img/0.png"


def test_what_is_not_there_is_said_by_its_kind(folder: Path) -> None:
    (folder / "img" / "link.png").symlink_to("gone.png")
    (folder / "img" / "empty.png").touch()
    paths = ("img/link.png", "img/empty.png", "https://a.org/1.png")
    rows = [*ROWS, *({"path": path, "label": "dog"} for path in paths)]
    reasons = [row.reason for row in opened(write(folder / "t.csv", rows)).left_out]
    assert reasons[0] == "it is a link to a file that is not there" and reasons[1] == "the file is empty"
    assert reasons[2] == "it is a web address that was not copied"


def test_missing_files_are_left_out_and_told(folder: Path) -> None:
    path = write(folder / "t.csv", [*ROWS, {"path": "img/9.png", "label": "cat"}])
    assert [(row.id, row.reason) for row in opened(path).left_out] == [("img/9.png", "there is no such file")]
    with pytest.raises(ToolError, match="no such file"):
        opened(path, strict=True)


def test_unlabelled_rows_can_be_left_out(folder: Path) -> None:
    path = write(folder / "t.jsonl", [*ROWS[:2], {"path": "img/2.png", "label": None}])
    found = opened(path, skip_unlabelled=True)
    assert len(found.collection.train) == 2 and found.left_out[0].reason == "it has no label"


def test_mixed_types_are_text_and_numbers_are_in_order(folder: Path) -> None:
    found = opened(write(folder / "t.jsonl", [{**row, "label": label} for row, label in zip(ROWS, [1, "one", 1.0])]))
    assert found.collection.train.classes == ("1", "one") and any("taken as text" in note for note in found.notes)
    named = name_labels([10, 9, 2, 10], "t")
    assert named.classes == ("2", "9", "10") and named.codes.tolist() == [2, 1, 0, 2] and named.notes == ()
    assert name_labels([True, False, None, float("nan"), b"x"], "t").codes.tolist() == [1, 0, -1, -1, 2]


def test_labels_that_cannot_be(folder: Path) -> None:
    with pytest.raises(ToolError, match="row 2: the label is a list"):
        opened(write(folder / "t.jsonl", [{**row, "label": label} for row, label in zip(ROWS, ["a", ["b"], "c"])]))
    with pytest.raises(ToolError, match=r'row 2: label "catt" .*did you mean "cat".*2 such labels'):
        name_labels(["cat", "catt", "dgo"], "t", ("cat", "dog"))
    with pytest.raises(ToolError, match=r"row 2 has label 2, outside 0\.\.1"):
        number_labels([0, 2], ("a", "b"), "t")


def test_broken_json_lines(folder: Path) -> None:
    for text, says in (('{"path": 1\n', "line 1 is not JSON"), ("[1]\n", "line 1 is not an object")):
        (folder / "t.jsonl").write_text(text)
        with pytest.raises(ToolError, match=says):
            opened(folder / "t.jsonl")


def test_a_broken_parquet_file(folder: Path) -> None:
    pytest.importorskip("pyarrow")
    (folder / "t.parquet").write_text("x")
    with pytest.raises(ToolError, match="not a whole Parquet file"):
        opened(folder / "t.parquet")


def test_without_pyarrow_the_remedy_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "t.parquet", ROWS)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ToolError, match=r"pip install 'labelsieve\[tables\]'"):
        opened(folder / "t.parquet")


def test_a_column_that_is_not_there(folder: Path) -> None:
    with pytest.raises(UsageError, match=r'no column "lable".*did you mean "label"'):
        opened(write(folder / "t.csv", ROWS), label_column="lable")


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl"])
def test_imagefolder_metadata(name: str, folder: Path) -> None:
    write(folder / name, [{"file_name": row["path"], "label": row["label"], "image": "x"} for row in ROWS])
    found = opened(folder)
    assert found.layout.kind == "imagefolder" and found.collection.train.labels.tolist() == [1, 0, 1]


def test_imagefolder_metadata_by_split(folder: Path) -> None:
    for split, names in (("train", "ab"), ("test", "ba")):
        for number in range(2):
            save(noise(number), folder / split / f"{number}.png")
        write(folder / split / "metadata.csv", [{"file_name": f"{k}.png", "label": label} for k, label in enumerate(names)])
    found = opened(folder)
    assert found.collection.train.ids == ("train/0.png", "train/1.png") and found.collection.train.labels.tolist() == [0, 1]
    assert found.collection.test is not None and found.collection.test.labels.tolist() == [1, 0]


def test_metadata_without_labels_leave_the_folders_to_speak(folder: Path) -> None:
    for name in ("cat", "dog"):
        save(noise(1), folder / name / "x.png")
    write(folder / "metadata.csv", [{"file_name": "cat/x.png", "caption": "a cat"}])
    assert recognise(folder).kind == "class folders"


def test_whole_numbers_that_a_table_wrote_as_floats_are_in_order(folder: Path) -> None:
    rows = [{"path": f"img/{k}.png", "label": label} for k, label in enumerate(("10.0", "2.0", "1.0"))]
    assert opened(write(folder / "t.csv", rows)).collection.train.classes == ("1.0", "2.0", "10.0")


def test_classes_may_be_stored_in_another_form_of_unicode() -> None:
    found = name_labels(["cafe\u0301", "bar"], "t.csv", ("bar", "caf\u00e9"))
    assert found.codes.tolist() == [1, 0] and found.classes == ("bar", "caf\u00e9")


def test_a_table_without_a_header_is_told(folder: Path) -> None:
    (folder / "t.csv").write_text("img/0.png,dog\nimg/1.png,cat\n")
    with pytest.raises(UsageError, match="first line looks like a row: put a line of names above it"):
        opened(folder / "t.csv")


def test_numbers_in_columns_of_their_own_are_told_how_vectors_are_written(tmp_path: Path) -> None:
    row = {f"f{k}": 0.5 for k in range(9)} | {"label": "a"}
    with pytest.raises(UsageError, match="Vectors are read as lists in one column"):
        opened(write(tmp_path / "t.csv", [row, row]))


def test_rows_to_measure_on_may_be_without_labels(folder: Path) -> None:
    save(noise(3), folder / "img" / "3.png")
    rows = [{**row, "split": "train"} for row in ROWS] + [{"path": "img/3.png", "label": "", "split": "test"}]
    found = opened(write(folder / "t.csv", rows))
    assert len(found.collection.train) == 3 and found.collection.test is None and not found.left_out
    assert "1 test rows have no label: not used" in found.notes
