"""Pictures that come and go after a run: what is left of its own is shown, in the report and on the review page."""

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from data.pictures.made import class_folders, noise, save
from labelsieve.data.pictures.origins import Files
from labelsieve.data.pictures.presence import remember
from labelsieve.results.reporting import run_report
from labelsieve.review.opening import open_review
from labelsieve.review.pictures import NoPicture
from runs.made_runs import made_run
from runs.tiny import tiny_config, whole

pytestmark = pytest.mark.usefixtures("own_cache")
GREEN = (10, 200, 30)
WRONG = {"ant/0.png": "bee", "ant/1.png": "bee", "bee/2.png": "ant"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """One of its pictures is all green."""
    save(Image.new("RGB", (12, 12), GREEN), tmp_path / "source" / "bee" / "2.png")
    class_folders(tmp_path / "source", ("ant", "cat"))
    class_folders(tmp_path / "source", ("bee",), each=2, seed=50)
    return tmp_path / "source"


@pytest.fixture
def run(tmp_path: Path, tree: Path) -> Path:
    """One that remembers its files, as a run does, and has none of them decoded."""
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*.png"))
    made_run(tmp_path / "run", f"pictures:{tree}", names, [name.partition("/")[0] for name in names], WRONG)
    memory = remember(Files(tree, names).examined()[0], tmp_path / "memory")
    (tmp_path / "run" / "data.json").write_text(json.dumps({"files": [str(memory)]}))
    return tmp_path / "run"


def shown(run: Path) -> set[str]:
    return {one.id for corner in run_report(run)[0].corners for one in corner.suspects}


def test_a_deleted_picture_takes_no_other_from_the_report(tree: Path, run: Path) -> None:
    (tree / "ant" / "0.png").unlink()
    assert shown(run) == {"ant/1.png", "bee/2.png"}
    assert run_report(run)[1] == "1 of the run's pictures is gone and not shown here."


def test_a_class_may_be_gone_whole(tree: Path, run: Path) -> None:
    shutil.rmtree(tree / "ant")
    report, remark = run_report(run)
    assert shown(run) == {"bee/2.png"} and report.unshown == 1 and remark.startswith("3 of the run's pictures are gone")
    assert (report.corners[0].suspects[0].image.transpose(1, 2, 0) == GREEN).all()  # its own picture, and no other


def test_new_pictures_change_nothing(tree: Path, run: Path) -> None:
    save(noise(7), tree / "ant" / "00.png")
    assert shown(run) == set(WRONG) and run_report(run)[1] == ""


@pytest.mark.parametrize("known", [True, False])
def test_labels_that_were_corrected_in_the_table_change_no_picture(tmp_path: Path, tree: Path, run: Path, known: bool) -> None:
    """Where it is not known that the files are the same, other labels may mean other pictures."""
    table = tree / "labels.csv"
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*.png"))
    given = [name.partition("/")[0] for name in names]
    table.write_text("path,label\n" + "".join(f"{name},{label}\n" for name, label in zip(names, given[::-1])))
    made_run(tmp_path / "of_table", f"pictures:{table}", names, given, WRONG)
    if known:
        shutil.copy(run / "data.json", tmp_path / "of_table")
    pictures = open_review(tmp_path / "of_table").pictures
    pictures.open()
    if known:
        assert shown(tmp_path / "of_table") == set(WRONG) and run_report(tmp_path / "of_table")[1] == ""
        assert pictures.encoded("ant/1.png", "small")[1].startswith("image/")
    else:
        assert (
            run_report(tmp_path / "of_table")[1].startswith("The data have changed") and "labelled otherwise" in pictures.remark
        )


def test_deleted_pictures_of_a_trained_run_come_from_the_cache(tmp_path: Path) -> None:
    tree = class_folders(tmp_path / "set", ("ant", "bee", "cat"), each=16)
    whole(tmp_path / "trained", tiny_config(f"pictures:{tree}", data__noise="none"))
    before = run_report(tmp_path / "trained")[0].corners
    shutil.rmtree(tree / "ant")
    after, remark = run_report(tmp_path / "trained")
    assert remark == "" and [corner.name for corner in after.corners] == [corner.name for corner in before]


def test_a_deleted_picture_takes_no_other_from_the_review(tree: Path, run: Path) -> None:
    (tree / "ant" / "0.png").unlink()
    pictures = open_review(run).pictures
    pictures.open()
    assert pictures.remark == "" and pictures.encoded("ant/1.png", "small")[1].startswith("image/")
    with pytest.raises(NoPicture, match="there is no such file"):
        pictures.encoded("ant/0.png", "small")


def test_where_no_picture_is_left_the_review_says_so(tree: Path, run: Path, tmp_path: Path) -> None:
    shutil.rmtree(tree)
    class_folders(tree, ("fox", "gnu"))
    pictures = open_review(run).pictures
    pictures.open()
    assert pictures.remark.startswith("the data have changed since the run")


@pytest.mark.parametrize("change", ["renumbered", "replaced", "forgotten"])
def test_where_others_may_have_their_names_nothing_is_shown(tree: Path, run: Path, change: str) -> None:
    (tree / "ant" / "0.png").unlink()
    if change == "renumbered":
        (tree / "ant" / "1.png").rename(tree / "ant" / "0.png")
    elif change == "replaced":
        save(noise(99, side=13), tree / "bee" / "2.png")
    else:
        (run / "data.json").unlink()
    assert run_report(run)[1].startswith("The data have changed") and shown(run) == set()
    pictures = open_review(run).pictures
    pictures.open()
    assert pictures.remark.startswith("the data have changed since the run")
