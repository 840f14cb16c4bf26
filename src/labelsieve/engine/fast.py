"""The fast engine: bf16 with float32 master weights, the network compiled, whole steps captured. Same results, within rounding.

It differs from the plain engine only in how a step reaches the device; `methods/` is the same code under both. A captured step is
recorded once over static buffers and replayed: what goes in is copied into the buffers, what comes out is a fresh tensor.
Recording runs the step a few times first, so everything it changes is put back afterwards: weights, momentum, BatchNorm and what
dropout draws next.
"""

import gc
import importlib.util
import os
import shutil
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from labelsieve.data.augment.strong import Views
from labelsieve.data.augment.vectors import VectorViews
from labelsieve.data.noisy_data import NoisyData
from labelsieve.engine.device import WORKSPACE
from labelsieve.engine.plain import PlainEngine
from labelsieve.errors import ToolError, UsageError
from labelsieve.methods.contract import Method, Phase, changed_by
from labelsieve.methods.epochs import Named, Prepared
from labelsieve.methods.net import see
from labelsieve.methods.parts.sgd import Pass, one_by_one

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


PRECISIONS = ("float32", "tf32", "bf16")  # tf32: convolutions rounded to 10 bits, all else float32
FORMS = 64  # of one function, compiled in one process
T = TypeVar("T")


@dataclass(frozen=True)
class Speed:
    """How steps are run. `speed_for` chooses for a device what the user left open."""

    precision: str = "float32"
    compile: bool = False
    capture: bool = False


def speed_for(device: torch.device, precision: str, compile: bool | None, capture: bool | None) -> Speed:
    """On CUDA all of it, on the CPU none: there plain steps are as fast, start at once and repeat bit for bit."""
    cuda = device.type == "cuda"
    if capture and not cuda:
        raise UsageError('setting "engine.capture" needs a CUDA device: a CPU has no graphs to capture')
    if precision == "tf32" and not cuda:
        raise UsageError('setting "engine.precision" is tf32, which needs a CUDA device; on a CPU choose float32')
    return Speed(
        precision=("bf16" if cuda else "float32") if precision == "auto" else precision,
        compile=cuda and can_compile() if compile is None else compile,
        capture=cuda if capture is None else capture,
    )


def can_compile() -> bool:
    """For a GPU: is triton there, and the C compiler that it calls? Containers often have none."""
    named = os.environ.get("CC")
    return importlib.util.find_spec("triton") is not None and any(map(shutil.which, [named] if named else ["gcc", "clang"]))


