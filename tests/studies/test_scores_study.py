"""The study of scores: a trail holds every epoch, is trained once, and is ranked as by hand."""

from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch

from labelsieve.errors import ToolError, UsageError
from labelsieve.methods.contract import Verdict
from labelsieve.methods.epochs import Epoch
from labelsieve.results.outcome import ScoreHistory, label_score, remember
from runs.tiny import SETTINGS, arrays_file
from studies.scores_study import CHOSEN, Trail, candidates, judged, trained


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
    assert found["prototype chance, last epoch"] == (1.0, 1.0)
    assert found["softmax share, last epoch"][0] == pytest.approx(1 / 3)
    scores = candidates(made_trail())
    assert scores["prototype chance, all"].tolist() == pytest.approx([1.9 / 3, 0.9, 0.9])
    weighted = (1 * 0.9 + 2 * 0.9 + 3 * 0.1) / 6
    assert scores["prototype chance, all, later ones more"][0] == pytest.approx(weighted)
    before = scores["prototype + mixture chance, all, later ones more; and softmax share, last epoch"]
    assert before[0] == pytest.approx(((weighted + 0.9) / 2 + 0.9) / 2)
    trail = made_trail()
    shares = [*trail.prototype_share[trail.divided].mean(1)[-5:, 0], *trail.share[trail.divided].mean(1)[-5:, 0]]
    assert scores[CHOSEN][0] == pytest.approx(scipy.stats.gmean(shares), abs=1e-3)


def test_the_chosen_candidate_is_what_a_run_writes() -> None:
    """The same numbers, once from a trail and once from what a run keeps (in half precision)."""
    trail = made_trail()
    history = ScoreHistory(3, 1)
    for epoch in range(1, 4):
        opinions = {name: tuple(torch.from_numpy(getattr(trail, f"by_{name}")[epoch])) for name in ("loss", "prototype")}
        beliefs = tuple(torch.from_numpy(table[epoch].mean(0)) for table in (trail.share, trail.prototype_share))
        last = Verdict((), opinions, dict.fromkeys(opinions, 0.5), (), beliefs)
        remember(history, Epoch(epoch, "final", (), last))
    assert label_score(last, history).tolist() == pytest.approx(candidates(trail)[CHOSEN].tolist(), abs=1e-3)


def test_a_trail_can_be_cut_short() -> None:
    short = made_trail().until(3)
    assert short.share.shape == (3, 2, 3) and judged(short)["prototype chance, last epoch"][0] == pytest.approx(1 / 3)


def test_a_trail_is_trained_once_and_holds_the_warm_up_too(tmp_path: Path) -> None:
    source = arrays_file(tmp_path / "stripes.npz")
    settings = [f"{key}={value}" for key, value in SETTINGS.items() if key != "data.noise"]
    path = tmp_path / "trail.npz"
    trail = trained(path, source, "sym:0.3", 0, None, settings)
    assert trail.share.shape == (3, 2, 48)  # one epoch of warm-up, one after it, and the last division
    assert trail.divided.tolist() == [False, True, True] and trail.wrong.any()
    before = path.stat().st_mtime_ns
    assert (trained(path, source, "sym:0.3", 0, None, settings).share == trail.share).all()
    for limit, said in ((20, settings), (None, settings[:-1])):
        with pytest.raises(UsageError, match="trail.*: made with (limit|settings) .*another --out"):
            trained(path, source, "sym:0.3", 0, limit, said)
    assert path.stat().st_mtime_ns == before


def test_labels_that_are_all_right_are_told_before_training(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no label is wrong here"):
        trained(tmp_path / "trail.npz", "digits", "none", 0, 100, ["training.epochs=2", "training.warmup=1"])
