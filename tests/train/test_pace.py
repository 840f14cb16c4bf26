"""Time left: each phase by its own epochs, without what compilation took."""

from pathlib import Path
from typing import Any

import pytest

from labelsieve.train import loop
from labelsieve.train.loop import Progress, Stopper, each_epoch
from labelsieve.train.start import start
from runs.tiny import tiny_config


def test_a_limit_is_not_overrun_by_compilation_that_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """170 s, a first epoch of 85 s of which 81 s were compilation: the next takes 4 s, not 85."""
    now, compiled = [1000.0], [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(loop, "compile_seconds", lambda: compiled[0])
    stopper = Stopper(limit=170)
    now[0], compiled[0] = 1086.0, 81.0
    assert not stopper()
    now[0] = 1090.0
    assert not stopper()
    now[0] = 1168.0
    assert stopper()


def test_time_left_is_of_the_warm_up_until_it_is_over_and_then_of_mixed_epochs(tmp_path: Path, source: str) -> None:
    """A clock on which an epoch of the warm-up takes 1 s and a mixed one 10 s."""
    config: Any = tiny_config(source, training__epochs=6, training__warmup=2)
    run, seen, now = start(tmp_path / "run", config), list[Progress](), [0.0]

    def work(epoch: Any) -> None:
        now[0] += 1.0 if epoch.index < 2 else 10.0

    for progress in each_epoch(run, clock=lambda: now[0], watch=work):
        seen.append(progress)
    assert [(one.left, one.warming_up) for one in seen[:6]] == [
        (1.0, True),
        (0.0, False),
        (30.0, False),
        (20.0, False),
        (10.0, False),
        (0.0, False),
    ]