def be_deterministic() -> None:
    """Only kernels that repeat bit for bit. Slower; needed for a resume that is exact on a GPU.

    cuBLAS repeats its sums only with memory of a fixed size, which it is told of by the environment, before its first product.
    """
    os.environ.setdefault(WORKSPACE, ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled anew for each shape and mode that it meets.

    By itself torch stops after 8 forms of a function in a process, and what comes later runs as it is. One run has five or six
    of the networks' pass, so that a sweep's second data set, or a notebook's, would train a quarter slower.
    """
    faster = torch._dynamo.config.patch(recompile_limit=FORMS)(torch.compile(function, dynamic=False))

    def called(*inputs: Any) -> Any:
        try:
            return faster(*inputs)
        except torch._dynamo.exc.TorchDynamoException as error:
            why = str(getattr(error, "inner_exception", error)).strip().partition("\n")[0]
            raise ToolError(
                f"a training step cannot be compiled here ({why}); use --set engine.compile=false, or, to go on with a run, "
                f"write compile: false below engine: in its config.yaml"
            ) from error

    return called


class FastEngine(PlainEngine):
    def __init__(
        self,
        data: NoisyData,
        views: Views | VectorViews,
        device: torch.device | str,
        eval_batch: int,
        speed: Speed,
        where: str = "auto",
    ) -> None:
        if speed.capture:  # an earlier run's steps and learners hold each other, and with them memory of the device
            gc.collect()
        super().__init__(data, views, device, eval_batch, where)
        self.speed = speed
        self._see = compiled(see) if speed.compile else see
        self._fused: dict[Callable[..., Any], Callable[..., Any]] = {}
        self._recorded: dict[tuple[object, ...], tuple[tuple[object, ...], Any]] = {}
        if self.device.type == "cuda":
            # The compiler would advise to round float32 products: there is one, every network's last, on purpose (`nets.head`).
            warnings.filterwarnings("ignore", "TensorFloat32 tensor cores for float32 matrix multiplication")
            torch.backends.cudnn.benchmark = not torch.are_deterministic_algorithms_enabled()
            torch.backends.cudnn.allow_tf32 = speed.precision != "float32"

    def adopt(self, method: Method) -> None:
        for net in method.nets:
            for eye in net.eyes():
                eye.see = self.see
                if self.speed.compile:  # compiled, a batch normalised in parts costs what a whole one does; plain, it costs more
                    eye.fuse = self.fuse
                    eye.joins_passes = True
        for cleaner in method.helpers():
            if self.speed.capture:
                cleaner.prepare = self.captured_pass
            if self.speed.compile:
                cleaner.inner = self.fuse(cleaner.inner)

    def see(self, network: nn.Module, pixels: Tensor, mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.speed.precision == "bf16"):
            return self._see(network, pixels, mean, std)

    def fetched(self, rows: Tensor) -> Tensor:
        """Straight into pinned memory, by all threads, and on its way while the device is at work."""
        if self.device.type != "cuda":
            return super().fetched(rows)
        staged = torch.empty((len(rows), *self.images.shape[1:]), dtype=self.images.dtype, pin_memory=True)
        torch.index_select(self.images, 0, rows, out=staged)
        return staged.to(self.device, non_blocking=True)

    def fuse(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function compiled, once for both learners: a dozen small kernels become one or two."""
        if function not in self._fused:
            self._fused[function] = compiled(function)
        return self._fused[function]

    def place(self, tensor: Tensor) -> Tensor:
        """Through pinned memory: a copy from plain memory would wait for all the steps queued before it."""
        if self.device.type != "cuda" or tensor.device.type != "cpu":
            return tensor.to(self.device)
        return tensor.pin_memory().to(self.device, non_blocking=True)

    def prepare(self, phase: Phase) -> Prepared:
        """The phase's step as a graph: recorded once for its nets, and anew where something that is fixed in it was replaced."""
        if not self.speed.capture:
            return Named(phase)
        key = (phase.step.__name__, *(id(net) for net in phase.nets))
        same = (*map(_identity, phase.fixed), *phase.views, *phase.tensors)
        return self._once(key, same, lambda: CapturedStep(phase))

    def captured_pass(
        self,
        owner: object,
        name: str,
        step: Callable[..., Tensor],
        state: Callable[[], Sequence[Tensor]],
        same: tuple[object, ...],
    ) -> Pass:
        """The same for the small steps of stage 1."""
        return self._once((id(owner), name), same, lambda: CapturedPass(step, state))

    def _once(self, key: tuple[object, ...], same: tuple[object, ...], make: Callable[[], T]) -> T:
        """What was made for `key`; made anew when what is fixed in it (`same`) changes."""
        if key not in self._recorded or self._recorded[key][0] != same:
            self._recorded[key] = (same, make())
        found: T = self._recorded[key][1]
        return found


class CapturedStep(Captured):
    """A phase's step, recorded; later phases with the same step replay it."""

    def __init__(self, phase: Phase) -> None:
        nets, tables = phase.nets, phase.tables  # not the phase, which has an epoch's draws
        self.named = Named(phase)
        super().__init__(self.named, lambda: changed_by(nets, tables))

    @property
    def terms(self) -> tuple[str, ...]:
        return self.named.terms


def _identity(value: object) -> object:
    """Numbers and words are the same by value, all else where it is the very same object."""
    return value if isinstance(value, (bool, int, float, str, type(None))) else id(value)
