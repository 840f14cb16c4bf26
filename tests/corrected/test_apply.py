"""Corrected data sets: folders of pictures, names of all kinds, decisions; and that nothing that exists is touched."""

import csv
import errno
import io
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from data.pictures.made import class_folders, noise, save
from labelsieve.corrected import tree as trees
from labelsieve.corrected.apply import Applied, apply_run, automatic
from labelsieve.data.pictures.opening import open_pictures
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.origins import Files
from labelsieve.data.pictures.recognise import list_pictures, recognise
from labelsieve.errors import ToolError, UsageError
from labelsieve.issues.policy import Correction
from labelsieve.issues.table import read_issues
from labelsieve.runs import atomic
from labelsieve.runs.findings import read_findings
from labelsieve.runs.folder import RunFolder
from runs.made_runs import as_advised, files_in, made_run

pytestmark = pytest.mark.usefixtures("own_cache")

ODD = 'a "b" <i>, c\n'  # a class and a file may be called so
CLASSES = ("ant", "bee", "cat", "dog", ODD)


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
    before = files_in(tree)
    done = apply_run(run, tmp_path / "new", as_advised(run), put=put)
    after = files_in(tmp_path / "new")
    moved = {
        "ant/0.png": "dog/0-from-ant.png",
        "bee/1.png": f"{ODD}/1-from-bee.png",
        f"{ODD}/0.png": f"bee/0-from-{ODD}.png",
    }
    expected = {moved.get(name, name): content for name, content in before.items() if name != "cat/2.png"}
    assert {name: content for name, content in after.items() if name != "changes.csv"} == expected
    assert files_in(tree) == before
    assert (done.actions["relabel"], done.actions["drop"], done.left) == (3, 1, len(expected))
    new = tmp_path / "new" / "cat" / "0.png"
    assert new.is_symlink() == (put == "symlink")
    assert (new.stat().st_ino == (tree / "cat" / "0.png").stat().st_ino) == (put != "copy")


def test_a_run_with_a_caution_vouches_for_nothing(tmp_path: Path, run: Path) -> None:
    """It would relabel three labels, and was not trained to its end."""
    with pytest.raises(ToolError, match="--auto is refused while the run has a caution. The first: Stopped.*labelsieve review"):
        automatic(RunFolder.open(run), read_findings(RunFolder.open(run)))


@pytest.mark.parametrize("readable", [False, True])
def test_a_copy_that_fails_blames_the_side_that_failed(
    tmp_path: Path, tree: Path, run: Path, readable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*words: object, **named: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    class Bad(io.FileIO):
        read = fail

    if readable:
        monkeypatch.setattr(trees.os, "utime", fail)
    else:
        monkeypatch.setattr(Files, "open", lambda self, row: Bad(next(tree.rglob("*.png"))))
    with pytest.raises(ToolError) as caught:
        apply_run(run, tmp_path / "new", as_advised(run), put="copy")
    source, target = f"{tree}/", str(tmp_path / "new")
    assert str(caught.value).startswith(target if readable else source)
    assert (".png: this picture cannot be read (Input/output error)" in str(caught.value)) != readable
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="this system tells of no holes")
def test_a_copy_keeps_holes(tmp_path: Path) -> None:
    """Of a file of a few bytes on the disk that says it has gigabytes, whatever it holds."""
    source, made = tmp_path / "0.png", tmp_path / "new.png"
    for begin, middle, end in ((b"", b"", b""), (b"begin", b"", b"end"), (b"", b"middle", b""), (b"x" * 3_000_000, b"m", b"")):
        size = 2**21 if len(begin) > 2**21 else 2**33
        with source.open("wb") as file:
            file.write(begin)
            file.seek(2**22)
            file.write(middle)
            file.truncate(2**22 + size)
            file.seek(0, 2)
            file.write(end)
        with source.open("rb") as opened:
            trees.copy(opened, str(source), str(made))
        assert made.stat().st_size == source.stat().st_size
        assert made.stat().st_blocks <= source.stat().st_blocks + 2 * 2**21 // 512
        with source.open("rb") as left, made.open("rb") as right:
            for place in (0, 2**22, 2**22 + size - 2**20):
                assert left.seek(place) == right.seek(place) and left.read(2**22) == right.read(2**22)
        made.unlink()


def test_links_that_lead_elsewhere_come_with_the_command_that_reads_them(tmp_path: Path, run: Path) -> None:
    notes = apply_run(run, tmp_path / "linked", as_advised(run), put="symlink").notes
    assert any(f"labelsieve train {tmp_path / 'linked'} --set pictures.outside=true --out RUN" in note for note in notes)
    assert apply_run(run, tmp_path / "hard", as_advised(run)).notes == ()


