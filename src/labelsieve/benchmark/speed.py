"""How fast is this machine, and how near does a whole epoch come to the network's own limit? All in one process.

The ceiling is the network alone, in the engine's own form (compiled and captured where the device can): images/s trained
at 4 batches and inferred at 6. `engine_fraction` is the time the ceiling needs for an epoch's forward and backward passes
over the time the epoch takes.

Of any other method, what its networks see is counted, not told.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelsieve.config.schema import Config
from labelsieve.data.noisy_data import Collection, Held, NoisyData
from labelsieve.engine.fast import Captured, FastEngine
from labelsieve.errors import UsageError
from labelsieve.methods.ce import plain_epoch
from labelsieve.methods.contract import Phase
from labelsieve.methods.dividemix import DivideMix, Division
from labelsieve.methods.epochs import CHUNK, Named, inputs_of, run
from labelsieve.methods.net import Net, See
from labelsieve.methods.parts.neighbours import nearest
from labelsieve.runs.environment import describe
from labelsieve.runs.rows import Rows
from labelsieve.train.build import Parts, parts_for

LOOK = "evidence of one network"


@dataclass
class Bench:
    """Seconds by part, and what follows from them."""

    device: str
    shape: dict[str, Any]
    startup_s: float = 0.0  # from the command, once Python runs, to the end of the first step
    ceiling: dict[str, float] = field(default_factory=dict)  # images/s
    parts_s: dict[str, float] = field(default_factory=dict)
    epoch_s: float = 0.0
    engine_fraction: float = 0.0
    peak_gib: float | None = None  # of tensors at one time
    held_gib: float | None = None  # taken from the device for them: every recorded step keeps memory of its own


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


def made_rows(samples: int, classes: int, shape: tuple[int, int, int], seed: int = 0) -> Rows:
    """Pictures of noise in the shape of CIFAR: speed does not depend on what is in them."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(256, (samples, *shape), dtype=torch.uint8, generator=generator)
    labels = torch.randint(classes, (samples,), generator=generator)
    ids, names = tuple(map(str, range(samples))), tuple(map(str, range(classes)))
    data = NoisyData(images, labels, ids, names)
    held = Held(images[: max(samples // 5, 1)], labels[: max(samples // 5, 1)])
    half = (0.5,) * shape[0]
    return Rows(data, None, held, Collection("made", data, None, held, half, half), None)


class Clock:
    """Wall time of device work: the queue is emptied before and after."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def seconds(self, work: Callable[[], object], repeats: int = 3) -> float:
        """The median of `repeats` runs, after one that does not count."""
        work()
        return median(self.once(work) for _ in range(repeats))

    def once(self, work: Callable[[], object]) -> float:
        self._settle()
        began = time.perf_counter()
        work()
        self._settle()
        return time.perf_counter() - began

    def _settle(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def measure(
    config: Config, rows: Rows, labelled: int, say: Callable[[str], None], repeats: int = 3, began: float | None = None
) -> Bench:
    """Measure everything once; `labelled` is |X|, how many samples count as clean in the epoch that is timed.

    `began` is when the command did (`time.perf_counter`): loading torch is part of the way to the first step.
    """
    began = time.perf_counter() if began is None else began
    parts = parts_for(config, rows)
    clock = Clock(parts.engine.device)
    method, training = dividing(parts), parts.method.training
    shape = {"samples": len(rows.data), "labelled": labelled, "batch": training.batch, "method": method.name}
    result = Bench(device_words(parts), shape | {"network": config.network, "picture": list(rows.data.shape)})
    _first_step(parts)
    clock.once(lambda: None)
    result.startup_s = time.perf_counter() - began
    say(f"first step after {result.startup_s:.1f} s")

    result.ceiling = ceiling(parts, rows, clock, repeats)
    say("  ".join(f"{name} {value:,.0f}/s" for name, value in result.ceiling.items()))

    division = Division(torch.ones(len(rows.data)), torch.arange(len(rows.data)) < labelled)
    jobs: dict[str, Callable[[], object]] = {
        "warm-up epoch, both networks": lambda: warm_up(parts),
        "gather evidence, both networks": lambda: [parts.engine.evidence(net) for net in method.nets],
        "mixtures, both networks": _mixtures(parts),
        "stage 1, both networks": _stage_one(parts),
        "augmentation of an epoch, both networks": lambda: _views(parts, labelled),
        "test evaluation, both networks": lambda: [parts.engine.predict(net, held_images(rows)) for net in method.nets],
    }
    for name, job in jobs.items():
        result.parts_s[name] = clock.seconds(job, repeats)
        say(f"{name}: {result.parts_s[name]:.3f} s")

    result.epoch_s = clock.seconds(lambda: epoch(parts, division), repeats)
    result.engine_fraction = _ideal(parts, labelled, result.ceiling) / result.epoch_s
    if parts.engine.device.type == "cuda":
        result.peak_gib = torch.cuda.max_memory_allocated(parts.engine.device) / 2**30
        result.held_gib = torch.cuda.max_memory_reserved(parts.engine.device) / 2**30
    say(f"{method.name} epoch: {result.epoch_s:.3f} s, engine_fraction {result.engine_fraction:.3f}")
    return result


def dividing(parts: Parts) -> DivideMix:
    """The method, which must be one that divides labels: its epochs are what is timed."""
    if not isinstance(parts.method, DivideMix):
        raise UsageError(f'speed is measured of methods that divide labels, such as cpc, not of "{parts.method.name}"')
    return parts.method


def warm_up(parts: Parts, nets: slice = slice(None)) -> None:
    """The first epoch of plain cross-entropy, of all networks or some."""
    method = parts.method
    for net in method.nets[nets]:
        run(plain_epoch(method, net, 0, method.c.entropy_penalty), parts.engine, method.training.seed, 0)


def epoch(parts: Parts, division: Division) -> None:
    """What an epoch does after the warm-up, with the partition's size fixed: also waiting for the one that was found."""
    method, at = dividing(parts), parts.method.c.warmup
    method.divided(method.judge(at, parts.engine), method.deciding(at))
    for net, peer in (method.nets, method.nets[::-1]):
        run(method.mixed(net, peer, division, at, parts.engine, "mixture"), parts.engine, method.training.seed, at)


def ceiling(parts: Parts, rows: Rows, clock: Clock, repeats: int) -> dict[str, float]:
    """Images/s of the network alone: trained at 4 batches, inferred at 6, bytes already on the device, of the side it sees."""
    net, size = parts.method.nets[0], parts.method.training.batch
    whole = rows.data.images[torch.arange(6 * size) % len(rows.data)]
    some = parts.engine.place(parts.engine.views.plain(whole).contiguous())
    steps = 20 if parts.engine.device.type == "cuda" else 2  # a CPU has no queue to fill, and takes a second for one

    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = F.cross_entropy(net.look(x)[0], y)
        net.descend(loss, rate)
        return loss.detach()

    @torch.no_grad()
    def look(x: Tensor) -> Tensor:
        return net.look(x)[0]

    rate = torch.tensor(parts.method.training.lr, device=parts.engine.device)
    labels = parts.engine.labels[torch.arange(4 * size, device=parts.engine.device) % len(rows.data)]
    saved = [tensor.detach().clone() for tensor in net.tensors()]
    net.train()
    trained = _fastest(parts, net, step)
    train_s = clock.seconds(lambda: [trained(some[: 4 * size], labels) for _ in range(steps)], repeats)
    net.train(False)
    looked = _fastest(parts, net, look)
    look_s = clock.seconds(lambda: [looked(some) for _ in range(steps)], repeats)
    with torch.no_grad():
        for tensor, value in zip(net.tensors(), saved):
            tensor.copy_(value)
    return {"trained": steps * 4 * size / train_s, "inferred": steps * len(some) / look_s}


def _fastest(parts: Parts, net: Net, step: Callable[..., Tensor]) -> Callable[..., Tensor]:
    captures = isinstance(parts.engine, FastEngine) and parts.engine.speed.capture
    return Captured(step, net.tensors) if captures else step


def _ideal(parts: Parts, labelled: int, rates: dict[str, float]) -> float:
    """Seconds the ceiling needs for an epoch: 4 batches trained (2 where the unlabelled half is not) and 6 inferred a step, and
    the pass that gathers evidence."""
    method = dividing(parts)
    batch, samples = method.training.batch, len(method.facts.given)
    steps = -(-labelled // batch)
    trained, inferred = steps * (4 if method.c.train_unlabelled else 2) * batch, steps * 6 * batch + samples
    return len(method.nets) * (trained / rates["trained"] + inferred / rates["inferred"])


def _mixtures(parts: Parts) -> Callable[[], object]:
    method = dividing(parts)
    seen = [parts.engine.evidence(net) for net in method.nets]

    def work() -> None:
        for mixture, each in zip(method.mixtures, seen):
            mixture.learn(each)
            mixture.judge(each)

    return work


def _stage_one(parts: Parts) -> Callable[[], object]:
    seen = [parts.engine.evidence(net) for net in parts.method.nets]
    clean = torch.arange(len(seen[0]), device=parts.engine.device) % 2 == 0

    def work() -> None:
        for judge, each in zip(parts.method.helpers(), seen):
            judge.learn(each, clean)
            judge.judge(each)

    return work


def _views(parts: Parts, labelled: int) -> None:
    method = dividing(parts)
    batch = method.training.batch
    left = -(-labelled // batch)
    for _ in method.nets:
        for first in range(0, left, CHUNK):
            rows = torch.arange(4 * batch * min(CHUNK, left - first)) % len(method.facts.given)
            parts.engine.weak(rows, torch.Generator())
            if method.mixes_strong:
                parts.engine.strong(rows, torch.Generator())


def _first_step(parts: Parts) -> None:
    method = parts.method
    phase = plain_epoch(method, method.nets[0], 0, method.c.entropy_penalty)
    method.nets[0].train()
    step = parts.engine.prepare(phase)
    step(*next(inputs_of(phase, slice(0, 1), parts.engine, (method.training.seed, 0, 0, 0, 0))))


def held_images(rows: Rows) -> Tensor:
    assert rows.test is not None
    return rows.test.images


def device_words(parts: Parts) -> str:
    return describe(parts.engine.device)
