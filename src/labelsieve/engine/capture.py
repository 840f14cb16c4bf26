"""A step as one CUDA graph: the same function of tensors, recorded once over static buffers and replayed.

What goes in is copied into the buffers, what comes out is a fresh tensor. Recording runs the step a few times first, so
everything the step changes is put back afterwards: weights, momentum and BatchNorm are what they were, and so is what
dropout draws next.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from labelsieve.errors import ToolError
from labelsieve.methods.parts.batches import one_by_one

TRIALS = 3  # runs before the recording: they compile, choose kernels and allocate
TOGETHER = 8  # small steps in one graph: filling buffers and launching it would take longer than one of them


class Captured:
    """Records at the first call, for inputs of those shapes; `state` lists every tensor that the step changes."""

    def __init__(self, step: Callable[..., Tensor], state: Callable[[], Sequence[Tensor]]) -> None:
        self.step = step
        self.state = state
        self.graph: torch.cuda.CUDAGraph | None = None
        self.inputs: list[Tensor] = []
        self.output: Tensor | None = None

    def __call__(self, *inputs: Tensor) -> Tensor:
        if self.graph is None:
            self._record(inputs)
        assert self.graph is not None and self.output is not None
        self._check(inputs)
        for buffer, value in zip(self.inputs, inputs):
            buffer.copy_(value, non_blocking=True)
        self.graph.replay()
        return self.output.clone()

    def _check(self, inputs: Sequence[Tensor]) -> None:
        """A copy into a buffer would stretch a batch of one in silence. Shapes are known on the host: nothing waits."""
        given, recorded = ([tuple(value.shape) for value in values] for values in (inputs, self.inputs))
        if given != recorded:
            raise RuntimeError(f"a captured step was recorded for inputs of the shapes {recorded} and is called with {given}")

    def _record(self, inputs: Sequence[Tensor]) -> None:
        device = inputs[0].device
        self.inputs = [value.clone() for value in inputs]
        state = self.state()
        with torch.no_grad():
            before = [tensor.detach().clone() for tensor in state]
        drawn = torch.cuda.get_rng_state(device)
        with torch.cuda.device(device):  # streams belong to the current device: on another's, nothing would be recorded
            self._try_and_record(recording_stream(device))
        torch.cuda.set_rng_state(drawn, device)
        with torch.no_grad():
            for tensor, value in zip(state, before):
                tensor.copy_(value)

    def _try_and_record(self, stream: torch.cuda.Stream) -> None:
        trials = torch.cuda.Stream()
        trials.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(trials):
            for _ in range(TRIALS):
                self.step(*self.inputs)
        torch.cuda.current_stream().wait_stream(trials)
        self.graph = torch.cuda.CUDAGraph()
        # NCCL watches its own work from a thread beside this one, which a recording of all threads would not bear.
        shared: dict[str, Any] = {"capture_error_mode": "thread_local"} if dist.is_initialized() else {}
        try:
            with torch.cuda.graph(self.graph, stream=stream, **shared):
                self.output = self.step(*self.inputs)
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:  # the trials went well, so it is the recording that is not possible
            raise ToolError(
                f"a training step cannot be recorded as a CUDA graph ({str(error).partition(chr(10))[0]}); a network of your own "
                f"may read values back as it runs (item, nonzero, a condition on a tensor): use --set engine.capture=false"
            ) from error


@cache
def recording_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all recordings of a device. torch's own is one for the process, on the device that recorded first."""
    return torch.cuda.Stream(device)


class CapturedPass:
    """Small steps on the batches of whole columns: most of them `TOGETHER` in one graph, the rest by one that holds a step."""

    def __init__(self, step: Callable[..., Tensor], state: Callable[[], Sequence[Tensor]]) -> None:
        def several(*inputs: Tensor) -> Tensor:
            return torch.stack([step(*batch) for batch in zip(*(column.chunk(TOGETHER) for column in inputs))])

        self.several = Captured(several, state)
        self.single = Captured(step, state)

    def __call__(self, columns: Sequence[Tensor], size: int) -> None:
        many = size * TOGETHER
        whole = len(columns[0]) // many * many
        one_by_one(self.several, [column[:whole] for column in columns], many)
        one_by_one(self.single, [column[whole:] for column in columns], size)
