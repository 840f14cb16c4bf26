"""`--quick`: which lengths it chooses, and that a run of that kind ends with a list."""

from pathlib import Path

import pytest

from labelsieve.config.fitting import DECIDED, quick_settings, quick_words
from labelsieve.config.resolve import resolve
from labelsieve.config.schema import override
from labelsieve.errors import UsageError
from labelsieve.issues.table import read_issues
from labelsieve.train.build import training_for
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start


def test_large_sets_train_plainly_and_small_ones_go_on_mixed() -> None:
    large, small = quick_settings(10_000, 64, 64), quick_settings(1_348, 64, 64)
    assert (large["training.warmup"], large["training.epochs"], large["cleaning.passes"]) == (10, 10, 2)
    assert (small["training.warmup"], small["training.epochs"], small["training.lr_drop"]) == (3, 9, 1.0)
    assert "no mixed ones" in quick_words(large) and "6 mixed ones" in quick_words(small)
    assert quick_settings(1_000_000, 128, 128)["cleaning.passes"] == 1


@pytest.mark.parametrize(("samples", "epochs"), [(99 * 64, 9), (99 * 64 + 1, 10)])
def test_a_thousand_plain_steps_are_enough(samples: int, epochs: int) -> None:
    assert quick_settings(samples, 64, 64)["training.epochs"] == epochs


@pytest.mark.parametrize(("samples", "passes"), [(300 * 64, 1), (300 * 64 - 1, 2), (150 * 64, 2), (150 * 64 - 1, 3)])
def test_prototypes_that_learn_once_make_300_steps_at_least(samples: int, passes: int) -> None:
    assert quick_settings(samples, 32, 64)["cleaning.passes"] == passes


def test_prototypes_that_learn_once_at_the_end_have_the_ruled_rate() -> None:
    config = override(resolve("digits"), quick_settings(10_000, 64, 64))
    rates = training_for(config)
    assert config.cleaning.prototype_lr is not None
    assert config.cleaning.prototype_lr * rates.lr_at(9) / rates.lr == pytest.approx(0.02)


@pytest.mark.parametrize(("batch", "epochs"), [(64, 9), (2, 10)])
def test_a_quick_run_ranks_labels(tmp_path: Path, batch: int, epochs: int) -> None:
    settings = ["training.quick=true", f"training.warmup_batch={batch}", "device=cpu"]
    config = resolve("digits", options={"data.noise": "sym:0.3", "data.limit": 220}, settings=settings)
    run = start(tmp_path / "run", config)
    assert any("quick" in choice for choice in run.choices)
    for _ in each_epoch(run):
        pass
    assert run.done and run.epoch == epochs
    assert run.rows.truth is not None
    wrong = {name for name, same in zip(run.rows.data.ids, run.rows.truth.labels == run.rows.data.labels) if not same}
    listed = read_issues(run.folder.issues)["id"][: len(wrong)]
    assert len(wrong & set(listed)) > 0.6 * len(wrong)


def test_quick_and_epochs_contradict_each_other(tmp_path: Path) -> None:
    from labelsieve.cli.train import train

    with pytest.raises(UsageError, match="--quick"):
        train("digits", out=tmp_path / "run", quick=True, epochs=3)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("key", DECIDED)
def test_what_quick_decides_cannot_be_set_as_well(key: str) -> None:
    with pytest.raises(UsageError, match=key):
        resolve("digits", settings=["training.quick=true", f"{key}=1"])
    assert resolve("digits", settings=["training.quick=false", f"{key}=1"]).training.quick is False


def test_all_that_quick_decides_is_named() -> None:
    assert set(quick_settings(10_000, 64, 64)) | set(quick_settings(100, 64, 64)) == set(DECIDED)