def test_changes_say_old_new_and_why(tmp_path: Path, run: Path) -> None:
    rows = {row["id"]: row for row in changes(apply_run(run, tmp_path / "new", as_advised(run)))}
    assert set(rows) == {"ant/0.png", "bee/1.png", f"{ODD}/0.png", "cat/2.png"}
    assert (rows["bee/1.png"]["old"], rows["bee/1.png"]["new"], rows["bee/1.png"]["action"]) == ("bee", ODD, "relabel")
    assert (rows["cat/2.png"]["new"], rows["cat/2.png"]["action"]) == ("", "drop")
    assert "Looks like" in rows["ant/0.png"]["why"] and "Looks like none" in rows["cat/2.png"]["why"]


def test_the_new_folder_can_be_trained_on(tmp_path: Path, run: Path) -> None:
    apply_run(run, tmp_path / "new", as_advised(run))
    found = open_pictures(tmp_path / "new").collection.train
    labels = {name: found.classes[int(label)] for name, label in zip(found.ids, found.labels)}
    assert len(found) == 14 and labels["dog/0-from-ant.png"] == "dog"


def test_a_moved_picture_keeps_its_name_where_that_is_free(tmp_path: Path) -> None:
    tree = tmp_path / "source"
    for name in ("ant/deep/1.png", "bee/2.png", "bee/3.png", "ant/4.png"):
        save(noise(hash(name) % 1000), tree / name)
    names = ["ant/deep/1.png", "bee/2.png", "bee/3.png", "ant/4.png"]
    made_run(tmp_path / "run", f"pictures:{tree}", names, ["ant", "bee", "bee", "ant"], {"ant/deep/1.png": "bee"})
    apply_run(tmp_path / "run", tmp_path / "new", as_advised(tmp_path / "run"))
    assert set(files_in(tmp_path / "new")) == {"bee/deep/1.png", "bee/2.png", "bee/3.png", "ant/4.png", "changes.csv"}


def test_splits_that_no_run_judges_come_along(tmp_path: Path) -> None:
    class_folders(tmp_path / "source" / "train", ("ant", "bee"), each=2)
    class_folders(tmp_path / "source" / "test", ("ant", "bee"), each=1, seed=50)
    names = ["train/ant/0.png", "train/ant/1.png", "train/bee/0.png", "train/bee/1.png"]
    source = f"pictures:{tmp_path / 'source'}"
    made_run(tmp_path / "run", source, names, ["ant", "ant", "bee", "bee"], {"train/ant/0.png": "bee"})
    done = apply_run(tmp_path / "run", tmp_path / "new", as_advised(tmp_path / "run"))
    expected = {"train/ant/1.png", "train/bee/0.png", "train/bee/0-from-ant.png", "train/bee/1.png", "test/ant/0.png"}
    assert set(files_in(tmp_path / "new")) == expected | {"test/bee/0.png", "changes.csv"} and done.left == 6
    (note,) = done.notes
    assert note.startswith("2 of the pictures that are left the run did not judge")


def test_what_could_not_be_read_is_not_counted_in_silence(tmp_path: Path, tree: Path, run: Path) -> None:
    assert apply_run(run, tmp_path / "new", as_advised(run)).notes == ()
    (tree / "ant" / "empty.png").write_bytes(b"")
    done = apply_run(run, tmp_path / "again", as_advised(run))
    assert done.left == len(files_in(tree)) - 1  # one is dropped
    assert done.notes == (
        "one of the pictures that are left the run did not judge (it was unreadable, held out or beyond --limit, or is new): "
        "as before",
    )
    (note,) = apply_run(run, tmp_path / "as.csv", as_advised(run)).notes
    assert note.startswith("one picture is not in it, for the run did not judge it (")


def test_a_table_of_a_folder_says_how_many_pictures_it_does_not_have(tmp_path: Path) -> None:
    """Those of other splits, and those beyond a limit: whoever trains on the table should know that it is not all."""
    class_folders(tmp_path / "source" / "train", ("ant", "bee"), each=2)
    class_folders(tmp_path / "source" / "test", ("ant", "bee"), each=1, seed=50)
    names = ["train/ant/0.png", "train/bee/0.png"]
    made_run(tmp_path / "run", f"pictures:{tmp_path / 'source'}", names, ["ant", "bee"], {})
    done = apply_run(tmp_path / "run", tmp_path / "new.csv", as_advised(tmp_path / "run"))
    (note,) = done.notes
    assert done.left == 2 and note.startswith("4 pictures are not in it, for the run did not judge them (they were unreadable,")


