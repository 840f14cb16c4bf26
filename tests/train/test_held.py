"""Of few pictures, those who have not seen a label judge it: heads on patches beside networks by folds, in every run alike."""

from pathlib import Path

import numpy as np
import pytest
import torch

from labelsieve.config.fitting import FEW, heads_for
from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config, override
from labelsieve.issues.table import read_issues
from labelsieve.methods.parts import patches
from labelsieve.methods.parts.heads import folds_of, label_share
from labelsieve.runs.rows import Watch, rows_for
from labelsieve.train import held
from labelsieve.train.held import held_for, out_of_fold
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, settled, start


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FILTERS": 40, "DRAWN": 2_000, "AXES": 64}.items():
        monkeypatch.setattr(patches, name, value)
    monkeypatch.setattr(held, "FOLD", held.FOLD | {"training.epochs": 2})


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Pictures with stripes along or across."""
    rng, labels = np.random.default_rng(0), np.arange(120) % 2
    along = np.broadcast_to(40 * np.sin(1.5 * np.arange(16)), (16, 16))
    images = np.stack([along if label else along.T for label in labels])[..., None] + 128 + rng.normal(0, 15, (120, 16, 16, 3))
    path = tmp_path_factory.mktemp("few") / "d.npz"
    np.savez(path, images=images.clip(0, 255).astype(np.uint8), labels=labels)
    return f"arrays:{path}"


def told(source: str, **options: object) -> Config:
    wanted = {"data.noise": "sym-other:0.1", "device": "cpu", "training.epochs": 3, "training.warmup": 2} | options
    return resolve(source, options=wanted)


def test_few_pictures_are_judged_by_others_than_the_networks(source: str) -> None:
    config = told(source)
    whole, said = settled(config, rows_for(config))
    assert whole.cleaning.judge == "heads" and any("cleaning.judge=networks" in each for each in said)
    assert heads_for((3, 32, 32), FEW) and not heads_for((3, 32, 32), FEW + 1) and not heads_for((1, 8, 8), 100)
    for other in ({"cleaning.judge": "networks"}, {"method": "ce"}, {"cleaner": "gmm-awr"}):
        config = told(source, **other)
        rows = rows_for(config)
        assert held_for(settled(config, rows)[0], rows) is None


def test_the_list_is_theirs_and_a_resumed_run_has_the_same(source: str, tmp_path: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    for _ in each_epoch(start(tmp_path / "whole", told(source), Watch(lambda *said: heard.append(said)))):
        pass
    assert heard == [("judging", done, 10) for done in range(1, 11)]
    run = start(tmp_path / "stopped", told(source))
    for _ in each_epoch(run, stop=lambda: run.epoch >= 1):
        pass
    run = resume(tmp_path / "stopped")
    for _ in each_epoch(run):
        pass
    for name in ("issues.csv", "scores.npz", "metrics.jsonl"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "stopped" / name).read_bytes(), name
    judged, rows = run.parts.held, run.rows
    assert judged is not None and judged.said.shape == (3, 120) and judged.by == "networks"
    score = label_share(judged.probs, rows.data.labels).numpy()
    listed = [rows.data.ids.index(name) for name in read_issues(tmp_path / "whole" / "issues.csv")["id"]]
    assert (np.diff(score[listed]) >= 0).all()
    wrong = (rows.truth.labels != rows.data.labels).numpy()
    assert wrong[listed[: wrong.sum()]].mean() > 0.9


def test_networks_by_folds_have_not_seen_what_they_judge(source: str) -> None:
    """A row's label changes what it is trained with in other folds, and nothing of what is said of its own."""
    config = told(source, **{"training.batch": 16, "training.warmup_batch": 16})
    rows = rows_for(config)
    config = settled(config, rows)[0]
    fold = folds_of(rows.data.labels, 0)
    before = out_of_fold(config, rows, fold, held.FOLD)
    torch.testing.assert_close(before.sum(1), torch.ones(120))
    rows.data.labels[fold == 0] = 1 - rows.data.labels[fold == 0]
    after = out_of_fold(config, rows, fold, held.FOLD)
    assert torch.equal(before[fold == 0], after[fold == 0])
    assert not torch.equal(before[fold == 1], after[fold == 1])


def test_quick_has_plain_epochs_only(source: str) -> None:
    config = resolve(source, options={"training.quick": True})
    whole, said = settled(config, rows_for(config))
    assert whole.training.epochs == whole.training.warmup and any(each.startswith("quick: ") for each in said)
    networks = override(config, {"cleaning.judge": "networks"})
    assert settled(networks, rows_for(config))[0].training.epochs > settled(networks, rows_for(config))[0].training.warmup
