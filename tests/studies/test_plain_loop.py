"""The plain loop: its views are crops of the padded picture, its epochs divide and learn, and a run goes the same way."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from labelsieve.config.resolve import resolve
from labelsieve.errors import UsageError
from labelsieve.runs.rows import rows_for
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start
from studies.plain_loop import COLUMNS, PlainLoop, main

SETTINGS = ["training.epochs=7", "training.warmup=3", "training.batch=32", "training.warmup_batch=32", "training.lambda_u=5"]
SETTINGS += ["training.ramp_epochs=2", "training.mixed=true", "training.lr_drop=0.8", "engine.threads=1", "device=cpu"]
NAMES = {"auc": "auc_loss", "precision": "clean_precision"}
OPTIONS = {"data.noise": "sym:0.5", "data.limit": 700, "method": "dividemix", "cleaner": "gmm-agn"}


@pytest.fixture(scope="module")
def loop() -> PlainLoop:
    config = resolve("digits", options=OPTIONS, settings=[*SETTINGS, "cleaning.mixture_threshold=0.5"])
    return PlainLoop(config, rows_for(config))


@pytest.mark.parametrize(("side", "pad"), [(8, 0), (16, 2)])
def test_a_view_is_a_crop_of_the_padded_picture(side: int, pad: int, loop: PlainLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    images = torch.randint(0, 256, (9, 1, side, side), dtype=torch.uint8)
    monkeypatch.setattr(loop, "images", images)
    monkeypatch.setattr(loop, "mirror", True)
    rows = torch.tensor([3, 3, 3, 3, 8, 8])
    views, found = [loop.view(rows) for _ in range(60)], set()
    for each, row in enumerate(rows):
        padded = F.pad(images[row][None], (pad, pad, pad, pad))
        crops = {
            (top, left, flip): loop.plain(crop.flip(-1) if flip else crop)[0]
            for top in range(2 * pad + 1)
            for left in range(2 * pad + 1)
            for flip in (False, True)
            for crop in [padded[:, :, top : top + side, left : left + side]]
        }
        for view in views:
            same = [key for key, crop in crops.items() if torch.equal(crop, view[each])]
            assert len(same) == 1
            found.add(same[0])
    assert len({key[:2] for key in found}) == (2 * pad + 1) ** 2 and {key[2] for key in found} == {False, True}


@pytest.mark.slow
def test_a_run_of_the_same_settings_goes_the_same_way(loop: PlainLoop, tmp_path: Path) -> None:
    """Far from exactly: other weights, draws and orders. But both find the wrong labels, and gain by it."""
    plain = list(loop.epochs(7))
    assert loop.optimisers[0].param_groups[0]["lr"] == pytest.approx(loop.training.lr / 10)
    ours = [step.record for step in each_epoch(start(tmp_path / "run", loop.config))][:-1]
    assert [row["epoch"] for row in plain] == [record["epoch"] for record in ours] == [*range(1, 8)]
    assert all("auc" not in row for row in plain[:3]) and all(row["auc"] > 0.8 for row in plain[4:])
    for key, bound in (("accuracy", 3.0), ("auc", 0.01), ("precision", 0.03)):
        theirs = np.mean([row[key] for row in plain[4:]])
        mine = np.mean([r["accuracy"]["both"] if key == "accuracy" else np.mean(r[NAMES[key]]) for r in ours[4:]])
        assert abs(theirs - mine) < bound, key
    assert plain[-1]["accuracy"] > 93
    # cross-entropy in the warm-up, where nothing but views, steps and the network acts
    assert plain[2]["cross_entropy"] == pytest.approx(np.mean(ours[2]["loss"]["cross_entropy"]), abs=0.06)


def test_as_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main("digits", tmp_path / "t.csv", 4, None, "sym:0.4", 1, [*SETTINGS, "data.limit=200"])
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["1", "2", "3", "4"] and tuple(rows[0]) == COLUMNS
    assert rows[0]["cross_entropy"] and not rows[0]["auc"] and rows[3]["auc"] and int(rows[3]["X_1"]) > 0
    assert "epoch 4" in capsys.readouterr().out


def test_the_warm_up_and_the_penalty_heed_their_settings() -> None:
    """Of unevenly given labels, with the entropy in the warm-up: the first epoch's loss is less by about that entropy."""
    less = {}
    for penalty in (False, True):
        config = resolve(
            "digits", options=OPTIONS, settings=[*SETTINGS, f"training.entropy_penalty={penalty}", "training.prior=given"]
        )
        plain = PlainLoop(config, rows_for(config))
        assert torch.equal(plain.prior, torch.bincount(plain.labels, minlength=10) / len(plain.labels))
        less[penalty] = next(plain.epochs(1))["cross_entropy"]
    assert less[False] - less[True] == pytest.approx(2.2, abs=0.4)  # log 10 at the start


@pytest.mark.parametrize(
    "setting", ["training.train_unlabelled=false", "cleaning.least_clean=0.5", "cleaning.mixture_range=class"]
)
def test_settings_that_it_does_not_know_are_refused(setting: str) -> None:
    config = resolve("digits", options=OPTIONS, settings=[*SETTINGS, setting])
    with pytest.raises(UsageError, match=f"{setting.partition('=')[0]} is .*plain loop does as if"):
        PlainLoop(config, rows_for(config))
