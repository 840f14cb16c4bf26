"""Evidence in issues.csv and scores.npz: it fits together, and how a score moved is what its history says."""

from pathlib import Path

import numpy as np
import pytest
import torch

from labelsieve.issues.table import rank, read_issues
from labelsieve.methods.contract import Verdict
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.results.outcome import ScoreHistory, top_classes, trend
from labelsieve.runs.folder import RunFolder
from runs.tiny import tiny_config, whole


def test_similarities_say_what_the_prototypes_judged(finished: Path) -> None:
    with np.load(finished / "scores.npz") as scores:
        judged = 1 / (1 + np.exp(-scores["similarity_given"]))
        assert np.allclose(judged, scores["by_prototype"], atol=1e-5)
        assert (scores["similarity_best"] >= scores["similarity_given"] - 1e-6).all()
        own = scores["nearest"] == scores["given"][None]
        assert np.allclose(scores["similarity_best"][own], scores["similarity_given"][own])
        assert (scores["networks_agree"] == (scores["suggested"][0] == scores["suggested"][1])).all()
        assert scores["top_probs"].shape == scores["top_classes"].shape == (48, 3)
        assert np.allclose(scores["top_probs"].sum(1), 1, atol=1e-4)  # three classes in all


def test_the_table_holds_the_means_of_both_networks(finished: Path) -> None:
    columns = read_issues(RunFolder(finished).issues)
    with np.load(finished / "scores.npz") as scores:
        place = {name: row for row, name in enumerate(scores["ids"].tolist())}
        rows = [place[name] for name in columns["id"]]
        pairs = {
            "chance_by_prototype": "by_prototype",
            "chance_by_loss": "by_loss",
            "loss": "loss",
            "similarity_given": "similarity_given",
            "similarity_best": "similarity_best",
        }
        for column, array in pairs.items():
            assert np.allclose(columns[column], scores[array].mean(0)[rows], atol=1e-5)
        assert columns["networks_agree"] == scores["networks_agree"][rows].tolist()
        assert np.allclose(columns["suggested_confidence"], scores["top_probs"][rows, 0], atol=1e-5)
        history = scores["history_by_prototype"].astype(float).mean(1)[:, rows]
        assert np.allclose(columns["score_first"], history[0], atol=1e-3)
        assert np.allclose(columns["score_trend"], history[1] - history[0], atol=1e-3)  # two points: a line through both
    assert set(columns["path"]) == {""}


def test_without_prototypes_their_columns_are_empty(tmp_path: Path, source: str) -> None:
    run = whole(tmp_path / "run", tiny_config(source, method="augdmix"))
    columns = read_issues(run.folder.issues)
    for name in ("chance_by_prototype", "similarity_given", "similarity_best"):
        assert np.isnan(columns[name]).all()
    assert np.isfinite(columns["chance_by_loss"]).all() and "like none" not in columns["kind"]


def test_a_trend_is_the_slope_of_a_straight_line_over_the_whole_time() -> None:
    history = ScoreHistory(2, 1)
    for epoch, values in ((0, (0.0, 0.8)), (1, (0.5, 0.8)), (3, (0.75, 0.8))):
        chance = torch.tensor(values)
        history.add(epoch, {"loss": (1 - chance, chance), "prototype": (chance, chance)})
    found = trend(history)
    slope = np.polyfit([0, 1, 3], [0, 0.5, 0.75], 1)[0]
    assert found["score_first"].tolist() == pytest.approx([0, 0.8], abs=1e-3)
    assert found["score_trend"].tolist() == pytest.approx([3 * slope, 0], abs=1e-3)
    assert trend(ScoreHistory(2, 1)) == {}


def test_the_most_probable_classes_come_first() -> None:
    probs = np.array([[0.1, 0.2, 0.05, 0.3, 0.15, 0.2]])
    found = top_classes(probs)
    assert found["top_classes"].tolist() == [[3, 1, 5, 4, 0]]
    assert found["top_probs"][0].tolist() == pytest.approx([0.3, 0.2, 0.2, 0.15, 0.1])


def test_pieces_of_many_samples_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = torch.rand(2, 11, 7, generator=torch.Generator().manual_seed(0))
    labels = torch.zeros(11, dtype=torch.int64)
    seen = tuple(Evidence(labels, torch.zeros(11), probs, torch.zeros(11, 1)) for probs in draws)
    verdict = Verdict(seen, {}, {}, (), ())
    whole = verdict.shares.numpy()
    ranked, top = rank([""] * 11, [""] * 7, labels.numpy(), whole, whole[:, :1].T, 0.5), top_classes(whole)
    assert np.array_equal(whole, draws.mean(0).numpy())
    assert np.array_equal(top["top_classes"][:, :2], np.stack((ranked.predicted, ranked.second), 1))
    monkeypatch.setattr("labelsieve.methods.contract.PIECE", 4)
    monkeypatch.setattr("labelsieve.results.outcome.CHUNK", 4)
    monkeypatch.setattr("labelsieve.issues.table.PIECE", 4)
    assert np.array_equal(verdict.shares.numpy(), whole)
    assert np.array_equal(top_classes(whole)["top_classes"], top["top_classes"])
    assert np.array_equal(rank([""] * 11, [""] * 7, labels.numpy(), whole, whole[:, :1].T, 0.5).second, ranked.second)
    assert top_classes(whole[:0])["top_classes"].shape == (0, 5)
