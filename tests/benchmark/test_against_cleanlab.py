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

from labelsieve.benchmark import against_cleanlab, comparators
from labelsieve.benchmark.against_cleanlab import (
    Ranking,
    Task,
    by_cleanlab,
    by_labelsieve,
    compare,
    last_division,
    lost,
    out_of_sample,
    summary,
    wrong_labels,
)
from labelsieve.config.schema import Config
from labelsieve.errors import ToolError, UsageError
from labelsieve.runs.rows import rows_for
from labelsieve.train import held
from labelsieve.train.start import start
from runs.tiny import arrays_file, tiny_config


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return tiny_config(arrays_file(tmp_path / "stripes.npz"))


def test_no_fold_sees_the_rows_it_is_asked_about(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[int] = []
    real = held.engine_for

    def watched(config: Config, data, views, device):  # type: ignore[no-untyped-def]
        trained.append(len(data))
        return real(config, data, views, device)

    monkeypatch.setattr(held, "engine_for", watched)
    rows = rows_for(config)
    probs = out_of_sample(Task(config, folds=4, fold_epochs=1), rows)
    assert trained == [36] * 4
    assert torch.allclose(probs.sum(1), torch.ones(48, dtype=torch.float64), atol=1e-5)


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
    assert found.other["auto"]["refused"]
    assert found.other["right_after"] == found.other["right_before"] == 1 - found.other["wrong"] / 48
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
            "data": "digits",
            "size": None,
            "noise": "sym:0.2",
            "seed": seed,
            "cleanlab": {"average_precision": 0.8, "best_score": 0.9},
            "labelsieve": {"average_precision": ours, "other": {}},
        }

    assert lost([row(0, 0.95), row(1, 0.85), row(2, 0.7)]) == (
        "lost rows: 1 of 3 (digits sym:0.2 seed 2); to the best of cleanlab's scores, chosen with the truth: "
        "2 of 3 (digits sym:0.2 seed 1, digits sym:0.2 seed 2)"
    )
    assert lost([row(0, 0.95)]).startswith("lost rows: 0 of 1;")


def test_what_a_run_says_is_held_against_the_truth() -> None:
    def row(low: float, high: float, yielded: int, after: float) -> dict[str, object]:
        other = {"interval": [low, low, high], "yield": [[50, 10, 20, yielded]], "right_before": 0.8, "right_after": after}
        ranked = {"average_precision": 0.9, "other": other}
        return {"data": "d", "size": 9, "noise": "n", "seed": 0, "labelsieve": ranked, "cleanlab": dict.fromkeys(SCORED, 0.8)}

    said = summary([row(0.1, 0.3, 15, 0.9), row(0.3, 0.4, 25, 0.7)])
    assert said[0].endswith("leaves 0.50")
    assert said[2].startswith("the interval held the truth in 1 of 2 rows")
    assert said[3] == "the yield held in 1 of 2"
    assert said[4].endswith("fewer labels were right in 1 of 2")


SCORED = ("average_precision", "best_score")


@pytest.mark.parametrize("name", ["cnn", "logistic"])
def test_other_comparators_do_not_see_what_they_judge_either(name: str, config: Config, tmp_path: Path) -> None:
    if name == "logistic":
        labels = np.arange(60) % 3
        vectors = np.random.default_rng(0).normal(size=(60, 4)) + labels[:, None]
        np.savez(tmp_path / "v.npz", features=vectors, labels=labels)
        config = tiny_config(f"embeddings:{tmp_path / 'v.npz'}", network="mlp")
    rows = rows_for(config)
    fold = comparators.fold_numbers(rows, 3, config.seed)
    before = out_of_sample(Task(config, 3, 2, name), rows)
    rows.data.labels[fold == 0] = (rows.data.labels[fold == 0] + 1) % 3
    with pytest.MonkeyPatch.context() as patch:  # the same folds, whatever the labels are now
        patch.setattr(comparators, "fold_numbers", lambda *asked: fold)
        after = out_of_sample(Task(config, 3, 2, name), rows)
    assert torch.equal(before[fold == 0], after[fold == 0]) and not torch.equal(before[fold == 1], after[fold == 1])
    torch.testing.assert_close(before.sum(1), torch.ones(len(before), dtype=torch.float64))


def test_a_comparator_says_what_it_takes(config: Config) -> None:
    with pytest.raises(UsageError, match="--folds-network logistic takes vectors"):
        out_of_sample(Task(config, 3, 2, "logistic"), rows_for(config))


def test_the_cnn_learns_and_its_views_keep_the_pictures_values() -> None:
    generator = torch.Generator().manual_seed(0)
    pictures = torch.rand(40, 1, 16, 16, generator=generator)
    pictures[::2, :, :8] += 2
    labels = torch.arange(40) % 2
    network = comparators.cnn(1, 16, 2)
    comparators.fit(network, pictures, labels, 40, False, generator)
    assert (network.eval()(pictures).argmax(1) == labels).float().mean() > 0.9
    views = comparators.varied(pictures[:1].expand(30, -1, -1, -1), True, generator)
    assert torch.isin(views, pictures[0]).all() and len({tuple(view.flatten().tolist()) for view in views}) > 10


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
        assert running.communicate(timeout=300)[0] == b"", "the end of what both write to"
    assert running.returncode == -number
