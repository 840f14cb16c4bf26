"""Time from measured speed, by hand; and what fits a budget."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from labelsieve.benchmark.speed import LOOK
from labelsieve.errors import ToolError, UsageError
from labelsieve.reproduce.paper import TABLES, Job
from labelsieve.reproduce.plan import (
    H200,
    MARGIN,
    MeasuredSpeed,
    fit,
    from_bench,
    labelled_share,
    measured_here,
    network_of,
    phases,
    seconds_of,
    total,
)
from labelsieve.reproduce.tasks import Places, Settings, Task, tasks_for

CIFAR100 = [job for job in TABLES["table3"]().jobs if job.name.startswith("cifar100")]
ROUND = MeasuredSpeed("preact-resnet18", 32, 50_000, 25_000, 2.0, 5.0, 1.0, 10.0, 0.5, "a machine")


def make(jobs: list[Job], settings: Settings) -> list[Task]:
    return tasks_for(jobs, [0], settings, Places(), Path("nowhere"))


def test_a_runs_time_is_start_warm_up_and_mixed_epochs() -> None:
    (task,) = make(CIFAR100[:1], Settings())
    assert phases(task) == (30, 420)
    assert labelled_share(task) == 0.35  # 10.9 % are right at 90 %, but more count as clean
    mixed = 1.0 + 4.0 * 0.35 * 50_000 / 25_000
    assert seconds_of(task, ROUND) == pytest.approx(10 + 30 * 2.5 + 420 * (mixed + 0.5))
    assert seconds_of(task, ROUND, shared=True) == pytest.approx(10 + 420 * (mixed + 0.5))


def test_at_odds_fewer_labels_count_as_clean() -> None:
    """A run at 3 in 100 took 11.7 minutes where the plan for even odds says 24."""
    odds = Settings(sets=("cleaning.prototype_prior=0.03",))
    by_cleaner = {task.config.cleaner: labelled_share(task) for task in make(CIFAR100, odds)}
    right = pytest.approx(0.109)
    assert by_cleaner == {"gmm-agn": 0.35, "gmm-awr": 0.35, "cpc-agn": right, "cpc-awr": right}
    (between,) = make([CIFAR100[-1]], Settings(sets=("cleaning.prototype_prior=0.4",)))
    assert labelled_share(between) == pytest.approx(0.28)
    (even, ours) = (make([CIFAR100[-1]], settings)[0] for settings in (Settings(), odds))
    assert [round(seconds_of(task, H200) / 60) for task in (even, ours)] == [24, 11]


def test_a_subset_takes_its_share() -> None:
    (whole,), (part,) = make(CIFAR100[:1], Settings()), make(CIFAR100[:1], Settings(limit=5000))
    always = 10 + 450 * 0.5  # the start, and all test pictures after every epoch
    assert seconds_of(part, ROUND) - always == pytest.approx((seconds_of(whole, ROUND) - always) / 10)


def test_fewer_test_pictures_take_their_share() -> None:
    (task,) = make(CIFAR100[:1], Settings(sets=("data.test_limit=2000",)))
    (whole,) = make(CIFAR100[:1], Settings())
    assert seconds_of(whole, ROUND) - seconds_of(task, ROUND) == pytest.approx(450 * 0.5 * 0.8)


def test_siblings_pay_for_one_warm_up_and_unknown_speeds_are_not_counted() -> None:
    tasks = make(TABLES["table3"]().jobs, Settings())
    by_task, seconds = total(tasks, [ROUND])
    cifar = [by_task[task.name] for task in tasks if task.job.name.startswith("cifar100")]
    assert cifar[0] is not None and cifar[1] is not None and cifar[0] - cifar[1] == pytest.approx(75) and cifar[1] == cifar[2]
    assert {by_task[task.name] for task in tasks if task.job.source in ("webvision", "clothing1m")} == {None}
    assert seconds == pytest.approx(sum(value for value in by_task.values() if value is not None))


def test_a_budget_takes_the_longest_length_that_fits() -> None:
    found = fit(CIFAR100, Settings(), make, [H200], 25 * 60)
    assert found.jobs == CIFAR100 and found.dropped == [] and found.seconds <= 25 * 60
    longer = Settings(share=found.settings.share + 0.01)
    assert MARGIN * total(make(CIFAR100, longer), [H200])[1] > 25 * 60
    assert fit(CIFAR100, Settings(), make, [H200], 24 * 3600).settings.share == 1


def test_a_small_budget_drops_the_last_cells_rather_than_the_last_epochs() -> None:
    found = fit(CIFAR100, Settings(), make, [H200], 12 * 60)
    assert 0 < len(found.jobs) < 4 and found.jobs + found.dropped == CIFAR100
    assert all(phases(task)[1] >= 45 for task in make(found.jobs, found.settings))


def test_the_longest_warm_up_says_how_short_all_may_be() -> None:
    """Of 450 epochs CIFAR-100 warms up for 30, CIFAR-10 for 10; each has 45 left, so 17 % is the least."""
    jobs = [*CIFAR100[:1], next(job for job in TABLES["table3"]().jobs if job.name.startswith("cifar10-"))]
    for some in (jobs, jobs[::-1]):
        enough = MARGIN * total(make(some, Settings(share=0.17)), [H200])[1]
        found = fit(some, Settings(), make, [H200], enough)
        assert (found.jobs, found.settings.share) == (some, 0.17)
        assert fit(some, Settings(), make, [H200], enough - 1).jobs == some[:1]


def test_a_given_length_stays_and_too_little_time_is_an_error() -> None:
    found = fit(CIFAR100, Settings(epochs=60), make, [H200], 10 * 60)
    assert found.settings.epochs == 60
    for settings in (Settings(), Settings(epochs=60)):
        with pytest.raises(UsageError, match=r"nothing fits this budget: cifar100-sym90\+gmm-agn takes about \d+\.\d min"):
            fit(CIFAR100, settings, make, [H200], 30)
    with pytest.raises(UsageError, match="no measured speed fits webvision"):
        fit([job for job in TABLES["table3"]().jobs if job.source == "webvision"], Settings(), make, [H200], 3600)


def test_a_bench_file_gives_its_speed_and_another_file_is_named(tmp_path: Path) -> None:
    parts = {
        "warm-up epoch, both networks": 2.0,
        "gather evidence, both networks": 0.4,
        "mixtures, both networks": 0.1,
        "stage 1, both networks": 0.3,
        "test evaluation, both networks": 0.2,
    }
    shape = {"samples": 50_000, "labelled": 25_000, "batch": 128, "network": "preact-resnet18", "picture": [3, 32, 32]}
    facts = {"device": "cuda (made)", "shape": shape, "parts_s": parts, "epoch_s": 5.0, "startup_s": 10.0}
    (tmp_path / "bench.json").write_text(json.dumps(facts))
    found = from_bench(tmp_path / "bench.json")
    assert (found.warm_up_s, found.mixed_s, found.fixed_s, found.start_s) == (2.0, 5.0, pytest.approx(0.8), 10.0)
    assert found.test_s == pytest.approx(0.2) and "cuda (made)" in found.source and found.fits(make(CIFAR100[:1], Settings())[0])
    large = {"device": "cuda (made)", "network": "resnet50", "together_ms": 100.0, "gathered_per_s": 4000.0}
    (tmp_path / "large.json").write_text(json.dumps(large))
    web = from_bench(tmp_path / "large.json")
    (task,) = make([job for job in TABLES["table3"]().jobs if job.name == "webvision+cpc-awr"], Settings())
    assert web.fits(task) and not web.fits(make(CIFAR100[:1], Settings())[0])
    assert web.mixed_s == pytest.approx(2 * 500 * 0.1 + 64_000 / 4000)
    assert web.mixed(task) == pytest.approx(
        16 * (1 + 5000 / 32_000) + 0.6 * 32_000 / 16_000 * 100
    )  # 60 % of the labels count as clean
    shape = {"samples": 50_000, "method": "ssr+", "network": "preact-resnet18", "picture": [3, 32, 32]}
    facts = {"device": "cuda (made)", "shape": shape, "parts_s": {LOOK: 0.2}, "epoch_s": 2.0, "startup_s": 10.0}
    (tmp_path / "method.json").write_text(json.dumps(facts))
    jobs = [job for job in TABLES["table2"]().jobs if job.name.startswith("cifar100-sym90+")]
    fitting = [task for task in make(jobs, Settings()) if from_bench(tmp_path / "method.json").fits(task)]
    assert [task.config.method for task in fitting] == ["ssr+"]
    assert seconds_of(fitting[0], from_bench(tmp_path / "method.json")) == pytest.approx(10 + 300 * (2.0 + 0.2 / 5))
    (tmp_path / "bench.json").write_text("{}")
    for name in ("bench.json", "none.json"):
        with pytest.raises(ToolError, match="bench --json"):
            from_bench(tmp_path / name)


def test_this_machine_is_measured_in_seconds() -> None:
    job = Job("digits+x", "digits", "digits", 24, (("engine.threads", 1), ("training.batch", 8), ("training.warmup_batch", 8)))
    (task,) = make([job], Settings())
    found = measured_here(task, "cpu")
    assert found.network == "small" and found.side == 8 and found.samples == 64
    assert 0 < found.warm_up_s < 30 and found.mixed_s > found.fixed_s > 0


def test_a_plan_that_begins_with_plain_training_is_measured_too() -> None:
    (first, *_) = make(TABLES["small"]().jobs, Settings(sets=("training.batch=8", "training.warmup_batch=8", "engine.threads=1")))
    assert first.config.method == "ce" and measured_here(first, "cpu").mixed_s > 0


def test_time_is_planned_with_the_network_that_will_run() -> None:
    """Not with the job's own, where --set names another or leaves it to the data."""
    own, other = make(CIFAR100[:1], Settings()), make(CIFAR100[:1], Settings(sets=("network=small",)))
    slow = replace(ROUND, network="small", mixed_s=50.0)
    assert total(own, [slow, ROUND])[1] == pytest.approx(seconds_of(own[0], ROUND))
    assert total(other, [ROUND, slow])[1] == pytest.approx(seconds_of(other[0], slow))
    assert total(other, [ROUND]) == ({other[0].name: None}, 0)
    (left_open,) = make(CIFAR100[:1], Settings(sets=("network=auto", "device=cpu")))
    assert network_of(left_open) == "small-wide" and not ROUND.fits(left_open)  # as choose_network says of 50,000 on a CPU
    assert network_of(make(CIFAR100[:1], Settings(limit=2000, sets=("network=auto", "device=cpu")))[0]) == "small"


def test_a_budget_is_for_the_network_that_will_run() -> None:
    with pytest.raises(UsageError, match="no measured speed fits cifar100"):
        fit(CIFAR100, Settings(sets=("network=small",)), make, [H200], 25 * 60)
    found = fit(CIFAR100, Settings(sets=("network=small",)), make, [H200, replace(H200, network="small")], 25 * 60)
    assert found.jobs == CIFAR100


def test_this_machine_is_measured_with_the_network_that_will_run() -> None:
    job = Job("digits+x", "digits", "digits", 24, (("engine.threads", 1), ("training.batch", 8), ("training.warmup_batch", 8)))
    for said in ("small-wide", "auto"):
        (task,) = make([job], Settings(limit=200, sets=(f"network={said}", "device=cpu")))
        assert measured_here(task, "cpu").network == network_of(task) == ("small" if said == "auto" else said)
