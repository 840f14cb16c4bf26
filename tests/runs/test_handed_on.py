"""`apply` and exports hand on what `train` would read and nothing else: no links that lead out, no pipes, nothing swapped."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from data.pictures.made import class_folders
from labelsieve.config.schema import Config, DataConfig
from labelsieve.corrected import tree as trees
from labelsieve.corrected.apply import apply_run
from labelsieve.data.pictures.fetch import open_inside
from labelsieve.errors import ToolError
from labelsieve.exports.label_files import Album
from runs.made_runs import as_advised, files_in, made_run

pytestmark = pytest.mark.usefixtures("own_cache")

SECRET = b"PRIVATE KEY"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_bytes(SECRET)
    return class_folders(tmp_path / "source", ("ant", "bee"))


def run_of(tree: Path, run: Path, source: str | None = None, more: tuple[str, ...] = ()) -> Path:
    names = sorted({*(str(path.relative_to(tree)) for path in tree.rglob("*.png")), *more})
    made_run(run, source or f"pictures:{tree}", names, [name.partition("/")[0] for name in names], {"ant/0.png": "bee"})
    return run


def table_of(tree: Path) -> str:
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*.png"))
    (tree / "t.csv").write_text("path,label\n" + "".join(f"{name},{name.partition('/')[0]}\n" for name in names))
    return f"pictures:{tree / 't.csv'}"


def linked(place: Path) -> None:
    place.symlink_to("../../secret")


OTHERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "link": (linked, "it leads out of the root folder"),
    "pipe": (os.mkfifo, "it is a pipe"),
    "device": (lambda place: place.symlink_to("/dev/zero"), "it leads out of the root folder"),
}


@pytest.mark.parametrize("put", ["hardlink", "symlink", "copy"])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("form", ["folders", "table"])
@pytest.mark.parametrize("when", ["never judged", "after training"])
def test_apply_leaves_out_what_training_does_not_read(
    tmp_path: Path, tree: Path, put: str, other: str, form: str, when: str
) -> None:
    make, why = OTHERS[other]
    place = tree / "bee" / ("1.png" if when == "after training" else "new.png")
    source = None
    if form == "table":
        (tree / "bee" / "new.png").write_bytes(b"a row of the table")
        source = table_of(tree)
        (tree / "bee" / "new.png").unlink()
    run = run_of(tree, tmp_path / "run", source)
    if when == "after training":
        place.unlink()
    make(place)
    done = apply_run(run, tmp_path / "new", as_advised(run), put=put)
    new = [path for path in (tmp_path / "new").rglob("*") if not path.is_dir()]
    assert not [path for path in new if path.name == place.name and path.parent.name == "bee"]
    assert all(path.is_file() and path.read_bytes() != SECRET for path in new)
    assert any(f'"bee/{place.name}"' in note and why in note for note in done.notes)
    assert (tmp_path / "secret").stat().st_nlink == 1


def test_a_folder_that_becomes_a_link_is_left_out(tmp_path: Path, tree: Path) -> None:
    run = run_of(tree, tmp_path / "run", table_of(tree))
    (tree / "bee").rename(tmp_path / "private")
    (tree / "bee").symlink_to("../private")
    notes = apply_run(run, tmp_path / "new", as_advised(run)).notes
    assert set(files_in(tmp_path / "new")) == {"ant/1.png", "ant/2.png", "bee/0.png", "changes.csv"}
    assert '3 pictures were left out: "bee/0.png", "bee/1.png", "bee/2.png" (it leads out of the root folder)' in notes


def test_a_table_does_not_name_what_training_would_not_read(tmp_path: Path, tree: Path) -> None:
    run = run_of(tree, tmp_path / "run")
    (tree / "bee" / "1.png").unlink()
    linked(tree / "bee" / "1.png")
    done = apply_run(run, tmp_path / "new.csv", as_advised(run))
    assert "bee/1.png" not in (tmp_path / "new.csv").read_text() and "bee/2.png" in (tmp_path / "new.csv").read_text()
    assert any("bee/1.png" in note and "leads out" in note for note in done.notes) and done.left == 5


def test_a_link_that_stays_inside_is_handed_on(tmp_path: Path, tree: Path) -> None:
    (tree / "bee" / "again.png").symlink_to("../ant/1.png")
    run = run_of(tree, tmp_path / "run")
    apply_run(run, tmp_path / "new", as_advised(run))
    assert (tmp_path / "new" / "bee" / "again.png").samefile(tree / "ant" / "1.png")
    assert not (tmp_path / "new" / "bee" / "again.png").is_symlink()


@pytest.mark.parametrize("put", ["hardlink", "symlink", "copy"])
def test_what_is_swapped_between_looking_and_linking_is_left_out(
    tmp_path: Path, tree: Path, put: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The examined file is handed on or none, however quick somebody is."""
    run = run_of(tree, tmp_path / "run")
    place, before = tree / "bee" / "1.png", (tree / "bee" / "1.png").read_bytes()
    whole = trees.PUTS[put]

    def swapped(opened: object, source: str, target: str) -> None:
        if source == str(place):
            place.unlink()
            place.symlink_to(tmp_path / "secret")
        whole(opened, source, target)  # type: ignore[arg-type]

    monkeypatch.setitem(trees.PUTS, put, swapped)
    notes = apply_run(run, tmp_path / "new", as_advised(run), put=put).notes
    new = tmp_path / "new" / "bee" / "1.png"
    if put == "copy":
        assert new.read_bytes() == before
    else:
        assert not os.path.lexists(new) and any('"bee/1.png" (it was replaced while it was linked)' in note for note in notes)
    assert (tmp_path / "secret").stat().st_nlink == 1


@pytest.mark.parametrize("other", OTHERS)
def test_an_album_links_the_file_that_it_examined(tmp_path: Path, tree: Path, other: str) -> None:
    """Of exports: a picture was one when it was looked at, and is none when it is to be linked."""
    config = Config(data=DataConfig(source=f"pictures:{tree}"))
    place, (make, why) = tree / "bee" / "1.png", OTHERS[other]
    album = Album(config, ["1"], ["bee/1.png"])
    assert album.original(0) == place
    place.unlink()
    make(place)
    (tmp_path / "out").mkdir()
    with pytest.raises(ToolError, match=f"bee/1.png: {why}.*put the picture back"):
        album.put(0, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir()) and Album(config, ["1"], ["bee/1.png"]).original(0) is None


def test_decoding_opens_what_lies_inside_and_nothing_else(tmp_path: Path, tree: Path) -> None:
    """The same door for training, the report, the review page and copies: links are followed below the root only."""
    (tree / "bee" / "inner.png").symlink_to("../ant/0.png")
    (tree / "inner").symlink_to("ant")
    (tree / "out").symlink_to("..")
    inner = (tree / "ant" / "0.png").read_bytes()
    for path in ("bee/inner.png", "inner/0.png", "bee/../ant/0.png", str(tree / "ant" / "0.png")):
        with open_inside(tree, path) as opened:
            assert opened.read() == inner
    for path in ("../secret", "out/secret", str(tmp_path / "secret"), "bee/../../secret"):
        with pytest.raises(Exception, match="it leads out of the root folder"):
            open_inside(tree, path)
        with open_inside(tree, path, outside=True) as opened:
            assert opened.read() == SECRET
    with pytest.raises(Exception, match="a device or a socket"):
        open_inside(tree, "/dev/zero", outside=True)
