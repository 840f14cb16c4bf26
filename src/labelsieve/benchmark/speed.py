"""How fast is this machine, and how near does a whole epoch come to the network's own limit? All in one process.

The ceiling is the network alone, in the engine's own form (compiled and captured where the device can): images/s trained
at 4 batches and inferred at 6. `engine_fraction` is the time the ceiling needs for an epoch's forward and backward passes
over the time the epoch takes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from labelsieve.config.schema import Config
from labelsieve.data.noisy_data import Collection, Held, NoisyData
from labelsieve.engine.capture import Captured
from labelsieve.engine.fast import FastEngine
from labelsieve.methods.algorithm import Judged, divide, divided
from labelsieve.methods.learner import Learner
from labelsieve.methods.parts.momentum import descend
from labelsieve.methods.stages import CHUNK, Division, train, warm_up
from labelsieve.methods.steps import warm_up_step
from labelsieve.runs.environment import describe
from labelsieve.runs.rows import Rows
from labelsieve.train.build import Parts, parts_for


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
    recipe = parts.recipe
    shape = {"samples": len(rows.data), "labelled": labelled, "batch": recipe.batch}
    result = Bench(device_words(parts), shape | {"network": config.network, "picture": list(rows.data.shape)})
    first_batch = parts.engine.weak(torch.arange(recipe.warmup_batch), torch.Generator())
    _first_step(parts, first_batch)
    clock.once(lambda: None)
    result.startup_s = time.perf_counter() - began
    say(f"first step after {result.startup_s:.1f} s")

    result.ceiling = ceiling(parts, rows, clock, repeats)
    say("  ".join(f"{name} {value:,.0f}/s" for name, value in result.ceiling.items()))

    division = Division(torch.ones(len(rows.data)), torch.arange(len(rows.data)) < labelled)
    jobs: dict[str, Callable[[], object]] = {
        "warm-up epoch, both networks": lambda: [warm_up(each, recipe, 0, parts.engine) for each in parts.learners],
        "gather evidence, both networks": lambda: [parts.engine.gather(each) for each in parts.learners],
        "mixtures, both networks": _mixtures(parts),
        "stage 1, both networks": _stage_one(parts),
        "augmentation of an epoch, both networks": lambda: _views(parts, labelled),
        "test evaluation, both networks": lambda: [parts.engine.predict(each, held_images(rows)) for each in parts.learners],
    }
    for name, job in jobs.items():
        result.parts_s[name] = clock.seconds(job, repeats)
        say(f"{name}: {result.parts_s[name]:.3f} s")

    result.epoch_s = clock.seconds(lambda: epoch(parts, division), repeats)
    result.engine_fraction = _ideal(parts, labelled, result.ceiling) / result.epoch_s
    if parts.engine.device.type == "cuda":
        result.peak_gib = torch.cuda.max_memory_allocated(parts.engine.device) / 2**30
        result.held_gib = torch.cuda.max_memory_reserved(parts.engine.device) / 2**30
    say(f"CPC epoch: {result.epoch_s:.3f} s, engine_fraction {result.engine_fraction:.3f}")
    return result


def epoch(parts: Parts, division: Division) -> None:
    """What `learn` does in an epoch, with the partition's size fixed: also waiting for the one that was found."""
    at = parts.recipe.warmup
    divided(Judged(*divide(parts.learners, parts.recipe, at, parts.engine)), parts.recipe, at)
    for learner, peer in (parts.learners, parts.learners[::-1]):
        train(learner, peer, division, parts.prior, parts.recipe, at, parts.engine)


def ceiling(parts: Parts, rows: Rows, clock: Clock, repeats: int) -> dict[str, float]:
    """Images/s of the network alone: trained at 4 batches, inferred at 6, bytes already on the device, of the side it sees."""
    learner, size = parts.learners[0], parts.recipe.batch
    whole = rows.data.images[torch.arange(6 * size) % len(rows.data)]
    some = parts.engine.place(parts.engine.views.plain(whole).contiguous())
    steps = 20 if parts.engine.device.type == "cuda" else 2  # a CPU has no queue to fill, and takes a second for one

    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = F.cross_entropy(learner.look(x)[0], y)
        descend(learner.optimiser, loss)
        return loss.detach()

    @torch.no_grad()
    def look(x: Tensor) -> Tensor:
        return learner.look(x)[0]

    labels = parts.engine.given()[torch.arange(4 * size, device=parts.engine.device) % len(rows.data)]
    saved = [tensor.detach().clone() for tensor in learner.tensors()]
    learner.network.train()
    trained = _fastest(parts, learner, step)
    train_s = clock.seconds(lambda: [trained(some[: 4 * size], labels) for _ in range(steps)], repeats)
    learner.network.eval()
    looked = _fastest(parts, learner, look)
    look_s = clock.seconds(lambda: [looked(some) for _ in range(steps)], repeats)
    with torch.no_grad():
        for tensor, value in zip(learner.tensors(), saved):
            tensor.copy_(value)
    return {"trained": steps * 4 * size / train_s, "inferred": steps * len(some) / look_s}


def _fastest(parts: Parts, learner: Learner, step: Callable[..., Tensor]) -> Callable[..., Tensor]:
    captures = isinstance(parts.engine, FastEngine) and parts.engine.speed.capture
    return Captured(step, learner.tensors) if captures else step


def _ideal(parts: Parts, labelled: int, rates: dict[str, float]) -> float:
    """Seconds the ceiling needs for an epoch: 4 batches trained (2 where the unlabelled half is not) and 6 inferred a step, and
    the pass that gathers evidence."""
    batch = parts.recipe.batch
    steps = -(-labelled // batch)
    samples = len(parts.engine.given())
    trained, inferred = steps * (4 if parts.recipe.train_unlabelled else 2) * batch, steps * 6 * batch + samples
    return len(parts.learners) * (trained / rates["trained"] + inferred / rates["inferred"])


def _mixtures(parts: Parts) -> Callable[[], object]:
    seen = [parts.engine.gather(learner) for learner in parts.learners]
    return lambda: [_mixture(learner, evidence) for learner, evidence in zip(parts.learners, seen)]


def _mixture(learner: Learner, evidence: Any) -> Tensor:
    learner.teacher.learn(evidence)
    return learner.teacher.judge(evidence)


def _stage_one(parts: Parts) -> Callable[[], object]:
    seen = [parts.engine.gather(learner) for learner in parts.learners]
    clean = torch.arange(len(seen[0]), device=parts.engine.device) % 2 == 0
    judges = [learner.judge for learner in parts.learners if learner.judge is not None]

    def work() -> None:
        for judge, each in zip(judges, seen):
            judge.learn(each, clean)
            judge.judge(each)

    return work


def _views(parts: Parts, labelled: int) -> None:
    batch = parts.recipe.batch
    left = -(-labelled // batch)
    for _ in parts.learners:
        for first in range(0, left, CHUNK):
            rows = torch.arange(4 * batch * min(CHUNK, left - first)) % len(parts.engine.given())
            parts.engine.weak(rows, torch.Generator())
            if parts.recipe.strong_views:
                parts.engine.strong(rows, torch.Generator())


def _first_step(parts: Parts, pixels: Tensor) -> None:
    learner = parts.learners[0]
    learner.network.train()
    step = parts.engine.prepare(learner, warm_up_step, learner, parts.recipe)
    step(pixels, parts.engine.given()[: len(pixels)])


def held_images(rows: Rows) -> Tensor:
    assert rows.test is not None
    return rows.test.images


def device_words(parts: Parts) -> str:
    return describe(parts.engine.device)
