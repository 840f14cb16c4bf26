"""How fast an epoch of any method is, and how near to the network's own limit: what its networks see is counted, not told."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from labelsieve.benchmark.speed import Bench, Clock, ceiling, device_words
from labelsieve.config.schema import Config
from labelsieve.methods.contract import Phase
from labelsieve.methods.epochs import Named, run
from labelsieve.methods.net import See
from labelsieve.methods.parts.neighbours import nearest
from labelsieve.runs.rows import Rows
from labelsieve.train.build import Parts, parts_for

LOOK = "evidence of one network"


def measure_method(config: Config, rows: Rows, say: Callable[[str], None], repeats: int = 3, began: float | None = None) -> Bench:
    """One epoch as the method has it half-way through a run; `began` is when the command did (`time.perf_counter`)."""
    began = time.perf_counter() if began is None else began
    parts = parts_for(config, rows)
    clock, device = Clock(parts.engine.device), parts.engine.device
    seen = counted(parts)
    result = Bench(
        device_words(parts), {"samples": len(rows.data), "batch": parts.method.training.batch, "method": config.method}
    )
    result.shape |= {"network": config.network, "picture": list(rows.data.shape), "trained": seen[True], "looked": seen[False]}
    result.startup_s = time.perf_counter() - began
    result.ceiling = ceiling(parts, rows, clock, repeats)
    features = parts.engine.evidence(parts.method.nets[0]).features
    result.parts_s[LOOK] = clock.seconds(lambda: parts.engine.evidence(parts.method.nets[0]), repeats)
    result.parts_s["200 nearest of all"] = clock.seconds(lambda: nearest(features, 200), repeats)
    result.epoch_s = clock.seconds(lambda: whole_epoch(parts), repeats)
    ideal = seen[True] / result.ceiling["trained"] + seen[False] / result.ceiling["inferred"]
    result.engine_fraction = ideal / result.epoch_s
    if device.type == "cuda":
        result.peak_gib = torch.cuda.max_memory_allocated(device) / 2**30
        result.held_gib = torch.cuda.max_memory_reserved(device) / 2**30
    say(f"{config.method} epoch: {result.epoch_s:.3f} s, engine_fraction {result.engine_fraction:.3f}")
    return result


def whole_epoch(parts: Parts) -> None:
    """All phases of the epoch half-way."""
    at = parts.method.training.epochs // 2
    for turn, found in enumerate(parts.method.phases(at, parts.engine)):
        if isinstance(found, Phase):
            run(found, parts.engine, parts.method.training.seed, at, turn)


def counted(parts: Parts) -> Counter[bool]:
    """Pictures that networks are shown in an epoch: by whether it is to train on them. Steps are run as they are written."""
    seen: Counter[bool] = Counter()
    with shown_to(parts, seen):
        whole_epoch(parts)
    return seen


@contextmanager
def shown_to(parts: Parts, seen: Counter[bool]) -> Iterator[None]:
    engine, eyes = parts.engine, [eye for net in parts.method.nets for eye in net.eyes()]
    before = [eye.see for eye in eyes]
    engine.prepare = Named  # type: ignore[method-assign]
    for eye in eyes:
        eye.see = counting(eye.see, seen)
    try:
        yield
    finally:
        del engine.prepare  # the class has its own
        for eye, see in zip(eyes, before):
            eye.see = see


def counting(see: See, seen: Counter[bool]) -> See:
    def looks(network: nn.Module, pixels: Tensor, mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
        seen[torch.is_grad_enabled()] += len(pixels)
        return see(network, pixels, mean, std)

    return looks
