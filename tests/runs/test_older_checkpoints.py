"""Checkpoints of earlier versions: what they do not say is inferred from what they do."""

from pathlib import Path

from safetensors.torch import load_file, save_file

from labelsieve.runs.train import begin, drive, take_up
from runs.tiny import arrays_file, tiny_config


def test_whether_mixing_has_begun_is_told_by_the_phases_of_past_epochs(tmp_path: Path) -> None:
    config = tiny_config(arrays_file(tmp_path / "a.npz"))
    for stop, mixed in ((1, False), (2, True)):
        run = begin(tmp_path / f"run{stop}", config)
        for _ in drive(run, stop=lambda run=run, stop=stop: run.epoch >= stop):  # type: ignore[misc]
            pass
        (state,) = run.folder.path.glob("checkpoint/*/state.safetensors")
        tensors = load_file(state)
        assert [bool(tensors[f"learner{k}.has_mixed"]) for k in (0, 1)] == [mixed, mixed]
        save_file({name: value for name, value in tensors.items() if "has_mixed" not in name}, state)
        again = take_up(run.folder.path)
        assert [learner.has_mixed for learner in again.parts.learners] == [mixed, mixed]
