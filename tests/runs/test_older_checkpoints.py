"""Whether mixing has begun is told by the phases of past epochs, whatever version wrote the checkpoint."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.tiny import arrays_file, tiny_config


@pytest.mark.parametrize(("stop", "mixed"), [(1, False), (2, True)])
def test_whether_mixing_has_begun_is_told_by_the_phases_of_past_epochs(tmp_path: Path, stop: int, mixed: bool) -> None:
    run = start(tmp_path / "run", tiny_config(arrays_file(tmp_path / "a.npz")))
    for _ in each_epoch(run, stop=lambda: run.epoch >= stop):
        pass
    (state,) = run.folder.path.glob("checkpoint/*/state.safetensors")
    tensors = load_file(state)
    assert not any("has_mixed" in name for name in tensors)
    again = resume(run.folder.path)
    assert [learner.has_mixed for learner in again.parts.learners] == [mixed, mixed]
    # Some versions wrote it down, too.
    save_file(tensors | {f"learner{k}.has_mixed": torch.tensor(mixed) for k in (0, 1)}, state)
    again = resume(run.folder.path)
    assert [learner.has_mixed for learner in again.parts.learners] == [mixed, mixed]
