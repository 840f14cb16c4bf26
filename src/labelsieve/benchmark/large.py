"""One step of a large network on large pictures, in milliseconds: does it wait for its pictures?

Pictures lie on the host, mapped from a file, as a set that no device holds would. Measured apart: the step on views that are
there already, making views of pictures that are there already, and fetching pictures; then all of it as training runs it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from labelsieve.benchmark.speed import Clock, device_words, dividing
from labelsieve.config.schema import Config
from labelsieve.data.noisy_data import Collection, NoisyData
from labelsieve.methods.contract import Phase
from labelsieve.methods.dividemix import Division
from labelsieve.methods.epochs import CHUNK, inputs_of, run
from labelsieve.runs.rows import Rows
from labelsieve.train.build import Parts, parts_for

HIDDEN = 0.05  # of the time a step takes: as much as measuring it varies by


@dataclass(frozen=True)
class Profile:
    """Milliseconds a step, and pictures a second where it says so."""

    device: str
    network: str
    step_ms: float  # the networks alone, on views that are there
    views_ms: float  # making the views, of pictures that are there
    fetch_ms: float  # host to device, by itself
    together_ms: float  # as training runs it
    gathered_per_s: float  # pictures a second when evidence is gathered, fetched from the host

    @property
    def data_ms(self) -> float:
        return self.views_ms + self.fetch_ms

    @property
    def waiting_ms(self) -> float:
        """What a step takes beyond its own work on the device, at most what fetching takes by itself."""
        return min(self.fetch_ms, max(0.0, self.together_ms - self.step_ms - self.views_ms))

    @property
    def waits(self) -> bool:
        return self.waiting_ms > HIDDEN * self.together_ms


@contextmanager
def mapped_rows(samples: int, classes: int, side: int) -> Iterator[Rows]:
    """Pictures of noise in a file that is mapped, (samples, 3, side, side); the file goes when the block ends."""
    with TemporaryDirectory(prefix="labelsieve-") as folder:
        shape = (samples, 3, side, side)
        pixels = np.lib.format.open_memmap(Path(folder) / "pixels.npy", "w+", np.uint8, shape)
        generator = np.random.default_rng(0)
        for row in range(samples):
            pixels[row] = generator.integers(0, 256, shape[1:], np.uint8)
        pixels.flush()
        labels = torch.arange(samples) % classes
        data = NoisyData(torch.from_numpy(pixels), labels, tuple(map(str, range(samples))), tuple(map(str, range(classes))))
        half = (0.5, 0.5, 0.5)
        yield Rows(data, None, None, Collection("made", data, None, None, half, half), None)


def profile(config: Config, rows: Rows, steps: int, say: Callable[[str], None], repeats: int = 3) -> Profile:
    """Measure `steps` steps of the first network, several times each."""
    parts = parts_for(config, rows)
    clock, engine = Clock(parts.engine.device), parts.engine
    chunk = min(CHUNK, steps)
    some = _rows_of(parts, chunk)
    step_ms = _step_ms(parts, clock, steps, repeats)
    say(f"step alone: {step_ms:.1f} ms")
    views_ms = 1000 * _views_s(parts, clock, engine.pictures(some), repeats) / chunk
    fetch_ms = 1000 * clock.seconds(lambda: engine.fetched(some.unique()), repeats) / chunk
    say(f"views: {views_ms:.1f} ms, fetching: {fetch_ms:.1f} ms a step")
    together_ms = _together_ms(parts, clock, steps, repeats)
    looked = torch.arange(min(len(rows.data), 16 * engine.eval_batch))
    gather_s = clock.seconds(lambda: engine.evidence(parts.method.nets[0], looked), repeats)
    return Profile(device_words(parts), config.network, step_ms, views_ms, fetch_ms, together_ms, len(looked) / gather_s)


def _views_s(parts: Parts, clock: Clock, pictures: torch.Tensor, repeats: int) -> float:
    """Seconds for all views of pictures that are on the device."""
    kinds = (parts.engine.views.weak, parts.engine.views.strong)[: 1 + dividing(parts).mixes_strong]
    return clock.seconds(lambda: [make(pictures, torch.Generator()) for make in kinds], repeats)


def _rows_of(parts: Parts, steps: int) -> torch.Tensor:
    """The rows of some steps as training asks for them: each step's pictures twice."""
    generator = torch.Generator().manual_seed(0)
    x, u = torch.randint(len(parts.engine.labels), (2, steps, parts.method.training.batch), generator=generator)
    return torch.stack((x, x, u, u), 1).flatten()


def _step_ms(parts: Parts, clock: Clock, steps: int, repeats: int) -> float:
    phase = _phase(parts, 1)
    for net, peer in zip(phase.nets, phase.peers):
        net.train()
        peer.network.eval()
    inputs = next(inputs_of(phase, slice(0, 1), parts.engine, (0, 1, 0, 0, 0)))
    step = parts.engine.prepare(phase)
    return 1000 * clock.seconds(lambda: [step(*inputs) for _ in range(steps)], repeats) / steps


def _together_ms(parts: Parts, clock: Clock, steps: int, repeats: int) -> float:
    return 1000 * clock.seconds(lambda: run(_phase(parts, steps), parts.engine, 0, 1), repeats) / steps


def _phase(parts: Parts, steps: int) -> Phase:
    """So many mixed steps of the first network, on rows of which half are clean."""
    method = dividing(parts)
    batch = method.training.batch
    rows = _rows_of(parts, steps).view(steps, 4, -1)[:, 1:3].flatten()  # x and u of each step
    clean = torch.arange(len(rows)) % (2 * batch) < batch
    division = Division(torch.ones(len(rows)), clean, rows)
    return method.mixed(method.nets[0], method.nets[1], division, 1, parts.engine, "mixture")
