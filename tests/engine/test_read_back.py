"""An epoch's steps read nothing back: tensors that would lie on a device are marked, and whoever looks at one fails."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from labelsieve.data.augment.strong import views_for
from labelsieve.data.noisy_data import NoisyData
from labelsieve.engine.plain import PlainEngine
from labelsieve.methods.ce import plain_epoch
from labelsieve.methods.dividemix import Division
from labelsieve.methods.parts.streams import BalancedBatches, EveryRow, RandomBatches, Sampler
from methods.tiny_run import pictures, tiny

READS = {getattr(Tensor, name) for name in ("cpu", "item", "tolist", "numpy", "nonzero", "unique", "bincount", "masked_select")}
READS |= {getattr(Tensor, f"__{name}__") for name in ("bool", "int", "float", "index", "contains")}
READS |= {torch.nonzero, torch.unique, torch.bincount, torch.masked_select, torch.equal, torch.allclose}


class Far(Tensor):
    """A tensor on a device, and all that is computed from it."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        assert func not in READS, f"{func.__name__} waits for the device"
        masks = args[1] if func is Tensor.__getitem__ and isinstance(args[1], tuple) else args[1:2]
        if func is Tensor.__getitem__:
            assert not any(isinstance(mask, Tensor) and mask.dtype == torch.bool for mask in masks), "a mask waits for the device"
        return super().__torch_function__(func, types, args, kwargs or {})


def far(tensor: Tensor) -> Tensor:
    return tensor.as_subclass(Far)


class FarEngine(PlainEngine):
    """The plain engine with its pictures, labels and views out of reach."""

    def __init__(self, data: NoisyData) -> None:
        super().__init__(data, views_for(data.shape, True))
        self.images, self.labels = far(self.images), far(self.labels)

    def place(self, tensor: Tensor) -> Tensor:
        return far(super().place(tensor))

    def weak(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        return far(super().weak(rows, generator))

    def strong(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        return far(super().strong(rows, generator))


@pytest.mark.parametrize("sampler", [EveryRow(), RandomBatches(3), BalancedBatches(3)], ids=lambda it: type(it).__name__)
def test_a_warm_up_reads_nothing_back(sampler: Sampler) -> None:
    run = tiny(sampler=sampler)
    run.engine = FarEngine(pictures())
    losses = [run.run(plain_epoch(run.method, net, 0, False), 0) for net in run.nets]
    assert all(isinstance(terms, Far) for terms in losses), "what comes out was computed of what is out of reach"


@pytest.mark.parametrize("passes", [1, 2, 4])
def test_mixed_steps_read_nothing_back(passes: int) -> None:
    run = tiny(guess_passes=passes)
    run.engine, run.method.facts = FarEngine(pictures()), replace(run.method.facts, prior=far(run.method.facts.prior))
    division = Division(far(torch.linspace(0, 1, 60)), torch.arange(60) < 33)  # the mask is on the host, as `learn` has it
    terms = [run.mix(r, division, 3) for r in (0, 1)]
    assert all(isinstance(each, Far) for each in terms)


def test_a_look_is_noticed() -> None:
    seen = far(torch.arange(3))
    for look in (lambda: seen.cpu(), lambda: bool(seen[0] > 1), lambda: int(seen.sum()), lambda: seen[seen > 1]):
        with pytest.raises(AssertionError, match="waits for the device"):
            look()
