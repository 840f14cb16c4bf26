"""A CUDA graph's double for machines without a GPU: calls of kernels with the memory they read and write, made again in order.

Like a graph it keeps addresses, not names: a tensor that is bound anew after the recording stays as it was for the replays.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class KernelList:
    """Stands for torch.cuda.CUDAGraph."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, Any, Any, list[Any]]] = []

    @torch.no_grad()
    def replay(self) -> None:
        for kernel, args, kwargs, results in self.calls:
            for old, new in zip(results, tree_leaves(kernel(*args, **kwargs))):
                if isinstance(old, Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


class Recorder(TorchDispatchMode):
    def __init__(self, into: KernelList) -> None:
        super().__init__()
        self.into = into

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        self.into.calls.append((func, args, kwargs or {}, tree_leaves(result)))
        return result


class Stream:
    """A stream of a CPU: everything is in order already. `device` is what it was made for."""

    def __init__(self, device: object = None) -> None:
        self.device = device

    def wait_stream(self, other: object) -> None:
        pass


@contextmanager
def graphs_on_a_cpu() -> Iterator[list[object]]:
    """Within it the names in torch.cuda that recording uses mean a CPU; gives the list of devices that were made current."""
    current: list[object] = []

    def device(which: object) -> Any:
        current.append(which)
        return nullcontext()

    doubles = {
        "Stream": Stream,
        "current_stream": Stream,
        "stream": lambda which: nullcontext(),
        "device": device,
        "CUDAGraph": KernelList,
        "graph": lambda graph, stream=None: Recorder(graph),
        "get_rng_state": lambda device: torch.get_rng_state(),
        "set_rng_state": lambda state, device: torch.set_rng_state(state),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, double in doubles.items():
            patch.setattr(torch.cuda, name, double)
        yield current
