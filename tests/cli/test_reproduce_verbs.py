"""`reproduce` and `compare` as a shell calls them: plans that make nothing, sweeps that go on, runs side by side."""

import csv
import json
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import TINY, Shell
from labelsieve.cli import planning
from labelsieve.data.npz import read_npz
from labelsieve.reproduce import paper, plan
from labelsieve.reproduce.plan import H200
from labelsieve.train.loop import Progress, Stopper, each_epoch
from labelsieve.train.run import Run
from reproduce.tiny_sweep import table
from runs.tiny import arrays_file, pictures, tiny_config, whole


@pytest.fixture(autouse=True)
def tiny_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(paper.TABLES, "tiny", lambda: table(("gmm-agn", "cpc-awr")))
    monkeypatch.setitem(planning.DATA, "arrays", "stripes")


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "hyper", "ablation", "prototypes"])
def test_every_table_can_be_planned_without_data_or_a_gpu(tmp_path: Path, shell: Shell, name: str) -> None:
    answer = shell("reproduce", name, "--dry-run", "--out", tmp_path / "sweep")
    assert answer.code == 0, answer.err
    jobs = paper.TABLES[name]().jobs
    assert answer.out.count("labelsieve train") == len(jobs) and "further seeds by --seed N" in answer.out
    assert all(f"--preset {job.preset} " in answer.out for job in jobs)
    assert all(f"--data {source}:PATH" in answer.out for source in {job.source for job in jobs})
    assert "RESULTS.md" in answer.out or name == "table1"
    assert ("together about" in answer.out) == (name != "table1")  # of the web sets no speed is known
    assert not list(tmp_path.iterdir())


def test_a_table_is_run_written_and_gone_on_with(tmp_path: Path, shell: Shell, source: str) -> None:
    out = tmp_path / "sweep"
    command = ("reproduce", "tiny", "--seeds", 1, "--out", out, "--data", source, "--epochs", 2)
    first = shell(*command, "--time-limit", "0.001s")
    assert (
        first.code == 0
        and "run the same command again to continue" in first.out
        and "NOT FINISHED" in (out / "tiny.md").read_text()
    )
    second = shell("reproduce", "tiny", "--seeds", 1, "--out", out, "--data", source)  # as it was begun: 2 epochs
    assert second.code == 0, second.err
    text = (out / "tiny.md").read_text()
    assert text.count("SHORT: 2 of 3 epochs") == 2 and "these numbers do not reproduce it" in second.out
    other = shell(*command[:-1], 3)
    assert other.code == 2 and "started with --epochs 2" in other.err
    drawn = shell("reproduce", "figures", out)
    assert drawn.code == 0 and (out / "figures" / "arrays-stripes-sym30-auc.png").exists()


