"""Real processes and real signals: SIGKILL, Ctrl-C, and a second process on the same run."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import TINY, Shell
from labelsieve.cli import planning
from labelsieve.reproduce import paper
from labelsieve.terminal import training
from reproduce.tiny_sweep import table
from runs.tiny import arrays_file, contents, pictures

PATIENCE = 300.0  # of a machine that is busy with other tests
EPOCHS = ("--set", "training.epochs=5", "--set", "training.warmup=2")


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """Ctrl-C, also by a suite that a script started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def process(*words: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "labelsieve", *map(str, words)]
    environment = dict(os.environ, PYTHONUNBUFFERED="1")
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    try:
        yield running
    finally:
        running.kill()
        running.wait()
        assert running.stdout is not None
        running.stdout.close()


def wait_for(running: subprocess.Popen[str], moment: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not moment():
        assert running.poll() is None and time.monotonic() < until, running.communicate()[0]
        time.sleep(0.002)


def lines(path: Path) -> int:
    return len(path.read_bytes().splitlines()) if path.exists() else 0


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Enough pictures for an epoch to take a while."""
    return arrays_file(tmp_path_factory.mktemp("data") / "larger.npz", **pictures(96))


def test_sigkill_at_the_start_and_while_a_checkpoint_is_written(tmp_path: Path, shell: Shell, larger: str) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    moments: list[Callable[[], bool]] = [
        lambda: (run / "config.yaml").exists(),
        lambda: lines(run / "metrics.jsonl") >= 3 and any((run / "checkpoint").glob(".epoch-*.draft")),
    ]
    for moment in moments:
        words = ("resume", run) if run.exists() else ("train", larger, "--out", run, *TINY, *EPOCHS)
        with process(*words) as running:
            wait_for(running, moment)
            running.send_signal(signal.SIGKILL)
            assert running.wait() == -signal.SIGKILL
    assert shell("resume", run).code == 0
    assert shell("train", larger, "--out", whole, *TINY, *EPOCHS).code == 0
    assert contents(run) == contents(whole)


def test_sigterm_saves_and_stops_like_ctrl_c(tmp_path: Path, shell: Shell, larger: str) -> None:
    """What schedulers and `kill` send: the run is left as after Ctrl-C, not one epoch is lost."""
    run = tmp_path / "run"
    with process("train", larger, "--out", run, *TINY, "--set", "training.epochs=1000") as running:
        wait_for(running, lambda: lines(run / "metrics.jsonl") >= 1)
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode == 128 + signal.SIGTERM and "send the signal again" in said and f"labelsieve resume {run}" in said
    assert [folder.name for folder in (run / "checkpoint").iterdir()] == [f"epoch-{lines(run / 'metrics.jsonl'):06d}"]


def test_ctrl_c_stops_after_the_epoch_and_a_second_process_is_refused(tmp_path: Path, shell: Shell, larger: str) -> None:
    run = tmp_path / "run"
    with process("train", larger, "--out", run, *TINY, "--set", "training.epochs=1000") as running:
        wait_for(running, lambda: lines(run / "metrics.jsonl") >= 2)
        second = shell("resume", run)
        assert second.code == 1 and "another process is training this run" in second.err
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode == 128 + signal.SIGINT, "a script's next command must not take the run for done"
    assert "stopping after this epoch" in said and f"labelsieve resume {run}" in said and "Traceback" not in said
    done = lines(run / "metrics.jsonl")
    assert [folder.name for folder in (run / "checkpoint").iterdir()] == [f"epoch-{done:06d}"]
    again = shell("resume", run, "--time-limit", "0.001s")
    assert again.code == 0 and f"stopped after epoch {done + 1} of 1000" in again.out


def test_a_second_ctrl_c_stops_at_once_and_says_how_to_go_on(
    tmp_path: Path, shell: Shell, larger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, real = tmp_path / "run", training.each_epoch

    def pressed_twice(*words: Any) -> Iterator[Any]:
        for step in real(*words):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            yield step

    monkeypatch.setattr(training, "each_epoch", pressed_twice)
    answer = shell("train", larger, "--out", run, *TINY, *EPOCHS)
    assert answer.code == 130 and "stopping after this epoch; press Ctrl-C again to stop at once" in answer.out
    assert answer.err == f"stopped at once; resume from the last checkpoint with:\n  labelsieve resume {run}\n"
    monkeypatch.undo()
    assert shell("resume", run).code == 0


@pytest.mark.parametrize("verb", ["demo", "reproduce"])
def test_a_second_ctrl_c_where_several_runs_are_made_says_what_is_kept(
    tmp_path: Path, shell: Shell, larger: str, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setitem(paper.TABLES, "tiny", lambda: table(("gmm-agn", "cpc-awr")))
    monkeypatch.setitem(planning.DATA, "arrays", "stripes")
    command = {"demo": ("--epochs", 2), "reproduce": ("tiny", "--seeds", 1, "--data", larger, "--epochs", 2)}[verb]
    out, real, epochs = tmp_path / "out", training.each_epoch, 0

    def pressed_twice(*words: Any) -> Iterator[Any]:
        nonlocal epochs
        for step in real(*words):
            yield step
            epochs += 1
            if epochs == 4:  # in the second run
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(training, "each_epoch", pressed_twice)
    answer = shell(verb, *command, "--out", out)
    assert answer.code == 130
    said = f"stopped at once; {out} keeps what is done, and the same command continues from the last checkpoint\n"
    assert answer.err == said
    monkeypatch.setattr(training, "each_epoch", real)
    again = shell(verb, *command, "--out", out)
    assert again.code == 0, again.err


@pytest.mark.parametrize("verb", ["train", "resume", "inspect"])
def test_ctrl_c_before_the_first_epoch_says_so(
    tmp_path: Path, shell: Shell, larger: str, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    words: dict[str, tuple[object, ...]] = {
        "train": (larger, "--out", tmp_path / "run", *TINY),
        "resume": (tmp_path / "run",),
        "inspect": (larger,),
    }
    if verb == "resume":
        assert shell("train", *words["train"], "--time-limit", "0.001s").code == 0
    monkeypatch.setattr("labelsieve.train.start.rows_for", interrupted)
    monkeypatch.setattr("labelsieve.train.start.rows_for", interrupted)
    monkeypatch.setattr("labelsieve.data.inspection.inspection", interrupted)
    answer = shell(verb, *words[verb])
    assert answer.code == 130
    said = "interrupted before the first epoch; nothing is lost, give the command again\n"
    assert answer.err == ("interrupted\n" if verb == "inspect" else said)