def test_pictures_gone_since_the_run_are_told(tmp_path: Path, tree: Path, run: Path) -> None:
    (tree / "dog" / "1.png").unlink()
    done = apply_run(run, tmp_path / "new", as_advised(run))
    assert any("one sample of the run is no longer in the source, such as dog/1.png" in note for note in done.notes)


@pytest.mark.parametrize("place", ["new", "source/new", "source", "source/ant/new", "link/new"])
def test_nothing_is_written_over_or_into_the_source(tmp_path: Path, tree: Path, run: Path, place: str) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "link").symlink_to(tree)
    before = files_in(tmp_path)
    with pytest.raises(UsageError, match="choose another --out"):
        apply_run(run, tmp_path / place, as_advised(run))
    assert files_in(tmp_path) == before


def test_where_the_data_were_is_a_source_too(tmp_path: Path, tree: Path, run: Path) -> None:
    shutil.copytree(tree, tmp_path / "moved")
    for place in ("source/new", "moved/new"):
        with pytest.raises(UsageError, match="it lies inside the source"):
            apply_run(run, tmp_path / place, as_advised(run), source=f"pictures:{tmp_path / 'moved'}")


def test_a_dangling_link_counts_as_something_that_exists(tmp_path: Path, run: Path) -> None:
    (tmp_path / "new").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="it exists"):
        apply_run(run, tmp_path / "new", as_advised(run))


@pytest.mark.parametrize("name", ["labels.xlsx", "data.zip", "labels.JSON"])
def test_no_folder_is_made_that_is_called_like_a_file(tmp_path: Path, run: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"name a folder, or a \.csv file"):
        apply_run(run, tmp_path / name, as_advised(run))
    assert not (tmp_path / name).exists()


def test_a_changes_file_beside_is_not_written_over(tmp_path: Path, run: Path) -> None:
    (tmp_path / "changes.csv").write_text("mine")
    with pytest.raises(UsageError, match="changes.csv: it exists"):
        apply_run(run, tmp_path / "labels.csv", as_advised(run))
    assert (tmp_path / "changes.csv").read_text() == "mine" and not (tmp_path / "labels.csv").exists()


def test_the_data_set_and_the_list_of_changes_need_two_names(tmp_path: Path, run: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for place in ("folder/changes.csv", "folder/../folder/changes.csv", "link/changes.csv"):
        with pytest.raises(UsageError, match="choose another --out"):
            apply_run(run, tmp_path / place, as_advised(run))
    assert not list((tmp_path / "folder").iterdir())


def test_a_data_set_without_its_list_of_changes_is_not_left(tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str) -> None:
        raise ToolError("disk full")

    (tmp_path / "there").mkdir()
    monkeypatch.setattr(atomic, "write_new_text", full)
    with pytest.raises(ToolError, match="disk full"):
        apply_run(run, tmp_path / "there" / "labels.csv", as_advised(run))
    assert not list((tmp_path / "there").iterdir())


def test_a_folder_as_a_table_that_train_reads(tmp_path: Path, tree: Path, run: Path) -> None:
    """Above the pictures their paths start from the table; elsewhere it says which --root goes with it."""
    (tmp_path / "else").mkdir()
    for out, root in ((tmp_path / "above.csv", None), (tmp_path / "else" / "aside.csv", tree)):
        done = apply_run(run, out, as_advised(run))
        options = PictureOptions(root=root)
        listing = list_pictures(recognise(out, options), options)
        assert len(listing.ids) == done.left == 14 and "ant/0.png" in list(listing.ids)
        assert any(f"--root {tree}" in note for note in done.notes) == (root is not None)


def test_the_labels_alone(tmp_path: Path, run: Path) -> None:
    done = apply_run(run, tmp_path / "labels.csv", as_advised(run))
    with (tmp_path / "labels.csv").open(newline="") as file:
        rows = {row["id"]: row["label"] for row in csv.DictReader(file)}
    assert len(rows) == done.left == 14
    assert rows["ant/0.png"] == "dog" and rows["bee/1.png"] == ODD and "cat/2.png" not in rows


def test_decisions_decide(tmp_path: Path, run: Path) -> None:
    told = {"ant/0.png": Correction("keep", None), "dog/2.png": Correction("relabel", ODD), "bee/0.png": Correction("drop", None)}
    done = apply_run(run, tmp_path / "new", told)
    found = set(files_in(tmp_path / "new"))
    assert {"ant/0.png", f"{ODD}/2-from-dog.png", "cat/2.png"} <= found and "bee/0.png" not in found
    assert {row["why"] for row in changes(done)} == {"decided by a person"}


def test_emptied_classes_and_made_noise_are_told(tmp_path: Path, tree: Path) -> None:
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*.png"))
    given = [name.rpartition("/")[0] for name in names]
    made_run(tmp_path / "run", f"pictures:{tree}", names, given, {})
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace("noise: none", "noise: sym:0.1"))
    told = {f"ant/{k}.png": Correction("drop", None) for k in range(3)}
    done = apply_run(tmp_path / "run", tmp_path / "new", told)
    assert any('no sample is left of "ant"' in note for note in done.notes)
    assert any("sym:0.1" in note for note in done.notes)


