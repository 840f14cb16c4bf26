"""On a GPU: a run interrupted and taken up ends as an unbroken one, bit for bit where it is asked to be deterministic."""

from pathlib import Path

import pytest
import torch
from torch import nn

from labelsieve import nets
from labelsieve.config.resolve import resolve
from labelsieve.train.loop import each_epoch
from labelsieve.train.run import Run
from labelsieve.train.start import resume, start


def trained(path: Path, settings: list[str], stop_after: int | None) -> Run:
    options = {"data.noise": "sym:0.4", "device": "cuda"}
    config = resolve("digits", options=options, settings=["training.epochs=8", "training.lambda_u=25", *settings])
    run = start(path, config)
    if stop_after is not None:
        for _ in each_epoch(run, stop=lambda: run.epoch >= stop_after):
            pass
        run = resume(path)
    for _ in each_epoch(run):
        pass
    return run


def apart(one: Run, other: Run) -> float:
    """The largest difference between any two numbers of the states."""
    pairs = [(a.state_dict(), b.state_dict()) for a, b in zip(one.parts.method.nets, other.parts.method.nets)]
    return max(float((a[key].double() - b[key].double()).abs().max()) for a, b in pairs for key in a)


def with_dropout(channels: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64 * channels, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, classes))


@pytest.mark.gpu
@pytest.mark.parametrize("stop_after", [2, 6])
@pytest.mark.parametrize("network", ["small", "with-dropout"])  # dropout must draw alike whenever its step is recorded
def test_deterministic_runs_resume_bit_for_bit(
    tmp_path: Path, network: str, stop_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(nets.REGISTERED, "with-dropout", with_dropout)
    settings = ["engine.deterministic=true", f"network={network}"]
    whole = trained(tmp_path / "whole", settings, None)
    assert apart(trained(tmp_path / "broken", settings, stop_after), whole) == 0.0
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic = False
