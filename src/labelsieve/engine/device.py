"""Which device, and how many threads: chosen on purpose, said aloud."""

import os

import torch

from labelsieve.errors import UsageError, suggest

KINDS = ("auto", "cpu", "cuda")


def choose_device(name: str) -> torch.device:
    """`auto` is the first CUDA device where there is one, else the CPU. Also `cpu`, `cuda`, `cuda:1`."""
    kind, _, number = name.partition(":")
    if kind not in KINDS or (number and (kind != "cuda" or not number.isdigit())):
        raise UsageError(f'device "{name}" is not known{suggest(name, KINDS)}; use auto, cpu, cuda or cuda:N')
    if kind == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if kind == "cuda" and not torch.cuda.is_available():
        raise UsageError(f'device "{name}": torch {torch.__version__} sees no CUDA device here; use --device cpu')
    if number and int(number) >= torch.cuda.device_count():
        raise UsageError(f'device "{name}": there are {torch.cuda.device_count()} CUDA devices, numbered from 0')
    return torch.device(name)


def usable_cores() -> int:
    """Cores this process may run on, which in a container is often fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(wanted: int) -> int:
    """Use `wanted` threads, or with 0 as many as usable cores but 8 at most: more only wait for one another on small steps."""
    threads = wanted if wanted > 0 else min(usable_cores(), 8)
    torch.set_num_threads(threads)
    return threads
