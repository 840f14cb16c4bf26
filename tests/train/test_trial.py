"""Vectors find their own warm-up, and a run's list is the one that find_label_issues gives, however easily networks memorise."""

from pathlib import Path

import numpy as np
import pytest

from labelsieve import find_label_issues
from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config, override
from labelsieve.errors import ToolError
from labelsieve.issues.table import read_issues
from labelsieve.runs.rows import rows_for
from labelsieve.train.decide import tried
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import settled, start
from runs.tiny import tiny_config


def wide(path: Path, wrong: float, count: int = 240) -> tuple[str, np.ndarray]:
    """More dimensions than rows, so that any labels can be fitted; the file, and which labels are wrong (N,)."""
    rng = np.random.default_rng(0)
    truth = np.arange(count) % 3
    features = 1.5 * np.repeat(np.eye(3), 4, 0).T[truth] @ rng.normal(size=(12, 400)) / 2 + 2 * rng.normal(size=(count, 400))
    flipped = rng.random(count) < wrong
    np.savez(path, features=features, labels=np.where(flipped, (truth + rng.integers(1, 3, count)) % 3, truth))
    return f"embeddings:{path}", flipped


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, np.ndarray]:
    return wide(tmp_path_factory.mktemp("wide") / "v.npz", 0.4)


def run_to_the_end(path: Path, config: Config) -> None:
    for _ in each_epoch(start(path, config)):
        pass


def test_a_run_ranks_as_find_label_issues_does(noisy: tuple[str, np.ndarray], tmp_path: Path) -> None:
    """Networks that had memorised the labels ranked them: with 40 % wrong labels the list was hardly better than chance."""
    source, flipped = noisy
    run_to_the_end(tmp_path / "run", resolve(source))
    listed = read_issues(tmp_path / "run" / "issues.csv")["id"]
    arrays = np.load(source.removeprefix("embeddings:"))
    found = find_label_issues(arrays["features"].astype(np.float32), arrays["labels"])
    order = [int(name) for name in listed]
    assert order == found.order.tolist()
    assert flipped[order[: flipped.sum()]].mean() > 0.9


def test_the_warm_up_is_shorter_where_more_would_be_memorised(noisy: tuple[str, np.ndarray], tmp_path: Path) -> None:
    clean, _ = wide(tmp_path / "clean.npz", 0.0)
    found = {}
    for name, source in (("noisy", noisy[0]), ("clean", clean)):
        config = resolve(source)
        rows = rows_for(config)
        whole, choices = settled(config, rows)
        trial = tried(override(config, {"training.batch": 16, "training.warmup_batch": 16, "engine.eval_batch": 64}), rows)
        assert (whole.training.warmup, whole.training.lr) == (trial.epochs, trial.lr) and trial.words() in choices
        found[name] = trial
    assert found["noisy"].epochs * found["noisy"].lr < found["clean"].epochs * found["clean"].lr


def test_a_rate_that_was_given_is_kept(noisy: tuple[str, np.ndarray]) -> None:
    config = override(resolve(noisy[0]), {"training.lr": 0.01, "training.warmup": 2})
    whole, _ = settled(config, rows_for(config))
    assert (whole.training.warmup, whole.training.lr) == (2, 0.01)


def test_pictures_do_not_find_their_rate(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="only vectors find their own rate"):
        start(tmp_path / "run", tiny_config("digits", training__lr=0.0))
