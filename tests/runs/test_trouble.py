"""A run that goes wrong while it trains: losses that are no numbers, collapsed partitions, two processes, no locks."""

import errno
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from labelsieve.errors import ToolError
from labelsieve.methods import dividemix, epochs
from labelsieve.methods.contract import Phase
from labelsieve.methods.epochs import Trained
from labelsieve.runs import checkpoint
from labelsieve.train.loop import _not_finite, each_epoch
from labelsieve.train.start import resume, start
from runs.tiny import contents, tiny_config, to_the_end, whole


def poisoned(run: Callable[..., Trained], epoch: int) -> Callable[..., Trained]:
    """Running of phases, where the second mixed step of the first network has no finite loss in one epoch."""

    def poison(phase: Phase, engine: object, seed: int, at: int, turn: int = 0) -> Trained:
        left = run(phase, engine, seed, at, turn)
        if phase.nets[0].number == 0 and at == epoch:
            left.values[1] = torch.nan
        return left

    return poison


def test_weights_are_looked_at_once_for_all_of_them(tmp_path: Path, source: str) -> None:
    """A device waits at each look, and a network has hundreds of tensors. One that is no number is found wherever it is."""
    method = start(tmp_path / "run", tiny_config(source)).parts.method
    looks: list[object] = []

    class Counted(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            looks.extend([func] if func in (Tensor.__bool__, Tensor.item) else [])
            return func(*args, **(kwargs or {}))

    with Counted():
        assert _not_finite(method) is None
    assert len(looks) == len(method.nets)
    for number, tensor in (
        (r, method.nets[r].network.get_parameter(f"classifier.{name}")) for r in (0, 1) for name in ("weight", "bias")
    ):
        with torch.no_grad():
            before = tensor.flatten()[-1].clone()
            tensor.view(-1)[-1] = torch.inf
            assert _not_finite(method) == number
            tensor.view(-1)[-1] = before
    assert _not_finite(method) is None


def test_a_loss_that_is_no_number_names_epoch_and_step_and_keeps_the_checkpoint(
    tmp_path: Path, source: str, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(tmp_path / "run", tiny_config(source))
    with monkeypatch.context() as patch:
        patch.setattr(epochs, "run", poisoned(epochs.run, 1))
        with pytest.raises(
            ToolError, match=r"network 1 is not finite at epoch 2, step 2 of [23].*epoch 1 is kept.*training\.lr=0\.005"
        ):
            list(each_epoch(run))
    assert checkpoint.load(tmp_path / "run" / "checkpoint").epoch == 1
    to_the_end(tmp_path / "run")
    assert contents(tmp_path / "run") == contents(finished)


def test_an_absurd_learning_rate_ends_in_words(tmp_path: Path, source: str) -> None:
    config = tiny_config(source, training__lr=1000, training__epochs=30, training__weight_decay=1, training__warmup=30)
    with pytest.raises(ToolError, match=r"not finite (at|after) epoch \d+, step \d+.*is kept; try a lower learning rate"):
        whole(tmp_path / "run", config)
    saved = checkpoint.load(tmp_path / "run" / "checkpoint")
    assert all(torch.isfinite(value).all() for value in saved.tensors.values() if value.is_floating_point())


def test_weights_ruined_by_the_last_step_are_not_saved(tmp_path: Path, source: str) -> None:
    run = start(tmp_path / "run", tiny_config(source))
    steps = each_epoch(run)
    next(steps)
    next(run.parts.method.nets[1].network.parameters()).data[0] = torch.inf
    before = contents_of_checkpoint(tmp_path / "run")
    with pytest.raises(ToolError, match=r"not finite (at|after) epoch 2, step .*epoch 1 is kept"):
        next(steps)
    assert contents_of_checkpoint(tmp_path / "run") == before
    assert to_the_end(tmp_path / "run").done


def contents_of_checkpoint(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (path / "checkpoint").rglob("state.*")}


def test_a_collapsed_partition_is_said_once_recorded_and_does_not_stop(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dividemix, "collapse", lambda *_: "almost nothing counts as clean")
    run = start(tmp_path / "run", tiny_config(source, training__epochs=4))
    said = [note for step in each_epoch(run) for note in step.new_notes if "collapsed" in note]
    assert run.done and len(said) == len(set(said)) == 2  # once for each network
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    for line in lines[1:]:
        assert [note for note in line["notes"] if "collapsed" in note] == said


def test_what_was_said_before_a_stop_is_not_said_again(tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dividemix, "collapse", lambda *_: "almost everything counts as clean")
    run = start(tmp_path / "run", tiny_config(source, training__epochs=3))
    assert any(step.new_notes for step in each_epoch(run, stop=lambda: run.epoch == 2))
    again = [note for step in each_epoch(resume(tmp_path / "run")) for note in step.new_notes]
    assert not [note for note in again if "collapsed" in note]


def test_a_real_collapse_is_noted(tmp_path: Path, source: str) -> None:
    config = tiny_config(source, cleaning__tau=1, training__epochs=3)  # nothing can be above 1
    run = whole(tmp_path / "run", config)
    assert run.done
    notes = [note for record in run.metrics for note in record.get("notes", ())]
    assert any("almost nothing counts as clean" in note for note in notes)


def test_a_second_process_is_refused_and_the_lock_falls_with_the_first(tmp_path: Path, source: str) -> None:
    run = start(tmp_path / "run", tiny_config(source))
    other = resume(tmp_path / "run")
    first = each_epoch(run)
    next(first)
    with pytest.raises(ToolError, match="another process is training this run; wait"):
        next(each_epoch(other))
    with pytest.raises(ToolError, match="another process is training this run; wait"):
        resume(tmp_path / "run")
    first.close()  # type: ignore[attr-defined]
    assert to_the_end(tmp_path / "run").done


@pytest.mark.parametrize("number", [errno.EBADF, errno.ENOLCK])
def test_a_file_system_without_locks_is_no_obstacle(
    tmp_path: Path, source: str, finished: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(handle: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    whole(tmp_path / "run", tiny_config(source))
    assert contents(tmp_path / "run") == contents(finished)


def test_an_interrupt_while_the_data_are_opened_leaves_nothing(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("labelsieve.train.start.rows_for", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path / "run", tiny_config(source))
    assert not list(tmp_path.iterdir())
