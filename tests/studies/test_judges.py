"""The study of judges: every variant in every divided epoch, each by its own rule, and no say in the training."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from labelsieve.config.resolve import resolve
from labelsieve.errors import ToolError, UsageError
from labelsieve.methods.epochs import Epoch
from labelsieve.methods.parts.prototypes import PrototypeCleaner
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start
from studies.judges import VARIANTS, Study, main

SETTINGS = ["training.epochs=5", "training.warmup=2", "training.lambda_u=0", "cleaning.dim=16", "engine.threads=1", "device=cpu"]
OPTIONS = {"data.noise": "sym:0.5", "data.limit": 500}


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, list[Epoch]]:
    run = start(tmp_path_factory.mktemp("judges") / "run", resolve("digits", options=OPTIONS, settings=SETTINGS))
    study, epochs = Study(run, run.folder.path / "judges.csv"), []

    def watch(epoch: Epoch) -> None:
        study.watch(epoch)
        epochs.append(epoch)

    for _ in each_epoch(run, watch=watch):
        pass
    return study, [epoch for epoch in epochs if epoch.verdict is not None]


def by_sklearn(study: Study, scores: torch.Tensor) -> float:
    return float(roc_auc_score(study.right.numpy(), scores.numpy()))


def told(study: Study, judge: str) -> list[list[float]]:
    return [[row["first"], row["second"]] for row in study.rows if row["judge"] == judge]


def test_the_table_has_every_judge_in_every_divided_epoch(studied: tuple[Study, list[Epoch]]) -> None:
    study, epochs = studied
    assert [epoch.index for epoch in epochs] == [2, 3, 4, 5]
    names = ["the teacher: mixture over the losses", *VARIANTS]
    assert [(row["epoch"], row["judge"]) for row in study.rows] == [(e.index + 1, name) for e in epochs for name in names]
    with study.path.open(newline="") as file:
        assert [float(row["auc"]) for row in csv.DictReader(file)] == [row["auc"] for row in study.rows]
    last = {name: np.mean(told(study, name)) for name in names}
    ranked = study.table()
    assert [value for _, value, _, _ in ranked] == sorted((value for _, value, _, _ in ranked), reverse=True)
    assert all(value == pytest.approx(last[name]) for name, value, _, _ in ranked)
    tenths = {name: np.mean([row["tenth"] for row in study.rows if row["judge"] == name]) for name in names}
    assert all(tenth == pytest.approx(tenths[name]) for name, _, _, tenth in ranked)
    # No two variants say the same of all labels: each of them changes something.
    # But two: the run's teacher is class-aware, and pictures of 8 px that are not mirrored are their own weak views.
    assert len({tuple(np.ravel(told(study, name))) for name in names}) == len(names) - 2
    assert told(study, "class-aware teacher") == told(study, next(iter(VARIANTS)))


def test_weak_views_are_seen_by_the_networks_that_are_judged(studied: tuple[Study, list[Epoch]]) -> None:
    """They were looked at after the epoch's training, and what is judged is from before it."""
    study, _ = studied
    assert told(study, "features of weak views") == told(study, next(iter(VARIANTS)))


@pytest.mark.parametrize(
    ("name", "own", "strict"),
    [
        (next(iter(VARIANTS)), False, None),
        ("taught by its own network's mixture", True, None),
        ("teacher at 0.9", False, 0.9),
        ("teacher at 0.99", False, 0.99),
    ],
)
def test_a_judge_is_taught_by_the_mixture_that_it_names(
    name: str, own: bool, strict: float | None, studied: tuple[Study, list[Epoch]]
) -> None:
    study, epochs = studied
    threshold = strict or study.run.parts.method.c.mixture_threshold
    batch = study.run.config.training.batch
    judges = [PrototypeCleaner(dim=16, lr=study.run.config.training.lr, batch=batch, seed=100 + r) for r in (0, 1)]
    tenths = [row["tenth"] for row in study.rows if row["judge"] == name]
    for epoch, said, tenth in zip(epochs, told(study, name), tenths):
        first = []
        for r, judge in enumerate(judges):
            assert epoch.verdict is not None
            seen, by_loss = epoch.verdict.seen[r], epoch.verdict.opinions["loss"]
            judge.learn(seen, by_loss[r if own else 1 - r] > threshold)
            scores = judge.judge(seen)
            assert said[r] == pytest.approx(by_sklearn(study, scores))
            first.append(study.right[scores.argsort(descending=True)[:50]].double().mean())
        assert tenth == pytest.approx(np.mean(first))


def test_one_that_judges_before_it_learns_knows_less_of_this_epoch(studied: tuple[Study, list[Epoch]]) -> None:
    study, _ = studied
    ruled, first = told(study, next(iter(VARIANTS))), told(study, "judges before it learns")
    assert first[0] == ruled[0]  # there was nothing to know before
    assert all(one != other for one, other in zip(first[1:], ruled[1:]))


def test_the_study_has_no_say_in_the_training(studied: tuple[Study, list[Epoch]], tmp_path: Path) -> None:
    alone = start(tmp_path / "run", resolve("digits", options=OPTIONS, settings=SETTINGS))
    for _ in each_epoch(alone):
        pass
    for one, other in zip(alone.parts.method.nets, studied[0].run.parts.method.nets):
        state, same = one.state_dict(), other.state_dict()
        assert state.keys() == same.keys() and all(torch.equal(value, same[key]) for key, value in state.items())


def test_as_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main("digits", tmp_path / "run", tmp_path / "t.csv", None, "sym:0.5", 3, [*SETTINGS, "data.limit=300"])
    assert "the teacher: mixture over the losses" in capsys.readouterr().out
    with (tmp_path / "t.csv").open(newline="") as file:
        assert {row["epoch"] for row in csv.DictReader(file)} == {"3"}


def test_some_judges_say_what_they_say_among_all(studied: tuple[Study, list[Epoch]], tmp_path: Path) -> None:
    settings = [*SETTINGS, "data.limit=500"]
    main("digits", tmp_path / "run", tmp_path / "t.csv", None, "sym:0.5", 4, settings, ["mean of", "features of weak"])
    names = ["the teacher: mixture over the losses", "features of weak views", "mean of the last 5 scores"]
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["judge"] for row in rows] == 2 * names
    for name in names:
        assert [float(row["first"]) for row in rows if row["judge"] == name] == [first for first, _ in told(studied[0], name)][:2]
    with pytest.raises(UsageError, match='"maen": no judge begins so.*; there are: ruled'):
        main("digits", tmp_path / "other", tmp_path / "u.csv", None, "sym:0.5", 4, settings, ["mean", "maen"])
    assert not (tmp_path / "other").exists()


def test_labels_that_are_all_right_are_told_before_training(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no label is wrong here"):
        main("digits", tmp_path / "run", tmp_path / "t.csv", None, None, 3, [*SETTINGS, "data.limit=300"])
    assert not (tmp_path / "t.csv").exists()
