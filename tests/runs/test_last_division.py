"""A run that stops when all epochs are trained, and before it is done, judges its labels as one that did not stop."""

from pathlib import Path

import pytest

from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start
from runs.tiny import arrays_file, contents, tiny_config, to_the_end, whole


def test_the_last_division_is_made_at_the_rate_that_had_dropped(tmp_path: Path) -> None:
    config = tiny_config(arrays_file(tmp_path / "a.npz"), training__lr_drop=0.5)
    run = start(tmp_path / "run", config)
    for _ in each_epoch(run, stop=lambda: run.epoch >= run.parts.method.training.epochs):
        pass
    assert not run.done
    again = to_the_end(tmp_path / "run")
    assert [judge.lr for judge in again.parts.method.helpers()] == pytest.approx([config.training.lr / 10] * 2)
    whole(tmp_path / "whole", config)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
