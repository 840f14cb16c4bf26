"""The study of scores: a trail holds every epoch, is trained once, and is ranked as by hand."""

from pathlib import Path

import numpy as np
import pytest

from labelsieve.benchmark.scores_study import Trail, candidates, judged, trained
from runs.tiny import SETTINGS, arrays_file


def made_trail(epochs: int = 4) -> Trail:
    """One wrong label of three; the prototypes notice it only in the last epoch."""
    chance = np.full((epochs, 2, 3), 0.9)
    late = chance.copy()
    late[-1, :, 0] = 0.1
    return Trail(
        share=chance,
        margin=chance,
        by_loss=chance,
        by_prototype=late,
        prototype_share=chance,
        divided=np.array([False] + [True] * (epochs - 1)),
        seconds=np.arange(epochs, dtype=float),
        wrong=np.array([True, False, False]),
    )


def test_candidates_see_what_they_name() -> None:
    found = judged(made_trail())
    assert found["prototype chance"] == (1.0, 1.0)
    assert found["softmax share"][0] == pytest.approx(1 / 3)
    assert candidates(made_trail())["prototype chance, all epochs"].tolist() == pytest.approx([1.9 / 3, 0.9, 0.9])


def test_a_trail_can_be_cut_short() -> None:
    short = made_trail().until(3)
    assert short.share.shape == (3, 2, 3) and judged(short)["prototype chance"][0] == pytest.approx(1 / 3)


def test_a_trail_is_trained_once_and_holds_the_warm_up_too(tmp_path: Path) -> None:
    source = arrays_file(tmp_path / "stripes.npz")
    settings = [f"{key}={value}" for key, value in SETTINGS.items() if key != "data.noise"]
    path = tmp_path / "trail.npz"
    trail = trained(path, source, "sym:0.3", 0, None, settings)
    assert trail.share.shape == (3, 2, 48)  # one epoch of warm-up, one after it, and the last division
    assert trail.divided.tolist() == [False, True, True] and trail.wrong.any()
    before = path.stat().st_mtime_ns
    assert (trained(path, source, "sym:0.3", 0, None, settings).share == trail.share).all()
    assert path.stat().st_mtime_ns == before
