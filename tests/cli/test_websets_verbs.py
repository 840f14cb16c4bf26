"""inspect, train, evaluate and bench --profile on the large sets, called as a shell would, in their smallest form."""

import json
from pathlib import Path

import pytest

from data.pictures.made_websets import clothing1m, imagenet_flat, webvision

from .conftest import Shell

pytestmark = pytest.mark.usefixtures("own_cache")

TINY = [
    "--network=small",
    "--device=cpu",
    "--epochs=2",
    "--set=pictures.size=16",
    "--set=views.crop=12",
    "--set=training.batch=8",
    "--set=training.warmup_batch=8",
    "--set=training.epoch_batches=2",
    "--set=engine.threads=1",
    "--set=engine.eval_batch=16",
]


def test_inspect_says_what_is_there_and_what_is_not(shell: Shell, tmp_path: Path) -> None:
    root = clothing1m(tmp_path / "data")
    whole = shell("inspect", f"clothing1m:{root}")
    assert whole.code == 0 and "train: 48 pictures listed, 48 there" in whole.out
    assert "12.4 MiB on the disk" in whole.out and "everything that the lists name is there" in whole.out
    (root / "images/1/0/clean_val0,0.jpg").unlink()
    half = shell("inspect", root)  # known by its lists
    assert half.code != 0 and "1 listed pictures missing" in half.err
    assert "1 are missing: images/1/0/clean_val0,0.jpg" in half.out
    found = json.loads(shell("inspect", f"clothing1m:{root}", "--json").out)
    assert not found["is_whole"] and found["splits"][1]["missing"] == ["images/1/0/clean_val0,0.jpg"]
    assert "annotations/noisy_label_kv.txt is missing" in shell("inspect", f"clothing1m:{tmp_path}").out


def test_webvision_trains_and_is_evaluated(shell: Shell, tmp_path: Path) -> None:
    root, second = webvision(tmp_path / "data"), imagenet_flat(tmp_path / "val")
    run = tmp_path / "run"
    told = shell("train", f"webvision:{root}", "--second-test", second, "--out", run, *TINY)
    assert told.code == 0, told.err
    assert "accuracy ilsvrc12" in told.out and "3 x 16 x 16 pixels" in told.out + told.err
    again = shell("evaluate", run, "--json")
    found = json.loads(again.out)
    assert again.code == 0 and found["pictures"] == 9 and set(found["also"]) == {"ilsvrc12"}
    assert "accuracy on ilsvrc12: network 1" in shell("evaluate", run).out


def test_clothing1m_says_which_epoch_became_the_model(shell: Shell, tmp_path: Path) -> None:
    root = clothing1m(tmp_path / "data")
    told = shell("train", f"clothing1m:{root}", "--out", tmp_path / "run", *TINY)
    assert told.code == 0, told.err
    assert "test accuracy of that model, measured once" in told.out and "validation" in told.out


def test_a_folder_half_unpacked_ends_before_any_training(shell: Shell, tmp_path: Path) -> None:
    root = webvision(tmp_path / "data")
    for path in (root / "google" / "q0001").iterdir():
        path.unlink()
    told = shell("train", f"webvision:{root}", "--out", tmp_path / "run", *TINY)
    assert told.code != 0 and "16 of 57 listed pictures are missing" in told.err and not (tmp_path / "run").exists()


def test_a_plan_for_a_large_set_reads_its_lists_only(shell: Shell, tmp_path: Path) -> None:
    root = clothing1m(tmp_path / "data")
    told = shell("train", f"clothing1m:{root}", "--dry-run", "--set", f"pictures.cache_dir={tmp_path / 'kept'}")
    assert told.code == 0, told.err
    assert "train: 48 pictures listed, 48 there" in told.out and "draws 1,000 batches per epoch" in told.out
    assert not (tmp_path / "kept").exists()


def test_labels_are_checked_against_a_known_set(shell: Shell, tmp_path: Path) -> None:
    train = json.loads(shell("inspect", "digits", "--json").out)["samples"]
    (tmp_path / "noise.json").write_text(json.dumps([0] * train))
    told = shell("inspect", "digits", "--noise", f"file:{tmp_path / 'noise.json'}")
    assert told.code == 0 and f"of {train:,} labels differ" in told.out
    (tmp_path / "short.json").write_text(json.dumps([0] * 7))
    wrong = shell("inspect", "digits", "--noise", f"file:{tmp_path / 'short.json'}")
    assert wrong.code != 0 and f"7 labels for {train} samples" in wrong.err


def test_the_profile_runs_on_a_cpu(shell: Shell, tmp_path: Path) -> None:
    small = ["--set=pictures.size=12", "--set=views.crop=8", "--set=training.batch=4", "--set=engine.eval_batch=8"]
    told = shell("bench", "--profile", "large", "--device", "cpu", "--samples", "16", "--json", tmp_path / "p.json", *small)
    assert told.code == 0, told.err
    assert "step time" in told.out and "data time" in told.out and "wait for its pictures" in told.out
    assert json.loads((tmp_path / "p.json").read_text())["step_ms"] > 0
    assert "large" in shell("bench", "--profile", "huge", "--device", "cpu").err
