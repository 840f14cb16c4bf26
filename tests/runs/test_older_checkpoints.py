"""Checkpoints of earlier versions: the same state, wherever they kept it."""

import re
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
    assert bool(tensors["method.mixed"]) is mixed
    again = resume(run.folder.path)
    assert again.parts.method.has_mixed is mixed
    # Once a network's cleaners stood beside its weights, and the phases said the rest.
    older = {re.sub(r"^method\.(teacher|judge)(\d)\.", r"learner\2.\1.", name): value for name, value in tensors.items()}
    del older["method.mixed"]
    save_file(older, state)
    same = resume(run.folder.path)
    assert same.parts.method.has_mixed is mixed
    state_dict = again.parts.method.state_dict()
    assert all(torch.equal(value, state_dict[name]) for name, value in same.parts.method.state_dict().items())
    for one, other in zip(again.parts.method.nets, same.parts.method.nets):
        assert all(torch.equal(value, one.state_dict()[name]) for name, value in other.state_dict().items())
