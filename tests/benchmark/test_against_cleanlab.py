"""The comparison measures what it says: out of sample, within its time, each in its own process."""

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from labelsieve.benchmark import against_cleanlab
from labelsieve.benchmark.against_cleanlab import (
    Ranking,
    Task,
    by_cleanlab,
    by_labelsieve,
    compare,
    last_division,
    lost,
    out_of_sample,
    wrong_labels,
)
from labelsieve.config.schema import Config
from labelsieve.errors import ToolError
from labelsieve.runs.rows import rows_for
from labelsieve.train.start import start
from runs.tiny import arrays_file, tiny_config


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return tiny_config(arrays_file(tmp_path / "stripes.npz"))


def test_no_fold_sees_the_rows_it_is_asked_about(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[int] = []
    real = against_cleanlab.engine_for

    def watched(config: Config, data, views, device):  # type: ignore[no-untyped-def]
        trained.append(len(data))
        return real(config, data, views, device)

    monkeypatch.setattr(against_cleanlab, "engine_for", watched)
    rows = rows_for(config)
    probs = out_of_sample(Task(config, folds=4, fold_epochs=1), rows)
    assert trained == [36] * 4
    assert torch.allclose(probs.sum(1), torch.ones(48), atol=1e-5)


def test_a_changed_picture_changes_what_is_said_of_it_and_of_the_other_fold_only(config: Config) -> None:
    rows = rows_for(config)
    images = rows.data.images.clone()
    images[0] = 255 - images[0]
    other = replace(rows, data=replace(rows.data, images=images))
    first, second = (out_of_sample(Task(config, folds=2, fold_epochs=1), each) for each in (rows, other))
    same = (first == second).all(1)
    assert not same[0] and int(same.sum()) == 23  # the 23 others of its fold were judged by a network that did not see it


def test_both_rank_every_row(config: Config) -> None:
    pytest.importorskip("cleanlab")
    for found in (by_cleanlab(Task(config, folds=2, fold_epochs=2)), by_labelsieve(Task(config))):
        assert 0 < found.average_precision <= found.best_score <= 1 and 0 <= found.recall <= 1
        assert found.seconds > 0 and found.peak_mib > 10 and found.other["samples"] == 48
    assert set(by_cleanlab(Task(config, folds=2, fold_epochs=1)).other["scores"]) == set(against_cleanlab.CLEANLAB_SCORES)


def test_a_budget_ends_training_early_but_not_without_a_division(config: Config, tmp_path: Path) -> None:
    run = start(tmp_path / "run", config)
    ticks = iter(range(10, 1000, 10))
    last = last_division(run, 15.0, lambda: float(next(ticks)))
    assert run.epoch == 1 < run.parts.method.training.epochs and len(last.opinions["prototype"]) == 2


def test_without_true_labels_there_is_nothing_to_measure(tmp_path: Path) -> None:
    config = tiny_config(arrays_file(tmp_path / "stripes.npz"), data__noise="none")
    with pytest.raises(ToolError, match="--noise"):
        by_labelsieve(Task(config))


def test_compare_gives_both_the_same_labels_and_one_the_others_time(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cleanlab")
    tasks: list[Task] = []

    def here(work: Callable[[Task], Ranking], task: Task) -> Ranking:  # in this process: a new one takes seconds to start
        tasks.append(task)
        return work(task)

    monkeypatch.setattr(against_cleanlab, "in_child", here)
    said: list[str] = []
    row = compare(Task(config, folds=2, fold_epochs=1), True, said.append)
    assert row["seed"] == 0 and len(said) == 3
    assert tasks[0].budget is None and tasks[1].budget == row["cleanlab"]["spent"]
    assert row["labelsieve"]["other"]["wrong"] == row["cleanlab"]["other"]["wrong"] == int(np.sum(wrong(config)))


def wrong(config: Config) -> np.ndarray:
    return wrong_labels(rows_for(config))


def test_lost_rows_are_named() -> None:
    def row(seed: int, ours: float) -> dict[str, object]:
        return {
            "noise": "sym:0.2",
            "seed": seed,
            "cleanlab": {"best_score": 0.9},
            "labelsieve": {"average_precision": ours},
        }

    assert "sym:0.2 seed 1" in lost([row(0, 0.95), row(1, 0.9)])
    assert "better in all 1 rows" in lost([row(0, 0.95)])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_command_alone_ends_what_measures_too(number: signal.Signals) -> None:
    """As `kill` and schedulers send it; a terminal's Ctrl-C goes to both. What a shell begins in its background ignores Ctrl-C,
    and so would what this test starts, if the test was begun so."""
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    work = "print('at work', flush=True); import time; time.sleep(600)"
    words = f"{heeding}from labelsieve.benchmark.against_cleanlab import in_child; in_child(exec, {work!r})"
    with subprocess.Popen([sys.executable, "-c", words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None and running.stdout.readline() == b"at work\n"
        running.send_signal(number)
        assert running.communicate(timeout=30)[0] == b"", "the end of what both write to"
    assert running.returncode == -number
