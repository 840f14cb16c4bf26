"""Sweeps: every run once, whoever is killed and however many work on it; shared warm-ups change nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from labelsieve import run_files
from labelsieve.errors import ToolError, UsageError
from labelsieve.reproduce import sweep as sweeping
from labelsieve.reproduce.sweep import check, open_sweep, read_sweep, work
from labelsieve.reproduce.tasks import Settings, held
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start
from labelsieve.version import __version__
from reproduce.tiny_sweep import CLEANERS, EPOCHS, sweep, tasks, trained
from runs.tiny import arrays_file, contents, whole

TESTS = Path(__file__).parents[1]


def started(source: str, out: Path, seeds: int = 1) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "reproduce.tiny_sweep", source, str(out), str(seeds)]
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=Path.cwd())


def epochs_of(lines: list[str]) -> list[str]:
    return sorted(line for line in lines if line.startswith("stripes"))


def expected_epochs(names: list[str]) -> list[str]:
    """Every epoch of plain training and of the first task with a warm-up; of its siblings those after it."""
    siblings = [name for name in names if "+ce/" not in name][1:]
    return sorted(f"{name} {epoch}" for name in names for epoch in range(2 if name in siblings else 1, EPOCHS + 1))


def test_a_sweep_runs_each_cell_once_and_shares_the_warm_up(tmp_path: Path, source: str) -> None:
    said: list[str] = []
    report = sweep(source, tmp_path / "sweep", said)
    names = [task.name for task in tasks(source, tmp_path / "sweep")]
    assert sorted(report.done) == sorted(names) and not report.busy and not report.failed and not report.stopped
    assert sorted(said) == expected_epochs(names)
    assert not list((tmp_path / "sweep" / "warm-ups").iterdir())
    again: list[str] = []
    assert sorted(sweep(source, tmp_path / "sweep", again).done) == sorted(names) and again == []


@pytest.mark.parametrize("cleaner", ["ce", "cpc-awr"])
def test_a_shared_warm_up_gives_the_run_that_an_own_one_gives(tmp_path: Path, source: str, swept: Path, cleaner: str) -> None:
    (task,) = tasks(source, swept, cleaners=[cleaner])
    run = whole(tmp_path / "alone", task.config)
    assert contents(task.folder.path) == contents(run.folder.path)


def test_a_warm_up_that_cannot_be_left_for_others_stops_nothing(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, state: object) -> None:
        raise ToolError(f"{folder}: no space")

    monkeypatch.setattr(sweeping, "checkpoint", SimpleNamespace(save=full, load=sweeping.checkpoint.load))
    said: list[str] = []
    report = sweep(source, tmp_path / "sweep", said, cleaners=["gmm-agn", "cpc-awr"])
    assert len(report.done) == 2 and not report.failed and len(said) == 2 * EPOCHS


def test_a_killed_sweep_goes_on_and_counts_nothing_twice(tmp_path: Path, source: str, swept: Path) -> None:
    out = tmp_path / "sweep"
    with started(source, out) as running:
        assert running.stdout is not None
        seen = [running.stdout.readline().strip() for _ in range(4)]  # inside the second run
        running.send_signal(signal.SIGKILL)
        seen += running.stdout.read().splitlines()
    assert running.returncode == -signal.SIGKILL and all(line.startswith("stripes") for line in seen if line)
    said: list[str] = []
    report = sweep(source, out, said)
    assert len(report.done) == len(CLEANERS) and not report.failed and not report.busy
    for task in tasks(source, out):
        twin = swept / "runs" / task.job.name / "seed0"
        assert contents(task.folder.path) == contents(twin)
        assert [line["epoch"] for line in run_files.records(task.folder.metrics)] == [*range(1, EPOCHS + 1), EPOCHS]


def test_two_processes_share_a_sweep_without_doing_a_cell_twice(tmp_path: Path, source: str, swept: Path) -> None:
    out = tmp_path / "sweep"
    first, second = started(source, out), started(source, out)
    told = [process.communicate(timeout=600)[0].splitlines() for process in (first, second)]
    assert first.returncode == second.returncode == 0, told
    done = [{line.split()[0] for line in lines if line.startswith("stripes")} for lines in told]
    assert not done[0] & done[1]
    assert done[0] | done[1] == {task.name for task in tasks(source, out)}
    trained_epochs = [line for lines in told for line in epochs_of(lines)]
    assert len(set(trained_epochs)) == len(trained_epochs)
    for task in tasks(source, out):
        assert task.done
        assert contents(task.folder.path) == contents(swept / "runs" / task.name)


def test_a_cell_that_another_process_holds_is_left_to_it(tmp_path: Path, source: str) -> None:
    out, said = tmp_path / "sweep", []
    opened = open_sweep(out, Settings())
    wanted = tasks(source, out, cleaners=["gmm-agn", "gmm-awr"])
    with held(opened.lock(wanted[0].name)) as ours:
        assert ours
        report = work(opened, wanted, trained(said))
    assert report.busy == [wanted[0].name] and report.done == [wanted[1].name]
    assert not wanted[0].folder.path.exists()
    assert sorted(work(opened, wanted, trained(said)).done) == [task.name for task in wanted]


def test_a_stopped_owner_still_holds_its_cell_and_a_dead_one_does_not(tmp_path: Path, source: str) -> None:
    out = tmp_path / "sweep"
    with started(source, out) as running:
        assert running.stdout is not None
        name = running.stdout.readline().split()[0]
        running.send_signal(signal.SIGSTOP)
        opened = open_sweep(out, Settings())
        with held(opened.lock(name)) as ours:
            assert not ours
        running.send_signal(signal.SIGKILL)
        running.wait()
    with held(opened.lock(name)) as ours:
        assert ours


def test_a_run_in_training_elsewhere_fails_in_words_and_the_others_go_on(tmp_path: Path, source: str) -> None:
    """Somebody resumes a cell by hand, without the sweep's lock."""
    out, said = tmp_path / "sweep", []
    first, second = tasks(source, out, cleaners=["gmm-agn", "gmm-awr"])
    elsewhere = each_epoch(start(first.folder.path, first.config))
    next(elsewhere)
    report = work(open_sweep(out, Settings()), [first, second], trained(said))
    assert "another process is training this run" in report.failed[first.name] and report.done == [second.name]
    elsewhere.close()


