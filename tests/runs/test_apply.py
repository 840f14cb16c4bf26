"""Corrected data sets: folders, tables, arrays; names of all kinds; and that nothing that exists is touched."""

import csv
import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data.pictures.made import class_folders, noise, save
from labelsieve.data.arrays import load_arrays
from labelsieve.data.corrected import tree as corrected_tree
from labelsieve.data.pictures.opening import open_pictures
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.recognise import list_pictures, recognise
from labelsieve.errors import ToolError, UsageError
from labelsieve.issues.policy import Decision, Policy
from labelsieve.runs import atomic
from labelsieve.runs.apply import Applied, apply_run
from runs.made_runs import made_run

ODD = 'a "b" <i>, c\n'  # a class and a file may be called so
CLASSES = ("ant", "bee", "cat", "dog", ODD)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def changes(applied: Applied) -> list[dict[str, str]]:
    with applied.changes.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three pictures in each class folder, 0.png to 2.png in all of them."""
    return class_folders(tmp_path / "source", CLASSES)


@pytest.fixture
def run(tmp_path: Path, tree: Path) -> Path:
    """A run that would move ant/0.png to dog and bee/1.png to the oddly named class, and drop cat/2.png."""
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*.png"))
    given = [name.rpartition("/")[0] for name in names]
    wrong = {"ant/0.png": "dog", "bee/1.png": ODD, f"{ODD}/0.png": "bee"}
    made_run(tmp_path / "run", f"pictures:{tree}", names, given, wrong, strange=["cat/2.png"])
    return tmp_path / "run"


@pytest.mark.parametrize("put", ["hardlink", "symlink", "copy"])
def test_a_folder_becomes_a_new_folder(tmp_path: Path, tree: Path, run: Path, put: str) -> None:
    before = contents(tree)
    done = apply_run(run, tmp_path / "new", Policy(), put=put)
    after = contents(tmp_path / "new")
    moved = {
        "ant/0.png": "dog/0-from-ant.png",
        "bee/1.png": f"{ODD}/1-from-bee.png",
        f"{ODD}/0.png": f"bee/0-from-{ODD}.png",
    }
    expected = {moved.get(name, name): content for name, content in before.items() if name != "cat/2.png"}
    assert {name: content for name, content in after.items() if name != "changes.csv"} == expected
    assert contents(tree) == before
    assert (done.actions["relabel"], done.actions["drop"], done.left) == (3, 1, len(expected))
    new = tmp_path / "new" / "cat" / "0.png"
    assert new.is_symlink() == (put == "symlink")
    assert (new.stat().st_ino == (tree / "cat" / "0.png").stat().st_ino) == (put != "copy")


@pytest.mark.parametrize("readable", [False, True])
def test_a_copy_that_fails_blames_the_side_that_failed(
    tmp_path: Path, tree: Path, run: Path, readable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*words: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(corrected_tree.shutil, "copy2", fail)
    if not readable:
        monkeypatch.setattr(corrected_tree, "read_through", fail)
    with pytest.raises(ToolError) as caught:
        apply_run(run, tmp_path / "new", Policy(), put="copy")
    source, target = f"{tree}/", str(tmp_path / "new")
    assert str(caught.value).startswith(target if readable else source)
    assert (".png: this picture cannot be read (Input/output error)" in str(caught.value)) != readable
    assert not (tmp_path / "new").exists()


def test_links_that_lead_elsewhere_come_with_the_command_that_reads_them(tmp_path: Path, run: Path) -> None:
    notes = apply_run(run, tmp_path / "linked", Policy(), put="symlink").notes
    assert any(f"labelsieve train {tmp_path / 'linked'} --set pictures.outside=true --out RUN" in note for note in notes)
    assert apply_run(run, tmp_path / "hard", Policy()).notes == ()


def test_changes_say_old_new_and_why(tmp_path: Path, run: Path) -> None:
    rows = {row["id"]: row for row in changes(apply_run(run, tmp_path / "new", Policy()))}
    assert set(rows) == {"ant/0.png", "bee/1.png", f"{ODD}/0.png", "cat/2.png"}
    assert (rows["bee/1.png"]["old"], rows["bee/1.png"]["new"], rows["bee/1.png"]["action"]) == ("bee", ODD, "relabel")
    assert (rows["cat/2.png"]["new"], rows["cat/2.png"]["action"]) == ("", "drop")
    assert "Looks like" in rows["ant/0.png"]["why"] and "Like none" in rows["cat/2.png"]["why"]


def test_the_new_folder_can_be_trained_on(tmp_path: Path, run: Path) -> None:
    apply_run(run, tmp_path / "new", Policy())
    found = open_pictures(tmp_path / "new").collection.train
    labels = {name: found.classes[int(label)] for name, label in zip(found.ids, found.labels)}
    assert len(found) == 14 and labels["dog/0-from-ant.png"] == "dog"


def test_a_moved_picture_keeps_its_name_where_that_is_free(tmp_path: Path) -> None:
    tree = tmp_path / "source"
    for name in ("ant/deep/1.png", "bee/2.png", "bee/3.png", "ant/4.png"):
        save(noise(hash(name) % 1000), tree / name)
    names = ["ant/deep/1.png", "bee/2.png", "bee/3.png", "ant/4.png"]
    made_run(tmp_path / "run", f"pictures:{tree}", names, ["ant", "bee", "bee", "ant"], {"ant/deep/1.png": "bee"})
    apply_run(tmp_path / "run", tmp_path / "new", Policy())
    assert set(contents(tmp_path / "new")) == {"bee/deep/1.png", "bee/2.png", "bee/3.png", "ant/4.png", "changes.csv"}


def test_splits_that_no_run_judges_come_along(tmp_path: Path) -> None:
    class_folders(tmp_path / "source" / "train", ("ant", "bee"), each=2)
    class_folders(tmp_path / "source" / "test", ("ant", "bee"), each=1, seed=50)
    names = ["train/ant/0.png", "train/ant/1.png", "train/bee/0.png", "train/bee/1.png"]
    source = f"pictures:{tmp_path / 'source'}"
    made_run(tmp_path / "run", source, names, ["ant", "ant", "bee", "bee"], {"train/ant/0.png": "bee"})
    done = apply_run(tmp_path / "run", tmp_path / "new", Policy())
    expected = {"train/ant/1.png", "train/bee/0.png", "train/bee/0-from-ant.png", "train/bee/1.png", "test/ant/0.png"}
    assert set(contents(tmp_path / "new")) == expected | {"test/bee/0.png", "changes.csv"} and done.left == 6


def test_pictures_gone_since_the_run_are_told(tmp_path: Path, tree: Path, run: Path) -> None:
    (tree / "dog" / "1.png").unlink()
    done = apply_run(run, tmp_path / "new", Policy())
    assert any("1 samples of the run are no longer in the source, such as dog/1.png" in note for note in done.notes)


@pytest.mark.parametrize("place", ["new", "source/new", "source", "source/ant/new", "link/new"])
def test_nothing_is_written_over_or_into_the_source(tmp_path: Path, tree: Path, run: Path, place: str) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "link").symlink_to(tree)
    before = contents(tmp_path)
    with pytest.raises(UsageError, match="choose another --out"):
        apply_run(run, tmp_path / place, Policy())
    assert contents(tmp_path) == before


def test_where_the_data_were_is_a_source_too(tmp_path: Path, tree: Path, run: Path) -> None:
    shutil.copytree(tree, tmp_path / "moved")
    for place in ("source/new", "moved/new"):
        with pytest.raises(UsageError, match="it lies inside the source"):
            apply_run(run, tmp_path / place, Policy(), source=f"pictures:{tmp_path / 'moved'}")


def test_a_dangling_link_counts_as_something_that_exists(tmp_path: Path, run: Path) -> None:
    (tmp_path / "new").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="it exists"):
        apply_run(run, tmp_path / "new", Policy())


@pytest.mark.parametrize("name", ["labels.xlsx", "data.zip", "labels.JSON"])
def test_no_folder_is_made_that_is_called_like_a_file(tmp_path: Path, run: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"name a folder, or a \.csv file"):
        apply_run(run, tmp_path / name, Policy())
    assert not (tmp_path / name).exists()


def test_a_changes_file_beside_is_not_written_over(tmp_path: Path, run: Path) -> None:
    (tmp_path / "changes.csv").write_text("mine")
    with pytest.raises(UsageError, match="changes.csv: it exists"):
        apply_run(run, tmp_path / "labels.csv", Policy())
    assert (tmp_path / "changes.csv").read_text() == "mine" and not (tmp_path / "labels.csv").exists()


def test_the_data_set_and_the_list_of_changes_need_two_names(tmp_path: Path, run: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for place in ("folder/changes.csv", "folder/../folder/changes.csv", "link/changes.csv"):
        with pytest.raises(UsageError, match="choose another --out"):
            apply_run(run, tmp_path / place, Policy())
    assert not list((tmp_path / "folder").iterdir())


def test_a_data_set_without_its_list_of_changes_is_not_left(tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str) -> None:
        raise ToolError("disk full")

    (tmp_path / "there").mkdir()
    monkeypatch.setattr(atomic, "write_text", full)
    with pytest.raises(ToolError, match="disk full"):
        apply_run(run, tmp_path / "there" / "labels.csv", Policy())
    assert not list((tmp_path / "there").iterdir())


def test_a_folder_as_a_table_that_train_reads(tmp_path: Path, tree: Path, run: Path) -> None:
    """Above the pictures their paths start from the table; elsewhere it says which --root goes with it."""
    (tmp_path / "else").mkdir()
    for out, root in ((tmp_path / "above.csv", None), (tmp_path / "else" / "aside.csv", tree)):
        done = apply_run(run, out, Policy())
        options = PictureOptions(root=root)
        listing = list_pictures(recognise(out, options), options)
        assert len(listing.ids) == done.left == 14 and "ant/0.png" in list(listing.ids)
        assert any(f"--root {tree}" in note for note in done.notes) == (root is not None)


def test_the_labels_alone(tmp_path: Path, run: Path) -> None:
    done = apply_run(run, tmp_path / "labels.csv", Policy())
    with (tmp_path / "labels.csv").open(newline="") as file:
        rows = {row["id"]: row["label"] for row in csv.DictReader(file)}
    assert len(rows) == done.left == 14
    assert rows["ant/0.png"] == "dog" and rows["bee/1.png"] == ODD and "cat/2.png" not in rows


def test_decisions_decide(tmp_path: Path, run: Path) -> None:
    told = {"ant/0.png": Decision("keep", None), "dog/2.png": Decision("relabel", ODD), "bee/0.png": Decision("drop", None)}
    done = apply_run(run, tmp_path / "new", Policy(), told)
    found = set(contents(tmp_path / "new"))
    assert {"ant/0.png", f"{ODD}/2-from-dog.png", "cat/2.png"} <= found and "bee/0.png" not in found
    assert {row["why"] for row in changes(done)} == {"decided by a person"}


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
    told = {"pictures/4.png": Decision("drop", None), "pictures/1.png": Decision("relabel", None)}
    done = apply_run(tmp_path / "run", tmp_path / "data" / f"new{suffix}", Policy(), told)
    expected = [row | ({"label": old[0]["label"]} if k == 1 else {}) for k, row in enumerate(old) if k != 4]
    assert rows_of(done.out) == expected and done.left == 5
    assert [type(row["label"]) for row in rows_of(done.out)] == [type(row["label"]) for row in expected]
    assert file.read_bytes() == before
    found = open_pictures(done.out).collection.train
    assert list(found.ids) == [row["path"] for row in expected]


def test_a_table_in_another_folder_names_its_pictures_in_full(tmp_path: Path) -> None:
    file = manifest(tmp_path, ".csv", ("cat", "dog"))
    done = apply_run(tmp_path / "run", tmp_path / "elsewhere" / "new.csv", Policy())
    assert all(Path(row["path"]).is_file() and os.path.isabs(row["path"]) for row in rows_of(done.out))  # noqa: PTH117
    assert any("absolute" in note for note in done.notes)
    assert rows_of(file)[0]["path"] == "pictures/0.png"


def test_a_table_wants_its_own_suffix_and_is_never_written_over(tmp_path: Path) -> None:
    file = manifest(tmp_path, ".csv", ("cat", "dog"))
    with pytest.raises(UsageError, match=r"name a \.csv file; or a folder"):
        apply_run(tmp_path / "run", tmp_path / "new.parquet", Policy())
    before = file.read_bytes()
    with pytest.raises(UsageError, match="it exists"):
        apply_run(tmp_path / "run", file, Policy())
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
    done = apply_run(tmp_path / "run", tmp_path / "new", Policy(), {"k4": Decision("drop", None)}, "copy", follow=True)
    after = contents(tmp_path / "new")
    assert set(after) == {
        "changes.csv",
        *(f"train/cat/{name}.png" for name in ("1", "1-from-b", "2", "2-from-b")),
        "test/dog/3.png",
    }
    assert after["train/cat/2-from-b.png"] == (tmp_path / "b" / "2.png").read_bytes() and done.left == 5
    assert any("1 samples of the run are no longer in the source, such as k5" in note for note in done.notes)


def test_a_class_that_no_folder_can_be_called_is_named_beforehand(tmp_path: Path) -> None:
    manifest(tmp_path, ".csv", ("cat/small", "dog"))
    with pytest.raises(UsageError, match=r'no folder can be called "cat/small"; name a \.csv file'):
        apply_run(tmp_path / "run", tmp_path / "new", Policy())
    assert not (tmp_path / "new").exists()


def test_semicolons_byte_order_marks_and_line_ends_stay(tmp_path: Path) -> None:
    for k in range(4):
        save(noise(k), tmp_path / f"{k}.png")
    file = tmp_path / "labels.csv"
    file.write_bytes('\ufeffpath;label;more\r\n0.png;é;"a;b"\r\n1.png;o;\r\n2.png;é;c\r\n3.png;o;d\r\n'.encode())
    made_run(tmp_path / "run", f"pictures:{file}", [f"{k}.png" for k in range(4)], ["é", "o", "é", "o"], {"1.png": "é"})
    apply_run(tmp_path / "run", tmp_path / "new.csv", Policy())
    expected = '\ufeffpath;label;more\r\n0.png;é;"a;b"\r\n1.png;é;\r\n2.png;é;c\r\n3.png;o;d\r\n'.encode()
    assert (tmp_path / "new.csv").read_bytes() == expected


def test_a_table_with_spaces_before_its_paths(tmp_path: Path) -> None:
    for k in range(3):
        save(noise(k), tmp_path / f"{k}.png")
    (tmp_path / "t.csv").write_text("label, path\na, 0.png\nb, 1.png\na, 2.png\n")
    made_run(tmp_path / "run", f"pictures:{tmp_path / 't.csv'}", ["0.png", "1.png", "2.png"], list("aba"), {"2.png": "b"})
    apply_run(tmp_path / "run", tmp_path / "else" / "new.csv", Policy())
    with (tmp_path / "else" / "new.csv").open() as file:
        assert list(csv.reader(file))[1:] == [[label, str(tmp_path / f"{k}.png")] for k, label in enumerate("abb")]


def test_an_imagefolder_gets_new_metadata(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for k in range(4):
        save(noise(k), source / "train" / f"{k}.png")
    table_file(source / "train" / "metadata.csv", [{"file_name": f"{k}.png", "label": "ab"[k % 2]} for k in range(4)])
    ids = [f"train/{k}.png" for k in range(4)]
    made_run(tmp_path / "run", f"pictures:{source}", ids, list("abab"), {ids[1]: "a"})
    told = {ids[1]: Decision("relabel", "a"), ids[2]: Decision("drop", None)}
    apply_run(tmp_path / "run", tmp_path / "new", Policy(), told)
    assert [(row["file_name"], row["label"]) for row in rows_of(tmp_path / "new" / "train" / "metadata.csv")] == [
        ("0.png", "a"),
        ("1.png", "a"),
        ("3.png", "b"),
    ]
    assert set(contents(tmp_path / "new" / "train")) == {"0.png", "1.png", "3.png", "metadata.csv"}


@pytest.mark.parametrize("text", [True, False])
def test_arrays_become_arrays(tmp_path: Path, text: bool) -> None:
    images = np.random.default_rng(0).integers(0, 255, (6, 8, 8), np.uint8)
    labels = np.array(["b", "aaa"] * 3) if text else np.array([1, 0] * 3)
    np.savez(tmp_path / "data.npz", images=images, labels=labels, test_images=images[:2], test_labels=labels[:2])
    ids = [f"{row:05d}" for row in range(6)]
    given = [str(label) for label in labels.tolist()]
    made_run(tmp_path / "run", f"arrays:{tmp_path / 'data.npz'}", ids, given, {ids[0]: given[1]})
    before = (tmp_path / "data.npz").read_bytes()
    told = {ids[0]: Decision("relabel", None), ids[3]: Decision("drop", None)}
    done = apply_run(tmp_path / "run", tmp_path / "new.npz", Policy(), told)
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
    apply_run(tmp_path / "run", tmp_path / "new.npz", Policy(), {"00000": Decision("relabel", None)})
    with np.load(tmp_path / "new.npz") as arrays:
        assert arrays["labels"].tolist() == corrected and arrays["labels"].dtype.kind == np.array(labels).dtype.kind
    again = load_arrays(tmp_path / "new.npz").train
    assert [again.classes[code] for code in again.labels.tolist()] == [given[2], *given[1:]]


def test_vectors_keep_their_keys(tmp_path: Path) -> None:
    vectors, labels = np.random.default_rng(0).normal(size=(4, 3)), np.array(["x", "y", "x", "y"])
    np.savez(tmp_path / "v.npz", X=vectors, y=labels, ids=np.array(list("abcd")))
    made_run(tmp_path / "run", f"embeddings:{tmp_path / 'v.npz'}", list("abcd"), labels.tolist(), {"b": "x"})
    apply_run(tmp_path / "run", tmp_path / "new.npz", Policy(relabel_above=0.9))
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
    apply_run(tmp_path / "run", tmp_path / "new.npz", Policy(), {ids[1]: Decision("drop", None)})
    with np.load(tmp_path / "new.npz") as arrays:
        for key, values in ({"features": vectors, "labels": labels} | others).items():
            stays = key in ("version", "scale")
            assert np.array_equal(arrays[key], values if stays else values[[0, 2, 3]]), key
        for key, values in ({"classes": classes} | held).items():
            assert np.array_equal(arrays[key], values), key
        assert arrays["ids"].tolist() == [ids[0], ids[2], ids[3]]


def test_a_set_that_is_built_in_becomes_arrays_or_labels(tmp_path: Path) -> None:
    from labelsieve.data.digits import load_digits

    data = load_digits(None).train
    given = [data.classes[int(label)] for label in data.labels]
    made_run(tmp_path / "run", "digits", data.ids, given, {data.ids[5]: "0" if given[5] != "0" else "1"})
    apply_run(tmp_path / "run", tmp_path / "new" / "digits.npz", Policy())
    found = load_arrays(tmp_path / "new" / "digits.npz")
    assert found.train.ids == data.ids and found.test is not None and not found.mirror
    assert int((found.train.labels != data.labels).sum()) == 1
    with pytest.raises(UsageError, match=r"\.csv or \.npz"):
        apply_run(tmp_path / "run", tmp_path / "folder", Policy())


def test_emptied_classes_and_made_noise_are_told(tmp_path: Path, tree: Path) -> None:
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*.png"))
    given = [name.rpartition("/")[0] for name in names]
    made_run(tmp_path / "run", f"pictures:{tree}", names, given, {})
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace("noise: none", "noise: sym:0.1"))
    told = {f"ant/{k}.png": Decision("drop", None) for k in range(3)}
    done = apply_run(tmp_path / "run", tmp_path / "new", Policy(), told)
    assert any('no sample is left of "ant"' in note for note in done.notes)
    assert any("sym:0.1" in note for note in done.notes)


def test_dropping_everything_writes_nothing(tmp_path: Path, run: Path) -> None:
    with pytest.raises(ToolError, match="no picture would be left"):
        apply_run(run, tmp_path / "new", Policy(drop_below=1.0))
    assert not (tmp_path / "new").exists() and not list(tmp_path.glob(".new*"))


def test_a_run_without_issues_says_so(tmp_path: Path, run: Path) -> None:
    (run / "issues.csv").unlink()
    with pytest.raises(ToolError, match="labelsieve resume"):
        apply_run(run, tmp_path / "new", Policy())
