"""Data that moved with all that a run names beside them: a table, its --root, --val and --trusted, found again by --data."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cli.own import folder
from labelsieve.config.moved import moved_to
from labelsieve.config.resolve import resolve_next
from labelsieve.config.schema import Config, DataConfig, TrainingConfig
from labelsieve.corrected.apply import apply_run
from labelsieve.data.pictures import pool
from labelsieve.errors import ToolError
from labelsieve.exports.export import export_run
from labelsieve.predict.model import evaluate_model
from labelsieve.results.reporting import run_report
from labelsieve.review.opening import open_review
from labelsieve.runs.folder import RunFolder
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.made_runs import as_advised
from runs.tiny import contents, tiny_config

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data in it, a run that rests after its first epoch, and the same run at its end."""
    top = tmp_path_factory.mktemp("before")
    pictures = folder(top / "data" / "pictures" / "train", each=12)
    rows = [f"{path.relative_to(pictures)},{path.parent.name}\n" for path in sorted(pictures.rglob("*.png"))]
    table = top / "data" / "tables" / "labels.csv"
    table.parent.mkdir()
    table.write_text("path,label\n" + "".join(rows))
    trusted = top / "data" / "tables" / "trusted.txt"
    trusted.write_text("cat/0.png\n")
    val = folder(top / "data" / "pictures" / "val", each=3)
    named = {"pictures__root": str(pictures), "pictures__val": str(val), "data__trusted": str(trusted), "data__noise": "none"}
    config = tiny_config(f"pictures:{table}", pictures__cache_dir=str(top / "cache"), **named)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "FEW", 10**6)
        run = start(top / "rests", config)
        for _ in each_epoch(run, stop=lambda: run.epoch >= 1):
            pass
        shutil.copytree(top / "rests", top / "done")
        for _ in each_epoch(resume(top / "done")):
            pass
    return top


@pytest.fixture
def moved(before: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The source as it is called now, while nothing is left where the run began."""
    monkeypatch.setattr(pool, "FEW", 10**6)
    shutil.copytree(before / "data", tmp_path / "now")
    (before / "data").rename(before / "away")
    yield f"pictures:{tmp_path / 'now' / 'tables' / 'labels.csv'}"
    (before / "away").rename(before / "data")


def test_a_report_shows_the_pictures(before: Path, moved: str) -> None:
    report, remark = run_report(before / "done", moved)
    assert remark == "" and report.corners is not None
    assert "no longer there; say where they are now with --data" in run_report(before / "done")[1]


def test_a_run_is_resumed_and_ends_as_it_would_have(before: Path, moved: str, tmp_path: Path) -> None:
    shutil.copytree(before / "rests", tmp_path / "run")
    with pytest.raises(ToolError, match=r"no longer there; say where they are now with --data"):
        resume(tmp_path / "run")
    for _ in each_epoch(resume(tmp_path / "run", source=moved)):
        pass
    assert contents(tmp_path / "run") == contents(before / "done")


def test_corrected_tables_name_pictures_that_are_there(before: Path, moved: str, tmp_path: Path) -> None:
    apply_run(before / "done", tmp_path / "out" / "new.csv", as_advised(before / "done"), source=moved)
    rows = (tmp_path / "out" / "new.csv").read_text().splitlines()[1:]
    assert rows and all(Path(row.split(",")[0]).is_file() for row in rows)
    with pytest.raises(ToolError, match=r"say where they are now with --data"):
        apply_run(before / "done", tmp_path / "other" / "new.csv", as_advised(before / "done"))


def test_a_root_that_is_nowhere_is_told_before_dead_paths_are_written(before: Path, moved: str, tmp_path: Path) -> None:
    (tmp_path / "now" / "pictures").rename(tmp_path / "somewhere")
    with pytest.raises(ToolError, match=r"pictures/train: the folder that the paths of .*labels\.csv start from"):
        apply_run(before / "done", tmp_path / "out" / "new.csv", as_advised(before / "done"), source=moved)
    assert not (tmp_path / "out").exists()


def test_the_review_has_pictures(before: Path, moved: str) -> None:
    shown = open_review(before / "done", moved).pictures
    shown.open()
    assert shown.encoded("cat/1.png", "small")[1].startswith("image/")
    gone = open_review(before / "done").pictures
    gone.open()
    assert gone.remark.endswith("say where they are now with --data")


@pytest.mark.parametrize("target", ["huggingface", "cleanlab"])
def test_an_export_has_everything(before: Path, moved: str, tmp_path: Path, target: str) -> None:
    with pytest.raises(ToolError, match=r"say where they are now with --data"):
        export_run(before / "done", target, tmp_path / "no")
    out = export_run(before / "done", target, tmp_path / "out", source=moved).path
    if target == "huggingface":
        rows = [json.loads(line) for line in (out / "train" / "metadata.jsonl").read_text().splitlines()]
        assert len(rows) == 36 and all((out / "train" / row["file_name"]).is_file() for row in rows)


def test_the_next_round_takes_everything_along(before: Path, moved: str, tmp_path: Path) -> None:
    following = resolve_next(RunFolder.open(before / "done").read_config(), moved.removeprefix("pictures:"))
    assert following.pictures.root == str(tmp_path / "now" / "pictures" / "train")
    assert following.pictures.val == str(tmp_path / "now" / "pictures" / "val")
    said = resolve_next(
        RunFolder.open(before / "done").read_config(), moved.removeprefix("pictures:"), options={"pictures.val": str(tmp_path)}
    )
    assert said.pictures.val == str(tmp_path)


def test_evaluate_says_what_to_name(before: Path, moved: str) -> None:
    with pytest.raises(ToolError, match=r"pictures/val: what the run was measured on is no longer there.*evaluate .* DATA"):
        evaluate_model(before / "done", None, "cpu")


def test_looking_at_training_pictures_needs_no_val_and_no_trusted_ids(before: Path, moved: str, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "now" / "pictures" / "val")
    (tmp_path / "now" / "tables" / "trusted.txt").unlink()
    assert run_report(before / "done", moved)[1] == ""
    assert "samples of the run's data" in export_run(before / "done", "torch-export", tmp_path / "x", source=moved).words


def test_files_that_are_still_there_stay_and_words_before_them_too(tmp_path: Path) -> None:
    for place in ("old/noise.npz", "new/noise.npz", "new/prior.csv"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).touch()
    data = DataConfig(source=f"arrays:{tmp_path}/old/a.npz", noise=f"file:{tmp_path}/old/noise.npz")
    config = replace(Config(data=data), training=TrainingConfig(prior=f"file:{tmp_path}/old/prior.csv"))
    found = moved_to(config, f"arrays:{tmp_path}/new/b.npz")
    assert found.data.noise == config.data.noise and found.training.prior == f"file:{tmp_path}/new/prior.csv"
    assert moved_to(config, "digits") == replace(config, data=replace(config.data, source="digits"))