def test_dropping_everything_writes_nothing(tmp_path: Path, run: Path) -> None:
    with pytest.raises(ToolError, match="no picture would be left"):
        apply_run(run, tmp_path / "new", {name: Correction("drop", None) for name in read_issues(run / "issues.csv")["id"]})
    assert not (tmp_path / "new").exists() and not list(tmp_path.glob(".new*"))


def test_a_run_without_issues_says_so(tmp_path: Path, run: Path) -> None:
    (run / "issues.csv").unlink()
    with pytest.raises(ToolError, match="labelsieve resume"):
        apply_run(run, tmp_path / "new", {})


@pytest.mark.parametrize("form", ["tree", "csv of a tree", "csv", "folders of a csv", "npz", "parquet"])
def test_other_data_than_the_runs_are_refused(tmp_path: Path, form: str) -> None:
    """They would be written as they are, and called corrected."""
    other, out = _other(tmp_path, form)
    made_run(tmp_path / "run", other, ["x", "y", "z"], ["ant", "bee", "ant"], {"x": "bee"})
    with pytest.raises(ToolError, match=r'none of the run\'s 3 samples is in it, the first of which is called "x"'):
        apply_run(tmp_path / "run", tmp_path / "new" / out, as_advised(tmp_path / "run"))
    assert not list(tmp_path.glob("new/**/*.*"))


def _other(home: Path, form: str) -> tuple[str, str]:
    """The source of some data, and what they are to be written as."""
    if form == "npz":
        np.savez(home / "a.npz", images=np.zeros((4, 8, 8), np.uint8), labels=np.array(["ant", "bee"] * 2))
        return f"arrays:{home / 'a.npz'}", "b.npz"
    tree = class_folders(home / "source", ("ant", "bee"))
    if form in ("tree", "csv of a tree"):
        return f"pictures:{tree}", "tree" if form == "tree" else "b.csv"
    rows = [{"path": str(path.relative_to(tree)), "label": path.parent.name} for path in sorted(tree.rglob("*.png"))]
    if form == "parquet":
        pictures = [{"image": {"bytes": (tree / row["path"]).read_bytes(), "path": None}, "label": row["label"]} for row in rows]
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pytest.importorskip("pyarrow").Table.from_pylist(pictures), home / "a.parquet")
        return f"pictures:{home / 'a.parquet'}", "b.parquet"
    (tree / "a.csv").write_text("path,label\n" + "".join(f"{row['path']},{row['label']}\n" for row in rows))
    return f"pictures:{tree / 'a.csv'}", "b.csv" if form == "csv" else "tree"


def test_what_is_not_there_any_more_is_not_counted_as_corrected(tmp_path: Path, tree: Path, run: Path) -> None:
    assert apply_run(run, tmp_path / "all", as_advised(run)).actions["relabel"] == 3
    (tree / "ant" / "0.png").unlink()
    assert apply_run(run, tmp_path / "new", as_advised(run)).actions["relabel"] == 2


def test_names_that_a_spreadsheet_computes_are_told(tmp_path: Path, tree: Path) -> None:
    (tree / "ant" / "0.png").rename(tree / "=cmd.png")
    (tree / "t.csv").write_text("path,label\n=cmd.png,ant\nbee/0.png,bee\n")
    run = tmp_path / "run"
    made_run(run, f"pictures:{tree / 't.csv'}", ["=cmd.png", "bee/0.png"], ["ant", "bee"], {"=cmd.png": "bee"})
    notes = apply_run(run, tmp_path / "new.csv", as_advised(run)).notes
    assert any('the id "=cmd.png" looks like a formula' in note and "new.csv" in note for note in notes)
    assert (tmp_path / "new.csv").read_text().splitlines()[1].endswith("/=cmd.png,bee")
