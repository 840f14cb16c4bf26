"""How time and memory of a whole run grow with the number of pictures: each stage, on sets of made pictures of several sizes.

Pictures lie in a file that is mapped, as a decoded cache does. They show something of their class, so that networks learn.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from labelsieve.benchmark.large import profile
from labelsieve.config.schema import Config, override
from labelsieve.data.noisy_data import Collection, NoisyData, Truth
from labelsieve.methods.dividemix import DivideMix
from labelsieve.methods.epochs import verdict_now
from labelsieve.methods.parts.neighbours import nearest
from labelsieve.report.run import run_page
from labelsieve.results.outcome import label_issues, scores_of, write_issues
from labelsieve.results.reporting import run_report
from labelsieve.review.opening import open_review
from labelsieve.runs.environment import describe
from labelsieve.runs.rows import Rows
from labelsieve.train.loop import each_epoch, early_noise
from labelsieve.train.start import start

OFTEN = 0.05  # seconds between two looks at the memory
DRAWN = 512  # pictures of noise, on which the classes' patterns lie
WRONG = 0.2  # of the labels
BRIEF = 0.5  # seconds, below which how a stage grows says more of the clock
COSTLY = 200_000  # samples, from which on all neighbours are not looked for on a CPU: hours


@dataclass(frozen=True)
class Stage:
    """What a stage took: seconds, and memory in GiB while it ran, the host's without mapped files and the device's own."""

    seconds: float
    host_gib: float
    device_gib: float | None = None


NONE = Stage(0.0, 0.0)


@dataclass
class Grown:
    """One set's stages by name, and what belongs to the set as a whole."""

    samples: int
    picture_gib: float
    device: str
    stages: dict[str, Stage] = field(default_factory=dict)
    waits: float | None = None  # share of a step's time in which the device waits for pictures


