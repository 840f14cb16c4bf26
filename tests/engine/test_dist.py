"""One process that meets itself does to a step what several do: it gathers, sums, normalises by parts. None of it may show."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from test_fast import SAMPLES, config_for, farthest, rows
from torch import Tensor, nn

from labelsieve import nets
from labelsieve.engine.dist import Ranks
from labelsieve.methods.ce import plain_epoch
from labelsieve.methods.dividemix import Division
from labelsieve.methods.epochs import run
from labelsieve.train.build import parts_for


class InFloat64(nn.Module):
    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        first = [nn.Conv2d(channels, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()]
        second = [nn.Conv2d(8, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
        self.body = nn.Sequential(*first, *second, nn.Flatten()).double()
        self.classifier = nn.Linear(256, classes).double()

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        v = self.body(pixels.double())
        return self.classifier(v), v


@pytest.fixture
def device(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """On which the one process meets itself."""
    monkeypatch.setitem(nets.REGISTERED, "in-float64", InFloat64)
    backend = "cpu:gloo,cuda:nccl" if request.param == "cuda" else "gloo"
    dist.init_process_group(backend, init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        yield request.param
    finally:
        dist.destroy_process_group()


def trained(device: str, meets: bool, nudge: float = 0.0, capture: str = "false") -> dict[str, Tensor]:
    """A network after an epoch of warm-up and a mixed one on digits."""
    settings = ("network=in-float64", "training.lr=0.02", "engine.compile=false")
    parts = parts_for(config_for(device, *settings, *([f"engine.capture={capture}"] if device == "cuda" else [])), rows())
    method, engine = parts.method, parts.engine
    if meets:
        engine.join(Ranks(0, 1, meets=True), method)
    first, second = method.nets
    with torch.no_grad():
        first.network.get_parameter(next(name for name, _ in first.network.named_parameters())).mul_(1 + nudge)
    run(plain_epoch(method, first, 0, False), engine, method.training.seed, 0)
    division = Division(torch.linspace(0, 1, SAMPLES), torch.arange(SAMPLES) < SAMPLES // 2)
    run(method.mixed(first, second, division, 12, engine, "mixture"), engine, method.training.seed, 12)
    return {name: value.detach().cpu().double() for name, value in first.state_dict().items()}


@pytest.mark.parametrize(
    ("device", "capture"),
    [
        ("cpu", "false"),
        pytest.param("cuda", "false", marks=pytest.mark.gpu),
        pytest.param("cuda", "true", marks=pytest.mark.gpu),
    ],
    indirect=["device"],
)
def test_in_float64_it_trains_the_same(device: str, capture: str) -> None:
    """Float32 could not tell: where a ReLU's input is 0 within rounding, a gradient jumps (docs/scale.md)."""
    plain = trained(device, meets=False)
    assert 0 < farthest(trained(device, meets=True, capture=capture), plain) < 1e-9
    assert farthest(trained(device, meets=False, nudge=1e-6), plain) > 1e-8, "or the bound above says nothing"
