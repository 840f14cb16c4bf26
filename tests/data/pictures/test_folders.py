"""Class folders, with and without splits: what is taken, what is passed over, what is refused."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from labelsieve.data.pictures.opening import open_pictures
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.recognise import list_pictures, recognise
from labelsieve.data.sources import open_data
from labelsieve.errors import ToolError, UsageError

from .made import class_folders, noise, save, wide_png_header


def test_the_plainest_folder(tmp_path: Path, own_cache: Path) -> None:
    opened = open_pictures(class_folders(tmp_path))
    train = opened.collection.train
    assert opened.layout.kind == "class folders" and "2 folders" in opened.layout.why
    assert train.classes == ("cat", "dog") and train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert train.ids == opened.paths == ("cat/0.png", "cat/1.png", "cat/2.png", "dog/0.png", "dog/1.png", "dog/2.png")
    assert train.images.shape == (6, 3, 8, 8)  # 12 pixels: the next size not above is 8
    assert opened.collection.test is None and opened.val is None and opened.left_out == ()
    assert opened.cache is not None and own_cache in opened.cache.parents
    assert open_data(f"pictures:{tmp_path}").train.ids == train.ids


def test_pixels_are_those_of_the_files_and_the_cache_stays_as_it_is(tmp_path: Path) -> None:
    options = PictureOptions(size=12)
    images = open_pictures(class_folders(tmp_path), options).collection.train.images
    expected = np.asarray(Image.open(tmp_path / "dog/1.png")).transpose(2, 0, 1)
    assert np.array_equal(images[4].numpy(), expected)
    images.zero_()
    assert np.array_equal(open_pictures(tmp_path, options).collection.train.images[4].numpy(), expected)


@pytest.mark.parametrize("names", [("train", "val", "test"), ("Training", "validation", "testing"), ("train", "valid", "test")])
def test_splits(names: tuple[str, str, str], tmp_path: Path) -> None:
    for number, name in enumerate(names):
        class_folders(tmp_path / name, each=3 - number, seed=50 * number)
    (tmp_path / "annotations").mkdir()
    opened = open_pictures(tmp_path, PictureOptions(size=12))
    assert opened.layout.kind == "split folders"
    assert opened.collection.train.ids[0] == f"{names[0]}/cat/0.png" and len(opened.collection.train) == 6
    assert opened.val is not None and opened.val.labels.tolist() == [0, 0, 1, 1]
    test = opened.collection.test
    assert test is not None and test.labels.tolist() == [0, 1]
    assert np.array_equal(test.images[1].numpy(), np.asarray(noise(1100)).transpose(2, 0, 1))
    assert any("annotations" in note for note in opened.notes)


def test_val_stands_in_for_a_missing_test_split(tmp_path: Path) -> None:
    class_folders(tmp_path / "train")
    class_folders(tmp_path / "val", each=1)
    opened = open_pictures(tmp_path)
    assert opened.collection.test is not None and opened.val is not None and len(opened.val.labels) == 2


def test_a_class_named_train_is_a_class(tmp_path: Path) -> None:
    class_folders(tmp_path, ("plane", "train"))
    save(noise(7), tmp_path / "train" / "steam" / "x.png")
    assert open_pictures(tmp_path).collection.train.classes == ("plane", "train")


@pytest.mark.parametrize("place", ["run", "train"])
def test_a_run_among_the_pictures_is_no_class(place: str, tmp_path: Path) -> None:
    class_folders(tmp_path)
    for run in (tmp_path / place, tmp_path / "cat" / "inner"):
        save(noise(7), run / "export" / "x.png")
        (run / "config.yaml").write_text("x")
        (run / "checkpoint").mkdir()
    opened = open_pictures(tmp_path)
    assert opened.collection.train.classes == ("cat", "dog") and len(opened.collection.train) == 6
    assert f'the folder "{place}" holds a run, not a class: ignored' in opened.notes
    assert opened.ignored == {"folder of a run": 1} and "2 folders" in opened.layout.why
    assert list_pictures(opened.layout, PictureOptions()).empty_classes == ()


def test_classes_only_in_a_held_split_are_left_out_and_said(tmp_path: Path) -> None:
    class_folders(tmp_path / "train")
    class_folders(tmp_path / "test", ("cat", "emu"), each=2)
    opened = open_pictures(tmp_path)
    assert opened.collection.test is not None and opened.collection.test.labels.tolist() == [0, 0]
    assert any("2 test pictures" in note for note in opened.notes) and any('"emu"' in note for note in opened.notes)


def test_a_class_is_the_same_in_all_splits_whatever_unicode_form_its_folders_have(tmp_path: Path) -> None:
    """A training set that was unpacked on one system, and a test set on another."""
    stored, composed = "cafe\u0301", "caf\u00e9"
    class_folders(tmp_path / "train", (stored, "dog"))
    class_folders(tmp_path / "val", (composed, "dog"), each=2, seed=9)
    opened = open_pictures(tmp_path, PictureOptions(workers=1))
    assert opened.collection.train.classes == (stored, "dog") and opened.collection.test is not None
    assert opened.collection.test.labels.tolist() == [0, 0, 1, 1] and opened.notes == ()


def test_what_is_passed_over_is_counted_and_what_is_deep_is_taken(tmp_path: Path) -> None:
    class_folders(tmp_path)
    (tmp_path / "cat" / ".hidden.png").write_bytes(b"")
    (tmp_path / "cat" / "notes.txt").write_text("x")
    (tmp_path / "readme.md").write_text("x")
    save(noise(8), tmp_path / "loose.png")
    save(noise(9), tmp_path / "cat" / "a" / "b" / "deep.PNG")
    (tmp_path / "empty").mkdir()
    opened = open_pictures(tmp_path)
    assert "cat/a/b/deep.PNG" in opened.collection.train.ids
    assert opened.ignored == {"not a picture": 2, "hidden": 1, "picture outside the class folders": 1}
    assert list_pictures(opened.layout, PictureOptions()).empty_classes == ("empty",)


@pytest.mark.parametrize("split", ["", "train/"])
def test_a_hidden_folder_of_pictures_where_classes_lie_is_told_by_name(tmp_path: Path, split: str) -> None:
    """Of a class less, as many pictures as it may hold, all that was said was "hidden: 1"."""
    class_folders(tmp_path / split)
    for k in range(2):
        save(noise(k), tmp_path / split / ".emu" / f"{k}.png")
    (tmp_path / split / ".cache").mkdir()
    (tmp_path / split / ".cache" / "index.db").write_text("x")
    save(noise(3), tmp_path / split / "cat" / ".thumbs" / "0.png")  # below a class: none of its own
    opened = open_pictures(tmp_path)
    assert opened.collection.train.classes == ("cat", "dog") and opened.ignored == {"hidden": 3}
    (said,) = opened.notes
    assert f'the folder "{split}.emu" is hidden' in said and "2 pictures in it passed over; rename it" in said


def test_unreadable_pictures_are_listed_and_left_out(tmp_path: Path) -> None:
    class_folders(tmp_path)
    (tmp_path / "cat" / "0.png").write_bytes((tmp_path / "cat" / "0.png").read_bytes()[:200])
    (tmp_path / "dog" / "text.jpg").write_text("not a picture")
    wide_png_header(tmp_path / "dog" / "bomb.png", 20_000)
    for _ in range(2):  # decoded, and from the cache
        opened = open_pictures(tmp_path, PictureOptions(size=12))
        assert opened.collection.train.ids == ("cat/1.png", "cat/2.png", "dog/0.png", "dog/1.png", "dog/2.png")
        assert opened.paths == opened.collection.train.ids
        reasons = {row.path: row.reason for row in opened.left_out}
        assert set(reasons) == {"cat/0.png", "dog/bomb.png", "dog/text.jpg"} and "bomb" in reasons["dog/bomb.png"]
        assert np.array_equal(opened.collection.train.images[2].numpy(), np.asarray(noise(1000)).transpose(2, 0, 1))
    with pytest.raises(ToolError, match=r'3 pictures cannot be read; the first is "cat/0.png"'):
        open_pictures(tmp_path, PictureOptions(strict=True))


def test_a_class_that_loses_its_last_picture_is_left_out(tmp_path: Path) -> None:
    class_folders(tmp_path, ("ant", "cat", "dog"), each=2)
    for file in (tmp_path / "ant").iterdir():
        file.write_bytes(b"")
    opened = open_pictures(tmp_path)
    assert opened.collection.train.classes == ("cat", "dog") and opened.collection.train.labels.tolist() == [0, 0, 1, 1]
    assert any('"ant"' in note for note in opened.notes)


def test_all_grey_is_one_channel_and_one_colour_picture_makes_three(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(noise(1, 32, 1), tmp_path / name / "x.png")
    assert open_pictures(tmp_path).collection.train.images.shape == (2, 1, 32, 32)
    save(noise(1, 40), tmp_path / "a" / "y.png")
    opened = open_pictures(tmp_path)
    assert opened.collection.train.images.shape == (3, 3, 32, 32) and len(opened.collection.mean) == 3


HOSTILE = ['quo"te', "new\nline", "<script>alert(1)", "a'b & c", "ünï", "semi;colon", "tab\there", "comma,"]


def test_hostile_names_are_kept(tmp_path: Path) -> None:
    for number, name in enumerate(HOSTILE):
        save(noise(number), tmp_path / name / f"{name}.png")
    train = open_pictures(tmp_path).collection.train
    assert set(train.classes) == set(HOSTILE)
    assert set(train.ids) == {f"{name}/{name}.png" for name in HOSTILE}


def test_names_that_are_not_utf_8_become_text(tmp_path: Path) -> None:
    class_folders(tmp_path)
    try:
        os.rename(tmp_path / "cat" / "0.png", os.fsencode(tmp_path) + b"/cat/\xff.png")  # noqa: PTH104
    except OSError:
        pytest.skip("this file system refuses such names")
    ids = open_pictures(tmp_path).collection.train.ids
    assert "cat/\\xff.png" in ids and all(name.encode("utf-8") for name in ids)


def test_loops_of_links_end_and_links_out_are_left_out(tmp_path: Path) -> None:
    root = class_folders(tmp_path / "root")
    outside = save(noise(99), tmp_path / "elsewhere" / "x.png")
    (root / "cat" / "loop").symlink_to(root / "cat")
    (root / "dog" / "up").symlink_to(root)
    (root / "cat" / "self.png").symlink_to(root / "cat" / "self.png")
    (root / "dog" / "out.png").symlink_to(outside)
    (root / "dog" / "outdir").symlink_to(outside.parent)
    (root / "cat" / "in.png").symlink_to(root / "cat" / "0.png")
    opened = open_pictures(root)
    assert "cat/in.png" in opened.collection.train.ids and "dog/out.png" not in opened.collection.train.ids
    reasons = {row.path: row.reason for row in opened.left_out}
    assert "leads out" in reasons["dog/out.png"] and "cannot be reached" in reasons["cat/self.png"]
    assert opened.ignored["folder reached twice through links"] == 1 and opened.ignored["link to a folder above"] == 1
    assert not any(name.startswith("dog/up/") for name in opened.collection.train.ids)  # cats would be dogs
    assert sum(count for what, count in opened.ignored.items() if "leads out" in what) == 1
    ids = open_pictures(root, PictureOptions(outside=True)).collection.train.ids
    assert "dog/out.png" in ids and "dog/outdir/x.png" in ids


def test_a_pipe_named_like_a_picture_is_not_waited_for(tmp_path: Path) -> None:
    class_folders(tmp_path)
    os.mkfifo(tmp_path / "cat" / "pipe.png")
    opened = open_pictures(tmp_path)
    assert [row.reason for row in opened.left_out] == ["it is not a plain file"]


def test_the_classes_given_order_them_and_catch_misspelling(tmp_path: Path) -> None:
    class_folders(tmp_path)
    assert open_pictures(tmp_path, PictureOptions(classes=("dog", "cat"))).collection.train.classes == ("dog", "cat")
    with pytest.raises(ToolError, match=r'"dog" is not one of 2 classes \(did you mean "dogs"\?\)'):
        open_pictures(tmp_path, PictureOptions(classes=("cat", "dogs")))


def test_what_cannot_be_recognised_says_what_could(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no such file or folder"):
        recognise(tmp_path / "nowhere")
    with pytest.raises(ToolError, match="no class folder holds a picture"):
        recognise(tmp_path)
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(ToolError, match="JSON lines"):
        recognise(tmp_path / "x.json")
    save(noise(1), tmp_path / "one" / "x.png")
    with pytest.raises(ToolError, match='only one folder \\("one"\\)'):
        recognise(tmp_path)
    class_folders(tmp_path / "held" / "test")
    with pytest.raises(ToolError, match="no train folder"):
        recognise(tmp_path / "held")


def test_all_unreadable_is_an_error_with_the_first_reason(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.png").write_text("x")
    with pytest.raises(ToolError, match=r'2 pictures cannot be read; the first is "a/x.png"'):
        open_pictures(tmp_path)


@pytest.mark.parametrize("wrong", [{"fit": "crpo"}, {"size": 2}, {"workers": 0}, {"classes": ("a", "a")}])
def test_wrong_options_are_refused_when_made(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        PictureOptions(**wrong)  # type: ignore[arg-type]


def test_folders_that_systems_leave_behind_are_no_classes(tmp_path: Path) -> None:
    class_folders(tmp_path)
    save(noise(1), tmp_path / "__MACOSX" / "cat" / "0.png")
    save(noise(2), tmp_path / "cat" / "@eaDir" / "0.png" / "THUMB_M.png")
    opened = open_pictures(tmp_path)
    assert opened.collection.train.classes == ("cat", "dog") and len(opened.collection.train) == 6
    assert opened.ignored == {"hidden": 2}


@pytest.mark.parametrize(
    ("ending", "says"),
    [(".heic", r"format that is not read \(\.heic\): 6\); save pictures as JPEG"), ("", "file without an ending: 6")],
)
def test_pictures_that_are_not_read_are_told_from_files_that_are_none(ending: str, says: str, tmp_path: Path) -> None:
    for file in list(class_folders(tmp_path).glob("*/*.png")):
        file.rename(file.with_suffix(ending))
    with pytest.raises(ToolError, match=says):
        open_pictures(tmp_path)


def test_a_folder_wrapped_around_the_classes_is_pointed_to(tmp_path: Path) -> None:
    class_folders(tmp_path / "wrapped" / "set")
    with pytest.raises(ToolError, match=f"folders cat, dog: if these are the classes, give {tmp_path / 'wrapped' / 'set'}"):
        open_pictures(tmp_path / "wrapped")


def test_class_folders_that_are_links_out_say_how_to_follow_them(tmp_path: Path) -> None:
    class_folders(tmp_path / "there", ("cat", "dog", "cow"))
    (tmp_path / "here").mkdir()
    for name in ("cat", "dog"):
        (tmp_path / "here" / name).symlink_to(tmp_path / "there" / name)
    with pytest.raises(ToolError, match=r"links that lead out of it \(2\).*--set pictures.outside=true"):
        open_pictures(tmp_path / "here")
    assert len(open_pictures(tmp_path / "here", PictureOptions(outside=True)).collection.train) == 6
    class_folders(tmp_path / "here", ("cow", "ant"))
    assert any("--set pictures.outside=true" in note for note in open_pictures(tmp_path / "here").notes)


def test_whose_label_pictures_below_the_class_folders_get_is_said(tmp_path: Path) -> None:
    class_folders(tmp_path / "animals")
    class_folders(tmp_path, ("cars",))
    (note,) = open_pictures(tmp_path).notes
    assert note.startswith("6 pictures lie in folders below") and note.endswith('"animals/cat/0.png" is of "animals"')


@pytest.mark.parametrize(("side", "kept"), [(16, 16), (19, 16), (27, 24), (40, 32)])
def test_small_pictures_keep_most_of_their_pixels(side: int, kept: int, tmp_path: Path) -> None:
    for name in ("cat/0.png", "dog/0.png"):
        save(noise(0, side), tmp_path / name)
    assert open_pictures(tmp_path).collection.train.images.shape[-1] == kept
