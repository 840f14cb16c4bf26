"""Which device, and how many threads: chosen on purpose, said aloud."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch

from labelsieve.errors import UsageError, suggest

SMALL = 100_000
GPUS = ("gpu", "nvidia")  # what people call a CUDA device; by its letters "gpu" is nearer to "cpu"
KINDS = ("auto", "cpu", "cuda")
PLACES = ("auto", "device", "host")
WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
CUDNN: Any = torch.backends.cudnn  # its types leave some of it out


def choose_device(name: str) -> torch.device:
    """`auto` is the first CUDA device where there is one, else the CPU. Also `cpu`, `cuda`, `cuda:1`."""
    kind, colon, number = name.partition(":")
    if kind not in KINDS or (colon and (kind != "cuda" or not (number.isascii() and number.isdigit()))):
        near = suggest("cuda" if kind.lower() in GPUS else name, KINDS)
        raise UsageError(f'device "{name}" is not known{near}; use auto, cpu, cuda or cuda:N')
    if kind == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if kind == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            f'device "{name}": torch {torch.__version__} sees no CUDA device here; use --device cpu, in Python device="cpu"'
        )
    if number and int(number) >= torch.cuda.device_count():
        raise UsageError(f'device "{name}": there are {torch.cuda.device_count()} CUDA devices, numbered from 0')
    return torch.device(kind, int(number)) if number else torch.device(kind)


def held_by(device: torch.device, pictures: torch.Tensor, where: str = "auto") -> bool:
    """Should the pictures lie on the device? By itself where they take at most half of what is free there."""
    if where != "auto" or device.type != "cuda":
        return where != "host"
    return pictures.nbytes <= torch.cuda.mem_get_info(device)[0] // 2


def usable_cores() -> int:
    """Cores this process may run on, which in a container is often fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(wanted: int, values: int) -> int:
    """Use `wanted` threads; with 0, what OMP_NUM_THREADS says, else a number that fits a step's work.

    `values` is how many pixels a step sees. Below `SMALL` one thread does it in the time that several need to meet, and
    does not slow down a hundredfold when the cores are busy; above, as many as usable cores, 8 at most.
    """
    told = os.environ.get("OMP_NUM_THREADS", "")
    chosen = 1 if values < SMALL else min(usable_cores(), 8)
    threads = wanted or (int(told) if told.isdigit() and int(told) else chosen)
    torch.set_num_threads(threads)
    return threads


@contextmanager
def callers_settings_kept() -> Iterator[None]:
    """A run sets torch's threads and kernels for itself; a program that trains in passing finds them as they were.

    Inside, torch is as it comes: notebooks switch gradients off, or have another default type or device, for work of their own.
    """
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    with ExitStack() as inside:
        inside.enter_context(torch.inference_mode(False))
        inside.enter_context(torch.enable_grad())
        if device.type != "cpu":  # else nothing: such a context costs time at every call of torch's
            inside.enter_context(torch.device("cpu"))
        inside.callback(torch.set_default_dtype, dtype)
        torch.set_default_dtype(torch.float32)
        inside.enter_context(_kernels_kept())
        yield


@contextmanager
def _kernels_kept() -> Iterator[None]:
    threads, cudnn = torch.get_num_threads(), CUDNN
    kernels, rounding = (cudnn.benchmark, cudnn.deterministic), _rounding()
    only = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    workspace = os.environ.get(WORKSPACE)
    try:
        yield
    finally:
        if workspace is None:
            os.environ.pop(WORKSPACE, None)
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(only[0], warn_only=only[1])
        cudnn.benchmark, cudnn.deterministic = kernels
        if rounding != _rounding():
            if rounding[0] is not None:
                cudnn.allow_tf32 = rounding[0]
            cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision = rounding[1:]


def _rounding() -> tuple[bool | None, str, str]:
    """May cuDNN round to tf32? In torch's older words, where they can say it (they fail in a program that uses the newer
    ones), and in the newer."""
    older = None
    with suppress(RuntimeError):
        older = CUDNN.allow_tf32
    return older, CUDNN.conv.fp32_precision, CUDNN.rnn.fp32_precision
