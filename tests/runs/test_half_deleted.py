"""Run folders that lost a file, were damaged, or come from elsewhere: mended where possible, else said in words."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from labelsieve.data.label_files import load as load_noise
from labelsieve.errors import ToolError
from labelsieve.predict.model import evaluate_model
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.tiny import FILES, contents, tiny_config, to_the_end


@pytest.fixture
def done(tmp_path: Path, finished: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "done"))


@pytest.fixture
def stopped(tmp_path: Path, source: str) -> Path:
    """Stopped after its first epoch."""
    run = start(tmp_path / "stopped", tiny_config(source))
    next(iter(each_epoch(run, stop=lambda: True)))
    return run.folder.path


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("name", sorted(FILES - {"timings.jsonl", "neighbours.npz", "map.npz"}))
def test_a_done_run_without_one_of_its_files(done: Path, finished: Path, name: str) -> None:
    remove(done / name)
    mended = {
        "estimate.json",
        "noise.npz",
        "environment.json",
        "metrics.jsonl",
        "model.safetensors",
        "model.json",
        "issues.parquet",
        "README.md",
        "predictions.npz",
    }
    if name == "early_losses.npz":  # for one figure only: a run is whole without it
        assert resume(done).done
        return
    if name in mended:
        assert resume(done).done and (done / name).is_file()
        assert contents(done) == contents(finished)
        return
    with pytest.raises(ToolError, match=name) as error:
        resume(done)
    assert "start a new run" in str(error.value)


@pytest.mark.parametrize("name", ["noise.npz", "environment.json", "metrics.jsonl", "timings.jsonl", "model.json"])
def test_a_stopped_run_without_a_file_it_can_do_without(stopped: Path, finished: Path, name: str) -> None:
    remove(stopped / name)
    to_the_end(stopped)
    assert contents(stopped) == contents(finished)


@pytest.mark.parametrize("name", ["state.json", "state.safetensors"])
def test_a_checkpoint_without_one_of_its_files(stopped: Path, name: str) -> None:
    remove(stopped / "checkpoint" / "epoch-000001" / name)
    with pytest.raises(ToolError, match=r"epoch-000001.*(state|a file).* missing.*new run"):
        resume(stopped)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "no text": lambda content: b"\xff\xfe" + content,
    "other": lambda content: b"[1, 2]",
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["state.json", "state.safetensors"])
def test_a_damaged_checkpoint(stopped: Path, name: str, damage: str) -> None:
    file = stopped / "checkpoint" / "epoch-000001" / name
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    with pytest.raises(ToolError, match="checkpoint"):
        resume(stopped)
    assert file.exists()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_configuration(stopped: Path, damage: str) -> None:
    file = stopped / "config.yaml"
    file.write_bytes(DAMAGES[damage](file.read_bytes()) + b"\n%%%")
    with pytest.raises(ToolError, match=r"config\.yaml.*new run"):
        resume(stopped)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("version: 1", "version: 2", "newer labelsieve.*upgrade"),
        ("method: cpc", "method: cpx", r'config\.yaml.*did you mean "cpc"'),
        ("epochs: 2", "epochs: 0", r"config\.yaml.*training\.epochs"),
        ("epochs: 2", "epohcs: 2", r'config\.yaml.*did you mean "training\.epochs"'),
        ("network: small", "network: small-wide", "does not fit"),
        ("dim: 8", "dim: eight", r"cleaning\.dim.*whole number"),
        ("noise: sym:0.3", "noise: sym:0.4", "not the data this run began with"),
    ],
)
def test_a_configuration_changed_by_hand(stopped: Path, old: str, new: str, said: str) -> None:
    text = (stopped / "config.yaml").read_text()
    assert old in text
    (stopped / "config.yaml").write_text(text.replace(old, new))
    with pytest.raises(ToolError, match=said):
        resume(stopped)


def test_a_checkpoint_of_a_newer_version(stopped: Path) -> None:
    file = stopped / "checkpoint" / "epoch-000001" / "state.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 2}))
    with pytest.raises(ToolError, match=r"newer labelsieve.*upgrade"):
        resume(stopped)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_damaged_model(done: Path, name: str, damage: str) -> None:
    (done / name).write_bytes(DAMAGES[damage]((done / name).read_bytes()))
    with pytest.raises(ToolError, match="model.*resume or repeat the run"):
        evaluate_model(done, None, "cpu")


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return (open, (str(self.mark), "w"))


def test_nothing_in_a_run_folder_is_unpickled(done: Path, stopped: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    pickle.loads(pickle.dumps(Trap(mark))).close()
    assert mark.exists()  # the trap works
    mark.unlink()
    trapped = np.array([Trap(mark)] * 3, object)
    for file in (done / "scores.npz", done / "noise.npz", stopped / "noise.npz", stopped / "scores.npz"):
        np.savez(file, labels=trapped, loss=trapped)
    for file in (
        done / "model.safetensors",
        stopped / "checkpoint" / "epoch-000001" / "state.safetensors",
        done / "checkpoint" / "epoch-000002-done" / "state.safetensors",
    ):
        torch.save({"a": Trap(mark)}, file)
    for path in (done, stopped):
        with pytest.raises(ToolError, match="restore the checkpoint"):
            resume(path)
    with pytest.raises(ToolError, match="model.*resume or repeat the run"):
        evaluate_model(done, None, "cpu")
    with pytest.raises(ToolError, match="Python objects"):
        load_noise(done / "noise.npz")
    (stopped / "config.yaml").write_text("data: !!python/object/apply:builtins.open\n- [mark, w]\n")
    with pytest.raises(ToolError, match=r"config\.yaml"):
        resume(stopped)
    assert not mark.exists()