def test_time_that_is_up_leaves_the_rest_for_later(tmp_path: Path, source: str) -> None:
    out, said = tmp_path / "sweep", []
    opened, wanted = open_sweep(out, Settings()), tasks(source, out)
    report = work(opened, wanted, trained(said), time_left=lambda: len(said) < 2)
    assert len(report.done) == 1 and len(report.stopped) == len(wanted) - 1
    assert len(work(opened, wanted, trained(said)).done) == len(wanted)


def test_a_sweep_of_another_version_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    file = open_sweep(out, Settings(epochs=7)).file
    facts = json.loads(file.read_text())
    for change, words in (({"format": 2}, "form 2"), ({"labelsieve": "0.0.9"}, "started by labelsieve 0.0.9")):
        file.write_text(json.dumps(facts | change))
        with pytest.raises(ToolError, match=words):
            open_sweep(out, None)
        assert json.loads(file.read_text()) == facts | change
    assert open_sweep(out, None, any_version=True).settings == Settings(epochs=7)
    file.write_text(json.dumps(facts))
    assert facts["labelsieve"] == __version__ and open_sweep(out, None).settings == Settings(epochs=7)


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"format": 1, "labelsieve": "0.1.0", "settings": {"speed": 3}}'])
def test_a_damaged_sweep_file_is_named(tmp_path: Path, damage: str) -> None:
    (tmp_path / "sweep.json").write_text(damage)
    with pytest.raises(ToolError, match=r"sweep\.json"):
        read_sweep(tmp_path)


def test_other_settings_and_other_folders_are_refused(tmp_path: Path) -> None:
    open_sweep(tmp_path / "sweep", Settings(epochs=7, sets=("lr=0.1",)))
    for other, words in ((Settings(epochs=8, sets=("lr=0.1",)), "--epochs 7"), (Settings(epochs=7), "--set lr=0.1")):
        with pytest.raises(UsageError, match=words):
            open_sweep(tmp_path / "sweep", other)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("dear")
    with pytest.raises(UsageError, match="no sweep"):
        open_sweep(tmp_path / "thesis", None)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "dear"


def test_a_run_with_other_settings_in_a_sweep_is_not_counted(tmp_path: Path, source: str, swept: Path) -> None:
    out = tmp_path / "sweep"
    shutil.copytree(swept, out)
    (task, *_) = tasks(source, out, cleaners=["cpc-awr"])
    text = task.folder.config.read_text()
    task.folder.config.write_text(text.replace("momentum: 0.9", "momentum: 0.8"))
    with pytest.raises(ToolError, match=r"training\.momentum = 0\.8, this sweep asks for 0\.9"):
        check([task])


def test_a_noise_file_that_does_not_fit_stops_the_sweep_before_anything_is_made(tmp_path: Path, source: str) -> None:
    other = arrays_file(tmp_path / "other.npz", labels=(np.arange(48) + 1) % 3)
    made = whole(tmp_path / "made", tasks(other, tmp_path / "x", cleaners=["ce"])[0].config).folder.noise
    np.save(tmp_path / "short.npy", np.zeros(17, int))
    for file, words in ((made, "original_sha256"), (tmp_path / "short.npy", "17 labels for 48 samples")):
        wanted = tasks(source, tmp_path / "sweep", settings=Settings(sets=(f"data.noise=file:{file}",)))
        with pytest.raises(ToolError, match=words):
            check(wanted)
        assert not (tmp_path / "sweep").exists()


def test_epochs_that_leave_nothing_after_the_warm_up_are_refused(tmp_path: Path, source: str) -> None:
    with pytest.raises(UsageError, match="leave nothing after its 1 epochs of warm-up"):
        tasks(source, tmp_path, settings=Settings(epochs=1))
