"""Plans what fits a time budget: which jobs, at which share of the paper's epochs, by measured speed."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from labelsieve.config.lengths import divides
from labelsieve.errors import UsageError
from labelsieve.reproduce.cells import Job
from labelsieve.reproduce.speed import Speed, total
from labelsieve.reproduce.tasks import Settings, Task

MARGIN = 1.1  # runs write files and are looked at as well
LEAST = 0.1  # of the paper's epochs after the warm-up: below that no cleaner has begun to matter

Make = Callable[[Sequence[Job], Settings], list[Task]]


@dataclass(frozen=True)
class Fitted:
    """`jobs` at `settings` take `seconds`; `dropped` do not fit."""

    jobs: list[Job]
    dropped: list[Job]
    settings: Settings
    seconds: float


def fit(jobs: Sequence[Job], settings: Settings, make: Make, speeds: Sequence[Speed], budget: float) -> Fitted:
    """All jobs as long as fits; where even the shortest useful length does not, without the last ones.

    One share of the paper's epochs for all of them, in whole percent, so that they can be compared with each other. With
    `settings.epochs` the length is given, and only the number of jobs is looked for.
    """
    known = list(dict.fromkeys(task.job for task in make(jobs, settings) if any(speed.fits(task) for speed in speeds)))
    unknown = [job for job in jobs if job not in known]
    for count in range(len(known), 0, -1):
        some = known[:count]
        lengths = [settings] if settings.epochs else _lengths(some, settings, make)
        # Longer takes longer, so the longest that fits is found by halving.
        place = bisect_right(lengths, budget, key=lambda length: _seconds(some, length, make, speeds)) - 1
        if place >= 0:
            seconds = _seconds(some, lengths[place], make, speeds)
            return Fitted(some, [*known[count:], *unknown], lengths[place], seconds)
    raise UsageError(_too_small(known, unknown, settings, make, speeds))


def _seconds(jobs: Sequence[Job], settings: Settings, make: Make, speeds: Sequence[Speed]) -> float:
    return MARGIN * total(make(jobs, settings), speeds)[1]


def _lengths(jobs: Sequence[Job], settings: Settings, make: Make) -> list[Settings]:
    """From the shortest at which every job has a tenth of the paper's epochs left after its warm-up, to the paper's."""
    least = 0.0
    for task in make(jobs, replace(settings, share=1.0)):
        if divides(task.config):
            full = task.job.length or task.job.epochs
            least = max(least, (task.config.training.warmup + LEAST * full) / full)
    return [replace(settings, share=percent / 100) for percent in range(max(1, ceil(100 * least)), 101)]


def _too_small(known: list[Job], unknown: list[Job], settings: Settings, make: Make, speeds: Sequence[Speed]) -> str:
    if not known:
        return (
            f"no measured speed fits {', '.join(job.name for job in unknown)}, so no budget can be planned; measure it with "
            f"`labelsieve bench --network NAME --json FILE` and give --speed FILE"
        )
    least = settings if settings.epochs else _lengths(known[:1], settings, make)[0]
    seconds = _seconds(known[:1], least, make, speeds)
    return (
        f"nothing fits this budget: {known[0].name} takes about {_about(seconds)} at {least.epochs_of(known[0])} epochs; "
        f"give a larger --budget, a smaller --limit, or other --cells"
    )


def _about(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.0f} hours"
