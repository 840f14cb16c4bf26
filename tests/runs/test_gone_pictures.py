"""Picture files that are deleted while a run rests: it goes on with the decoded ones, exactly, or says which it cannot have."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.own import broken, folder
from labelsieve.config.schema import Config
from labelsieve.data.pictures import pool
from labelsieve.data.pictures.origins import Files
from labelsieve.data.pictures.presence import known_from, remember
from labelsieve.errors import ToolError
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.tiny import contents, tiny_config, to_the_end, whole

Made = Callable[[Path], Config]


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "FEW", 10**6)


def listed(root: Path) -> list[tuple[str, str]]:
    return [(path.relative_to(root).as_posix(), path.parent.name) for path in sorted(root.rglob("*.png"))]


def config_of(source: Path, cache: Path, **changes: object) -> Config:
    return tiny_config(f"pictures:{source}", pictures__cache_dir=str(cache), data__noise="none", **changes)


def split_folders(root: Path) -> Config:
    """With a picture that was broken from the beginning, and one deeper down."""
    for split, each in (("train", 12), ("test", 3)):
        folder(root / "set" / split, each=each)
    broken(root / "set" / "train" / "cat" / "5b.png")
    shutil.copytree(root / "set" / "test" / "dog", root / "set" / "train" / "dog" / "deeper")
    return config_of(root / "set", root / "cache")


def table(root: Path) -> Config:
    rows = [*listed(folder(root / "set" / "train", each=12)), ("cat/never.png", "cat")]
    lines = [f"train/{path},{label},train\n" for path, label in rows]
    lines += [f"test/{path},{label},test\n" for path, label in listed(folder(root / "set" / "test", each=3))]
    (root / "set" / "list.csv").write_text("path,label,split\n" + "".join(lines))
    return config_of(root / "set" / "list.csv", root / "cache")


def with_val(root: Path) -> Config:
    folder(root / "set" / "train", each=12)
    folder(root / "set" / "test", each=3)
    return config_of(root / "set" / "train", root / "cache", pictures__val=str(root / "set" / "test"))


def limited(root: Path) -> Config:
    folder(root / "set" / "train", each=24)
    folder(root / "set" / "test", each=3)
    return config_of(root / "set", root / "cache", data__limit=36)


def stopped(path: Path, config: Config) -> None:
    run = start(path, config)
    for _ in each_epoch(run, stop=lambda: run.epoch >= 1):
        pass


def killed(path: Path, config: Config) -> None:
    """After the first epoch; nothing but the checkpoint is left."""
    steps = each_epoch(start(path, config))
    assert next(steps).epoch == 1
    steps.close()


@pytest.mark.parametrize("made", [split_folders, table, with_val, limited])
def test_a_run_goes_on_as_if_nothing_had_been_deleted(tmp_path: Path, made: Made) -> None:
    config = made(tmp_path)
    whole(tmp_path / "whole", config)
    stopped(tmp_path / "cut", config)
    for gone in ("train/cat/3.png", "train/cat/11.png", "test/cow/1.png"):
        (tmp_path / "set" / gone).unlink()
    (tmp_path / "set" / "train" / "cat" / "5b.png").unlink(missing_ok=True)  # it was never used: nothing to say of it
    run = resume(tmp_path / "cut")
    said = [note for note in run.rows.notes if "gone since the run started" in note]
    counts = [int(note.split()[0]) for note in said]
    if made is limited:
        assert 1 <= sum(counts) <= 3  # those that were not drawn are not missed
    else:
        assert sum(counts) == 3 and any("cat/11.png" in note for note in said)
    assert all(str(tmp_path / "cache") in note for note in said)
    to_the_end(tmp_path / "cut")
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_a_whole_class_may_be_gone(tmp_path: Path) -> None:
    config = split_folders(tmp_path)
    whole(tmp_path / "whole", config)
    killed(tmp_path / "cut", config)
    shutil.rmtree(tmp_path / "set" / "train" / "cow")
    assert any(note.startswith("12 picture files") for note in resume(tmp_path / "cut").rows.notes)
    to_the_end(tmp_path / "cut")
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


@pytest.mark.parametrize("made", [split_folders, table])
@pytest.mark.parametrize("forgotten", ["pixels.npy", "done.jsonl", "survey-*.json", "files-*.npz"])
def test_what_the_cache_does_not_hold_is_named_and_can_be_put_back(tmp_path: Path, made: Made, forgotten: str) -> None:
    stopped(tmp_path / "cut", made(tmp_path))
    for file in (tmp_path / "cache").rglob(forgotten):
        file.unlink()
    picture = tmp_path / "set" / "train" / "cat" / "3.png"
    kept = tmp_path / "kept.png"
    shutil.move(picture, kept)
    with pytest.raises(ToolError, match=r"1 (of the pictures .* )?is gone.*cat/3\.png.*[Pp]ut .*back"):
        resume(tmp_path / "cut")
    shutil.move(kept, picture)
    run = to_the_end(tmp_path / "cut")
    assert run.done and not any("gone" in note for note in run.rows.notes)


def test_a_changed_picture_beside_a_gone_one_is_not_passed_off_as_the_old_one(tmp_path: Path) -> None:
    stopped(tmp_path / "cut", split_folders(tmp_path))
    top = tmp_path / "set" / "train" / "cat"
    (top / "3.png").unlink()
    shutil.copy(top / "5.png", top / "4.png")
    with pytest.raises(ToolError, match="gone"):
        resume(tmp_path / "cut")


@pytest.mark.parametrize("made", [split_folders, table, with_val])
def test_pictures_that_were_changed_are_told_when_a_run_goes_on(tmp_path: Path, made: Made) -> None:
    """Another label was refused; another picture in the place of one was taken without a word."""
    config = made(tmp_path)
    stopped(tmp_path / "cut", config)
    assert not any("rewritten" in note for note in resume(tmp_path / "cut").rows.notes)
    for changed, other in (("train/cat/4.png", "train/cow/5.png"), ("test/cow/1.png", "test/cat/1.png")):
        shutil.copyfile(tmp_path / "set" / other, tmp_path / "set" / changed)
    said = [note for note in resume(tmp_path / "cut").rows.notes if "rewritten since the run started" in note]
    assert sum(int(note.split()[0]) for note in said) == 2 and "cat/4.png" in said[0]
    assert not any("rewritten" in note for note in start(tmp_path / "new", config).rows.notes)
    assert to_the_end(tmp_path / "cut").done


def test_a_new_run_leaves_out_what_is_gone(tmp_path: Path) -> None:
    """Only a run that has seen a picture may use its decoded copy."""
    config = table(tmp_path)
    whole(tmp_path / "first", config)
    (tmp_path / "set" / "train" / "cat" / "3.png").unlink()
    run = start(tmp_path / "second", config)
    assert len(run.rows.data) == 35 and "train/cat/3.png" in [row.id for row in run.rows.left_out]


def test_pictures_to_measure_on_are_not_replaced_by_others_of_the_same_names(tmp_path: Path) -> None:
    """The table's own folder stays where its paths start, also when all that was in it is gone."""
    rows = listed(folder(tmp_path / "set", each=12))
    val = folder(tmp_path / "val", classes=("cow", "cat", "dog"), each=3)
    (tmp_path / "lists").mkdir()
    for table, known in ((tmp_path / "lists" / "train.csv", rows), (val / "val.csv", listed(val))):
        table.write_text("path,label\n" + "".join(f"{path},{label}\n" for path, label in known))
    places = {"pictures__root": str(tmp_path / "set"), "pictures__val": str(val / "val.csv")}
    config = config_of(tmp_path / "lists" / "train.csv", tmp_path / "cache", **places)
    whole(tmp_path / "whole", config)
    stopped(tmp_path / "cut", config)
    for name in ("cat", "cow", "dog"):
        shutil.rmtree(val / name)
    to_the_end(tmp_path / "cut")
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_a_cache_that_cannot_be_written_goes_without_the_memory(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    (tmp_path / "no folder").write_text("")
    files = Files(tmp_path, ["a.png"]).examined()[0]
    assert remember(files, tmp_path / "no folder" / "cache") is None
    kept = remember(files, tmp_path / "cache")
    assert kept is not None
    assert known_from([kept]) == {str(tmp_path / "a.png"): (1, (tmp_path / "a.png").stat().st_mtime_ns)}
    kept.write_bytes(kept.read_bytes()[:40])
    assert known_from([kept]) == {}