def test_a_signal_in_a_runs_last_moments_stops_the_sweep(
    tmp_path: Path, shell: Shell, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that it finds is done; the next one would begin and nobody would hear of the signal any more."""

    def signalled(run: Run, stop: Stopper) -> Iterator[Progress]:
        for step in each_epoch(run, stop):
            if run.done:
                signal.raise_signal(signal.SIGTERM)
            yield step

    monkeypatch.setattr("labelsieve.terminal.training.each_epoch", signalled)
    command = ("reproduce", "tiny", "--seeds", 1, "--out", tmp_path / "sweep", "--data", source, "--epochs", 2)
    first = shell(*command)
    assert first.code == 128 + signal.SIGTERM and "run the same command again to continue" in first.out, first.err
    assert first.out.count("epoch 2/2") == 1
    last = shell(*command)
    assert last.code == 0 and last.out.count("epoch 2/2") == 1, "all is done, signal or not"


def test_a_budget_is_kept_for_cells_whose_data_were_named(tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "speeds_for", lambda asked, tasks: [H200])
    command = ("reproduce", "table3", "--budget", "25m", "--dry-run", "--out", tmp_path / "sweep")
    named = shell(*command, "--data", f"cifar10:{tmp_path}")
    assert named.code == 0, named.err
    commands = [line for line in named.out.splitlines() if "labelsieve train" in line]
    assert commands and all("train cifar10:" in line for line in commands)
    assert "left out, for their data or weights were not named" in named.out
    assert "train cifar100:PATH" in shell(*command).out  # a plan alone needs no data


def test_a_planned_sweep_goes_on_as_planned_and_says_what_is_not_in_it(
    tmp_path: Path, shell: Shell, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(plan.SIDES, "arrays", (8, 4))
    fast = replace(H200, network="small", side=8, samples=48, labelled=24)
    monkeypatch.setattr(planning, "speeds_for", lambda asked, tasks: [fast])
    command = ("reproduce", "tiny", "--out", tmp_path / "sweep", "--data", source)
    first = shell(*command, "--cells", "gmm-agn", "--budget", "9m", "--time-limit", "0.001s")
    assert first.code == 0, first.err
    again = shell(*command, "--cells", "gmm-agn", "--budget", "540s", "--dry-run")
    assert again.code == 0 and "1 jobs x 1 seeds" in again.out, again.err
    other = shell(*command, "--budget", "3h", "--dry-run")
    assert other.code == 2 and "planned there for 9 min 00 s" in other.err and "3 h 00 min" in other.err and "--out" in other.err
    more = shell(*command, "--dry-run")
    assert "planned without them (use another --out): stripes+cpc-awr" in more.out and "do not fit" not in more.out


def test_a_table_without_its_data_says_what_it_needs(tmp_path: Path, shell: Shell) -> None:
    answer = shell("reproduce", "table3", "--cells", "cifar10-asym40 cpc-agn", "--seeds", 1, "--out", tmp_path / "sweep")
    assert answer.code == 0 and "needs cifar10: give its place with --data cifar10:PATH" in answer.out
    assert "NOT RUN" in (tmp_path / "sweep" / "table3.csv").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("table4",), 'table "table4" is not known'),
        (("table3", "--cells", "cifar9"), 'matches nothing in table3 (did you mean "cifar10"?)'),
        (("table3", "--data", "imagenet:/x"), "write NAME:PATH"),
        (("table3", "--dry-run", "--speed", "none.json"), "bench --json"),
        (("table3", "somewhere"), "takes no run folders"),
        (("table3", "--budget", "9m", "--speed", "none.json"), "bench --json"),
        (("table3", "--budget", "soon", "--speed", "none.json"), "is no duration"),  # before speeds are looked at or measured
        (("table3", "--dry-run", "--set", "seed=5"), "--seeds N"),
        (("table3", "--dry-run", "--set", "data.source=digits"), "--data NAME:PATH"),
        (("figures", "nowhere"), "there is no run folder"),
        (("figures", "nowhere", "--dry-run"), "--dry-run is for tables that are to be run"),
        (("prototypes", "nowhere", "--seeds", "2"), "--seeds is for tables that are to be run"),
        (("table3", "--speed", "none.json"), "--speed is what --budget and --dry-run plan with"),
        (("table3", "--dry-run", "--limit", "0"), "--limit"),
        (("table3", "--time-limit", "soon"), "is no duration"),
    ],
)
def test_wrong_use_is_named(tmp_path: Path, shell: Shell, words: tuple[str, ...], said: str) -> None:
    answer = shell("reproduce", *words, "--out", tmp_path / "sweep")
    assert answer.code in (1, 2) and said in answer.err, answer.err
    assert not (tmp_path / "sweep").exists()


def test_files_keep_cells_that_were_run_before_and_the_command_tells_all(tmp_path: Path, shell: Shell, source: str) -> None:
    out = tmp_path / "sweep"
    command = ("reproduce", "tiny", "--seeds", 1, "--out", out, "--data", source, "--cells")
    other = shell(*command, "gmm-agn", "--epochs", 2, "--set", "cleaning.tau=0.6")
    assert other.code == 0, other.err
    before = (out / "tiny.csv").read_text().splitlines()
    assert len(before) == 2
    answer = shell(*command, "cpc-awr")
    assert answer.code == 0 and "gmm-agn" not in answer.out.partition("A tiny table")[2], answer.err
    after, text = (out / "tiny.csv").read_text().splitlines(), (out / "tiny.md").read_text()
    assert after[:2] == before and len(after) == 3
    assert "--epochs 2 --set cleaning.tau=0.6`" in text and text.count("SET: cleaning.tau=0.6") == 2
    made = json.loads((out / "runs" / "stripes+cpc-awr" / "seed0" / "environment.json").read_text())
    commit = f" (commit {made['commit'][:7]}" if "commit" in made else ", "
    assert f"labelsieve {made['labelsieve']}{commit}" in text and "1 threads" not in text
    measured = shell("reproduce", "prototypes", out)  # of the run that has some
    assert measured.code == 0 and measured.out.count("(of 1)") == 2, measured.out + measured.err


def test_prototypes_of_a_run_are_measured(shell: Shell, finished: Path) -> None:
    answer = shell("reproduce", "prototypes", finished)
    lines = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    last = [line["accuracy"]["prototypes"] for line in lines if "prototypes" in line.get("accuracy", {})][-1]
    assert answer.code == 0 and f"{last:.2f} /" in answer.out and "78.44" in answer.out


def test_what_a_run_keeps_of_its_test_pictures_is_its_accuracy(finished: Path) -> None:
    kept = read_npz(finished / "predictions.npz")
    lines = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    last = [line["accuracy"] for line in lines if "accuracy" in line][-1]
    for name in ("first", "second"):
        assert 100 * float((kept[name] == kept["label"]).mean()) == pytest.approx(last[name])
    assert 100 * float((kept["top"][:, 0] == kept["label"]).mean()) == pytest.approx(last["both"])


def test_runs_side_by_side(tmp_path: Path, shell: Shell, source: str, finished: Path) -> None:
    other = whole(tmp_path / "other", tiny_config(source, seed=3)).folder.path
    page = tmp_path / "page.html"
    answer = shell("compare", finished, other, "--out", page)
    assert answer.code == 0, answer.err
    assert "seed: 0 | 3" in answer.out and "paired with the first run" in answer.out
    assert "Runs side by side" in page.read_text() and "http" not in page.read_text().split("<body>")[1]
    told = json.loads(shell("compare", finished, other, "--json").out)
    first, second = (read_npz(run / "predictions.npz") for run in (finished, other))
    right = [(kept["top"][:, 0] == kept["label"]) for kept in (first, second)]
    against = told["runs"][1]["against_first"]
    assert against["points"] == pytest.approx(100 * float(np.mean(right[1]) - np.mean(right[0])))
    assert against["low"] <= against["points"] <= against["high"]
    assert told["settings_that_differ"] == {"seed": ["0", "3"]}


def test_runs_side_by_side_as_a_table(tmp_path: Path, shell: Shell, source: str, finished: Path) -> None:
    other = whole(tmp_path / "o,ther", tiny_config(source, seed=3)).folder.path
    table = tmp_path / "t.csv"
    answer = shell("compare", finished, other, "--out", table)
    assert answer.code == 0 and f"table: {table}" in answer.out, answer.err
    told = json.loads(shell("compare", finished, other, "--json").out)["runs"]
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["run"] for row in rows] == [str(finished), str(other)] and [row["seed"] for row in rows] == ["0", "3"]
    for row, one in zip(rows, told):
        names = {"last": "last", "mean_of_last": "tail", "mean_of_epochs": "tail_epochs", "best": "best"}
        assert all(float(row[name]) == one["final"][key] for name, key in names.items())
        assert float(row["accuracy"]) == one["accuracy"] and [float(row["low"]), float(row["high"])] == one["interval"]
        assert {name: float(row[name]) for name in ("auc_loss", "auc_prototype")} == one["auc"]
        assert row["done"] == "true" and row["epochs"] == str(one["epochs"])
    against = told[1]["against_first"]
    assert (rows[0]["difference"], float(rows[1]["difference"])) == ("", against["points"])
    assert float(rows[1]["difference_low"]) == against["low"] and int(rows[1]["only_this_right"]) == against["only_second"]
    again = shell("compare", finished, other, "--out", table)
    assert again.code == 2 and "that file exists, and nothing is overwritten" in again.err


def test_runs_that_cannot_be_compared_are_told_apart(tmp_path: Path, shell: Shell, finished: Path) -> None:
    labels = (pictures()["test_labels"] + 1) % 3
    other = whole(tmp_path / "other", tiny_config(arrays_file(tmp_path / "other.npz", test_labels=labels))).folder.path
    answer = shell("compare", finished, other)
    assert answer.code == 2 and "tested on other pictures" in answer.err and str(other) in answer.err
    assert "named twice" in shell("compare", finished, finished).err
    assert "at least two" in shell("compare", finished).err
    old = tmp_path / "old"
    shutil.copytree(finished, old)
    (old / "predictions.npz").unlink()
    missing = shell("compare", finished, old)
    assert missing.code == 1 and f"labelsieve resume {old}" in missing.err
    assert shell("resume", old).code == 0 and shell("compare", finished, old).code == 0


def test_a_test_limit_measures_on_fewer_pictures(tmp_path: Path, shell: Shell, source: str) -> None:
    answer = shell("train", source, "--out", tmp_path / "run", *TINY, "--set", "data.test_limit=6")
    assert answer.code == 0 and len(read_npz(tmp_path / "run" / "predictions.npz")["label"]) == 6
    few = shell("train", source, "--out", tmp_path / "few", *TINY, "--set", "data.test_limit=2")
    assert few.code == 2 and "cannot hold 3 classes" in few.err and not (tmp_path / "few").exists()
