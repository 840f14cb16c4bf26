"""What a method says that it costs is what its networks see."""

from collections import Counter
from typing import Any

import pytest
import torch
from tiny_run import built, pictures

from labelsieve.methods.registry import METHODS


@pytest.mark.parametrize("name", ["ce", "gjs", "mopro", "ncr", "ngc", "rrl", "ssr", "ssr+", "elr+", "promix"])
def test_costs_are_what_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that networks were shown in the second epoch, with and without a gradient, by the number of samples."""
    run = built(METHODS[name], data=pictures(64), epochs=12)  # the last five judge every label beside
    seen: Counter[bool] = Counter()
    for net in run.nets:
        for eye in net.eyes():
            monkeypatch.setattr(eye, "see", counted(eye.see, seen))
    epochs = run.epochs()
    next(epochs)
    seen.clear()
    next(epochs)
    trained, looked = (round(seen[on] / 64) for on in (True, False))
    said = f"{trained} view{'s' * (trained > 1)} trained on" + (f", {looked} looked at" if looked else "")
    assert METHODS[name].costs == said


def counted(see: Any, seen: Counter[bool]) -> Any:
    def counting(network: Any, pixels: torch.Tensor, *rest: Any) -> Any:
        seen[torch.is_grad_enabled()] += len(pixels)
        return see(network, pixels, *rest)

    return counting
