"""The tables as data: the paper's numbers at their places, jobs that are themselves, commands that give the same run."""

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from labelsieve.cli.main import main
from labelsieve.config.schema import Config
from labelsieve.errors import UsageError
from labelsieve.reproduce.paper import TABLES, Cell, chosen
from labelsieve.reproduce.tasks import Places, Settings, lacks, tasks_for
from labelsieve.terminal import training

DATA = {name: f"{name}:/data/{name}" for name in ("cifar10", "cifar100", "clothing1m", "webvision", "fashion-mnist")}
PLACES = Places(DATA, pretrained="/weights")
# (table, row, column) -> the paper's number
PUBLISHED = {
    ("table1", "CPC", "WebVision top 5"): 93.46,
    ("table1", "Baseline", "ILSVRC12 top 1"): 74.42,
    ("table1", "CPC", "Clothing1M"): 75.40,
    ("table2", "CPC", "CIFAR-100 sym 90 %"): 54.60,
    ("table2", "AugDMix (baseline)", "CIFAR-10 sym 50 %"): 95.6,
    ("table2", "DivideMix", "CIFAR-10 asym 40 %"): 93.4,
    ("table2", "ssr+", "CIFAR-100 sym 90 %"): 66.6,
    ("table2", "elr+", "CIFAR-10 asym 40 %"): 93.0,
    ("table2", "sieve", "CIFAR-10 asym 40 %"): None,
    ("table3", "CPC_agn", "CIFAR-100 sym 90 %"): 48.88,
    ("table3", "GMM_awr", "WebVision"): 78.66,
    ("hyper", "CIFAR-100 sym 90 %", "e 15 %"): 53.7,
    ("hyper", "Clothing1M", "tau 0.6"): 75.15,
    ("hyper", "WebVision", "alpha 0.5"): 79.44,
    ("ablation", "CPC without GMM", "WebVision"): 26.8,
    ("prototypes", "CPC, prototypes", "WebVision"): 78.44,
}
SIZES = {"table1": 10, "table2": 27 + 86, "table3": 16, "hyper": 40, "ablation": 12, "prototypes": 4, "small": 5}


def cells(name: str) -> dict[tuple[str, str], Cell]:
    return {(cell.row, cell.column): cell for cell in TABLES[name]().cells}


@pytest.mark.parametrize("place", PUBLISHED, ids=str)
def test_numbers_stand_where_the_paper_has_them(place: tuple[str, str, str]) -> None:
    assert cells(place[0])[place[1:]].paper == PUBLISHED[place]


def test_no_cell_is_lost() -> None:
    assert {name: len(cells(name)) for name in TABLES} == SIZES


def test_one_name_is_one_run_in_all_tables() -> None:
    configs: dict[str, Config] = {}
    by_config: dict[str, str] = {}
    for table in TABLES.values():
        for task in tasks_for(table().jobs, [0], Settings(), PLACES, Path("sweep")):
            assert configs.setdefault(task.job.name, task.config) == task.config
            assert by_config.setdefault(str(task.config), task.job.name) == task.job.name
    assert len(configs) > 60


def test_studies_meet_in_the_cell_that_has_their_value() -> None:
    hyper = cells("hyper")
    base = hyper["CIFAR-100 sym 90 %", "e 10 %"].job
    assert base == hyper["CIFAR-100 sym 90 %", "tau 0.5"].job == hyper["CIFAR-100 sym 90 %", "alpha 0"].job
    assert base == cells("table3")["CPC_awr", "CIFAR-100 sym 90 %"].job == cells("ablation")["CPC", "CIFAR-100 sym 90 %"].job
    assert hyper["Clothing1M", "tau 0.7"].job == cells("table1")["CPC", "Clothing1M"].job


def test_other_methods_are_run_as_their_authors_did() -> None:
    job = cells("table2")["ssr+", "CIFAR-100 sym 90 %"].job
    (task,) = tasks_for([job], [0], Settings(), PLACES, Path("sweep"))
    assert (job.name, job.epochs, task.config.method, task.config.own["theta_r"]) == ("cifar100-sym90+ssr+", 300, "ssr+", 0.8)
    (short,) = tasks_for([job], [0], Settings(epochs=60), PLACES, Path("sweep"))
    assert (short.config.training.epochs, short.config.training.schedule) == (60, "cosine")


def test_every_table_judges_at_even_odds_as_published() -> None:
    """The preset of one cell has odds of our own; a sweep with them says so in each of its cells."""
    jobs = [job for table in TABLES.values() for job in table().jobs]
    tasks = tasks_for(jobs, [0], Settings(), PLACES, Path("sweep"))
    with_prototypes = [task for task in tasks if task.config.method == "cpc"]
    assert {task.config.cleaning.prototype_prior for task in with_prototypes} == {0.5}
    assert not any(task.other_settings for task in tasks)
    ours = cells("table3")["CPC_awr", "CIFAR-100 sym 90 %"].job
    assert (ours.name, ours.preset) == ("cifar100-sym90+cpc-awr", "cifar100-sym90+cpc-awr+prior0.5")
    (task,) = tasks_for([ours], [0], Settings(sets=("cleaning.prototype_prior=0.03",)), PLACES, Path("sweep"))
    assert task.other_settings == ["cleaning.prototype_prior=0.03"]


@pytest.mark.parametrize("settings", [Settings(), Settings(epochs=60, limit=5000, sets=("lr=0.01",)), Settings(share=0.5)])
@pytest.mark.parametrize("name", TABLES)
def test_the_command_of_a_task_gives_its_configuration(
    name: str, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[Config] = []
    monkeypatch.setattr(training, "opened", lambda out, config, *_: seen.append(config))
    monkeypatch.setattr(training, "show_training", lambda run, limit, began: None)
    tasks = tasks_for(TABLES[name]().jobs[:6], [2], settings, PLACES, tmp_path)
    for task in tasks:
        monkeypatch.setattr(sys, "argv", shlex.split(task.command()))
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
    assert seen == [task.config for task in tasks]


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (["gmm-agn"], 4),
        (["cifar100-sym90"], 4),
        (["cifar*"], 8),
        (["webvision cpc-awr"], 1),
        (["cifar100-sym90+cpc*"], 2),
        (["CPC_agn/Clothing1M, gmm-agn"], 5),
        ([], 16),
    ],
)
def test_cells_by_what_they_are_called(wanted: list[str], count: int) -> None:
    assert len(chosen(TABLES["table3"](), wanted)) == count


def test_a_cell_that_is_not_there_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r'"cifar100-sym80".*did you mean "cifar100-sym90".*gmm-awr'):
        chosen(TABLES["table3"](), ["cifar100-sym80"])


def test_what_a_task_lacks_is_said_with_the_remedy() -> None:
    def lacking(name: str, **places: Any) -> list[str | None]:
        return [lacks(task) for task in tasks_for(TABLES[name]().jobs, [0], Settings(), Places(**places), Path("x"))]

    assert set(lacking("table2")) == {f"needs cifar{n}: give its place with --data cifar{n}:PATH" for n in (10, 100)}
    assert lacking("small") == [None] * 5
    (weights,) = set(lacking("table1", data=DATA)) - {None}
    assert weights is not None and "--pretrained FILE" in weights