def made_pictures(folder: Path, samples: int, classes: int, side: int) -> Rows:
    """Pictures (samples, 3, side, side) in a mapped file: noise and a pattern of their true class; one label in five is wrong."""
    generator = np.random.default_rng(0)
    noise = generator.integers(0, 150, (DRAWN, 3, side, side), np.uint8)
    patterns = generator.integers(0, 2, (classes, 3, 4, 4)).astype(np.uint8).repeat(side // 4, 2).repeat(side // 4, 3) * 100
    true = generator.integers(0, classes, samples)
    true[:classes] = np.arange(classes)
    pixels = np.lib.format.open_memmap(folder / "pixels.npy", "w+", np.uint8, (samples, 3, side, side))
    for first in range(0, samples, DRAWN):
        some = true[first : first + DRAWN]
        np.add(noise[: len(some)], patterns[some], out=pixels[first : first + DRAWN])
    pixels.flush()
    wrong = generator.random(samples) < WRONG
    wrong[:classes] = False
    given = np.where(wrong, generator.integers(0, classes, samples), true)
    ids = tuple(f"{i:07d}" for i in range(samples))
    data = NoisyData(torch.from_numpy(pixels), torch.from_numpy(given), ids, tuple(f"class {k}" for k in range(classes)))
    half = (0.5, 0.5, 0.5)
    truth = Truth(torch.from_numpy(true))
    return Rows(data, truth, None, Collection("made", data, truth, None, half, half), None)


def grown(config: Config, sizes: Sequence[int], classes: int, side: int, say: Callable[[str], None]) -> list[Grown]:
    """Every size, the smaller ones first: what a process does once, such as compiling, is theirs."""
    found = []
    for samples in sorted(sizes):
        with TemporaryDirectory(prefix="labelsieve-") as folder:
            rows = made_pictures(Path(folder), samples, classes, side)
            found.append(_measured(config, rows, Path(folder), say))
    return found


def _measured(config: Config, rows: Rows, folder: Path, say: Callable[[str], None]) -> Grown:
    path, device = folder / "run", torch.device("cpu")
    result = Grown(len(rows.data), rows.data.images.nbytes / 2**30, "")

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        with _peaks(device) as peaks:
            began = time.perf_counter()
            yield
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            seconds = time.perf_counter() - began
        result.stages[name] = Stage(seconds, *peaks())
        say(f"{result.samples:,}: {name}: {seconds:.1f} s, {result.stages[name].host_gib:.2f} GiB")

    with stage("start"):
        run = start(path, config, rows=rows)
    device, method, engine = run.parts.engine.device, run.parts.method, run.parts.engine
    result.device = describe(device)
    epochs = each_epoch(run)
    for name in ("warm-up epoch", "mixed epoch, stage 1 in it", "verdict, list and model, as the run ends"):
        with stage(name):
            next(epochs)
    with stage("evidence of one network"):
        seen = engine.evidence(method.nets[0])
    if isinstance(method, DivideMix):
        with stage("mixture of one network"):
            method.mixtures[0].judge(seen)
    if device.type == "cuda" or len(rows.data) < COSTLY:
        with stage("200 nearest of all (ssr, rrl, ngc, ncr)"):
            nearest(seen.features, 200)
    with stage("verdict"):
        verdict = verdict_now(method, engine)
    noise = run.parts.noise(verdict, early_noise(run.metrics))
    with stage("scores"):
        run.home.write_arrays(run.home.scores, scores_of(verdict, rows.data, method, run.history, noise))
    with stage("issues.csv"):
        write_issues(run.home, label_issues(verdict, rows.data, method, run.history, None, noise))
    with stage("report"):
        (folder / "report.html").write_text(run_page(run_report(path)[0]), encoding="utf-8")
    with stage("review's start"):
        open_review(path)
    if isinstance(method, DivideMix):
        shared = override(config, {"engine.pictures": "host"})
        found = profile(shared, rows, 32 if device.type == "cuda" else 2, lambda words: None, repeats=2)
        result.waits = found.waiting_ms / found.together_ms
        say(f"{result.samples:,}: the device waits for pictures {100 * result.waits:.1f} % of a step, where they lie on the host")
    return result


@contextmanager
def _peaks(device: torch.device) -> Iterator[Callable[[], tuple[float, float | None]]]:
    """Afterwards, the largest memory inside: of this process on the host, and of tensors on the device."""
    most, over = [own_memory()], threading.Event()

    def look() -> None:
        while not over.wait(OFTEN):
            most.append(max(most.pop(), own_memory()))

    watch = threading.Thread(target=look, daemon=True)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    watch.start()
    try:
        yield lambda: (max(*most, own_memory()), _device_memory(device))
    finally:
        over.set()
        watch.join()


def _device_memory(device: torch.device) -> float | None:
    return torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else None


def own_memory() -> float:
    """GiB that this process holds itself: not the pages of files that it maps, which the system takes back as it likes."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:  # no Linux
        return 0.0
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    return int(found[1]) / 2**20 if found else 0.0


def exponents(found: Sequence[Grown]) -> Mapping[str, float]:
    """By which power of the samples each stage's time grows, from the second largest set to the largest: 1 is linear.

    Of stages that are over in no time none.
    """
    if len(found) < 2:
        return {}
    less, more = found[-2:]
    times = np.log(more.samples / less.samples)
    both = [name for name, stage in more.stages.items() if stage.seconds >= BRIEF and less.stages.get(name, NONE).seconds > 0]
    return {name: float(np.log(more.stages[name].seconds / less.stages[name].seconds) / times) for name in both}


def draw(found: Sequence[Grown], out: Path) -> None:
    """Each stage's seconds by the number of pictures, on logarithmic axes: what is linear is parallel to the grey lines."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    axes.set(
        xscale="log", yscale="log", xlabel="pictures", ylabel="seconds", title=f"labelsieve bench --scale, {found[-1].device}"
    )
    longest = {name: stage.seconds for one in found for name, stage in one.stages.items()}  # of the largest set that has it
    for i, name in enumerate(sorted(longest, key=lambda name: -longest[name])):
        having = [one for one in found if name in one.stages]
        axes.plot(
            [one.samples for one in having],
            [one.stages[name].seconds for one in having],
            marker="o",
            label=name,
            color=f"C{i % 8}",
            linestyle=("-", "--", ":")[i // 8 % 3],
        )
    within = axes.get_ylim()
    counts = [one.samples for one in found]
    for height in 10.0 ** np.arange(-9, 0):
        axes.plot(counts, [count * height for count in counts], color="0.85", linewidth=1, zorder=0)
    axes.plot([], [], color="0.85", label="linear growth")
    axes.set_ylim(within)
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.minorticks_off()
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.savefig(out, bbox_inches="tight")
    pyplot.close(figure)


def facts_of(found: Sequence[Grown]) -> dict[str, Any]:
    return {
        "sizes": [
            {
                "samples": one.samples,
                "picture_gib": one.picture_gib,
                "waits": one.waits,
                "stages": {name: vars(stage) for name, stage in one.stages.items()},
            }
            for one in found
        ],
        "exponents": dict(exponents(found)),
    }
