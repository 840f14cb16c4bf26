"""`--gpus N`: the same command again as N processes, started as torchrun does; and what such a process does apart from others."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from labelsieve.train.ranks import Meeting

Gpus = Annotated[
    int | None,
    typer.Option(min=1, help="Train with so many processes, one for each GPU of this machine; with --device cpu on its cores."),
]
PATIENT = str(24 * 3600)  # seconds that torchrun waits after a first Ctrl-C: the epoch is trained to its end


def is_rank() -> bool:
    return "RANK" in os.environ


def launch(gpus: int, device: str | None) -> None:
    """Start the processes, wait for them, and end as they did."""
    from labelsieve.engine.device import choose_device, usable_cores
    from labelsieve.errors import UsageError

    kind = choose_device(device or "auto").type
    import torch
    import torch.distributed as dist

    if kind == "cpu" and device != "cpu":
        raise UsageError(f"--gpus {gpus}: torch {torch.__version__} sees no GPU here; leave it out, or add --device cpu")
    if kind == "cuda" and gpus > torch.cuda.device_count():
        raise UsageError(f"--gpus {gpus}: there are {torch.cuda.device_count()} here; use --gpus {torch.cuda.device_count()}")
    if not dist.is_available():
        raise UsageError(f"--gpus {gpus}: torch {torch.__version__} was built without torch.distributed; leave it out")
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", PATIENT)
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, usable_cores() // gpus)))
    raise typer.Exit(_ran(gpus))


def _ran(gpus: int) -> int:
    """The exit code of the processes. torchrun's own account of how they ended would bury what they say."""
    import logging

    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.disable(logging.CRITICAL)
    here = {"rdzv_backend": "c10d", "rdzv_endpoint": "127.0.0.1:0", "local_addr": "127.0.0.1", "run_id": str(os.getpid())}
    config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=gpus, max_restarts=0, **here)  # type: ignore[arg-type]
    try:
        elastic_launch(config, sys.executable)("-m", "labelsieve", *sys.argv[1:])
    except ChildFailedError as error:
        codes = [failure.exitcode for failure in error.failures.values()]
        return next((code for code in codes if code > 0), 1)
    except SignalException as error:
        return 128 + int(error.sigval)
    return 0


@contextmanager
def among_others(gpus: int | None, device: str | None) -> "Iterator[Meeting | None]":
    """This process's meeting with the others that torchrun started, if it did. Only the first of them speaks."""
    if gpus is not None and gpus > 1 and not is_rank():
        launch(gpus, device)
    if not is_rank():
        yield None
        return
    from labelsieve.terminal.console import shortened, visible
    from labelsieve.train.ranks import meeting

    with meeting(device, lambda words: typer.echo(f"error: {shortened(visible(words))}", err=True)) as met:
        yield met
