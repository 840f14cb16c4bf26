"""A run that stops when all epochs are trained, and before it is done, judges its labels as one that did not stop."""

from pathlib import Path

import pytest

from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.tiny import arrays_file, contents, tiny_config, to_the_end, whole


def test_the_last_division_is_made_at_the_rate_that_had_dropped(tmp_path: Path) -> None:
    config = tiny_config(arrays_file(tmp_path / "a.npz"), training__lr_drop=0.5)
    run = start(tmp_path / "run", config)
    for _ in each_epoch(run, stop=lambda: run.epoch >= run.parts.recipe.epochs):
        pass
    assert not run.done
    again = resume(tmp_path / "run")
    for learner, old in zip(again.parts.learners, run.parts.learners):
        assert learner.optimiser.param_groups[0]["lr"] == pytest.approx(config.training.lr / 10)
        assert learner.judge is not None and old.judge is not None and learner.judge.lr == pytest.approx(old.judge.lr)
    to_the_end(tmp_path / "run")
    whole(tmp_path / "whole", config)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
