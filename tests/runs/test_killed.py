"""A run killed at any moment and taken up again ends as an unbroken one does, bit for bit."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from labelsieve.runs.folder import RunFolder
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start
from runs.moments import watched
from runs.tiny import contents, tiny_config, to_the_end, whole

SPELLS = {
    # a checkpoint an epoch; and none between the first and the last, so that metrics run ahead of them
    "often": {"method": "dividemix", "cleaner": "cpc-awr"},
    "seldom": {"method": "dividemix", "cleaner": "contrastive", "training__epochs": 3, "output__checkpoint_seconds": 1e9},
}


def ended(path: Path, config: Any) -> dict[str, Any]:
    """Go on as a user would: resume what is a run, start what was killed before it was one."""
    run = to_the_end(path) if RunFolder(path).config.exists() else whole(path, config)
    assert run.done
    leftovers = [found.name for found in path.rglob(".*")]
    assert not leftovers
    return contents(path)


@pytest.mark.parametrize("spell", SPELLS)
def test_a_run_killed_at_any_moment_ends_as_an_unbroken_one(tmp_path: Path, source: str, spell: str) -> None:
    config = tiny_config(source, **SPELLS[spell])
    with watched(tmp_path / "run", tmp_path / "shelf") as moments:
        whole(tmp_path / "run", config)
    expected = contents(tmp_path / "run")
    # begun, torn drafts, checkpoints old and new side by side, final outputs one by one
    assert len(moments.copies) > 20
    for copy in moments.copies[:: 3 if spell == "seldom" else 1]:
        assert ended(copy, config) == expected, copy


def test_a_run_killed_again_and_again_ends_as_an_unbroken_one(tmp_path: Path, source: str) -> None:
    config = tiny_config(source, training__epochs=3)
    whole(tmp_path / "run", config)
    path = tmp_path / "killed"
    with watched(path, tmp_path / "shelf") as moments:
        start(path, config)
    for kill, late in enumerate((1, 4, 6)):
        shutil.rmtree(path)
        shutil.copytree(moments.copies[-1], path)
        with watched(path, tmp_path / f"shelf{kill}") as moments:
            to_the_end(path)
        moments.copies = moments.copies[: late * len(moments.copies) // 8]
    assert ended(moments.copies[-1], config) == contents(tmp_path / "run")


@pytest.mark.parametrize("epochs_done", [1, 2, 3])
def test_a_run_stopped_after_any_epoch_ends_as_an_unbroken_one(tmp_path: Path, source: str, epochs_done: int) -> None:
    config = tiny_config(source, training__epochs=3, output__checkpoint_seconds=1e9)
    whole(tmp_path / "unbroken", config)
    run = start(tmp_path / "run", config)
    steps = list(each_epoch(run, stop=lambda: run.epoch == epochs_done))
    assert len(steps) == epochs_done and not run.done
    assert ended(tmp_path / "run", config) == contents(tmp_path / "unbroken")


@pytest.mark.parametrize("cleaner", ["gmm-agn", "cpc-agn", "contrastive"])
def test_the_same_seed_gives_the_same_run_and_another_seed_another(tmp_path: Path, source: str, cleaner: str) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        whole(tmp_path / name, tiny_config(source, cleaner=cleaner, seed=seed))
    a, b, c = (contents(tmp_path / name) for name in "abc")
    assert a == b
    assert a["model.safetensors"] != c["model.safetensors"]
