"""What fits a time budget: jobs, seeds and measured speed go in; which jobs at which share of the paper's epochs come out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from labelsieve.errors import UsageError
from labelsieve.reproduce.cells import Job
from labelsieve.reproduce.speed import Speed, phases, total
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
    known = [job for job in jobs if any(speed.fits(job) for speed in speeds)]
    unknown = [job for job in jobs if job not in known]
    for count in range(len(known), 0, -1):
        some = known[:count]
        for percent in (100,) if settings.epochs else range(100, 0, -1):
            length = settings if settings.epochs else _at(settings, percent / 100)
            if not settings.epochs and not _useful(some, length, make):
                break
            seconds = MARGIN * total(make(some, length), speeds)[1]
            if seconds <= budget:
                return Fitted(some, [*known[count:], *unknown], length, seconds)
    raise UsageError(_too_small(known, unknown, settings, make, speeds))


def _at(settings: Settings, share: float) -> Settings:
    return Settings(None, share, settings.limit, settings.sets)


def _useful(jobs: Sequence[Job], settings: Settings, make: Make) -> bool:
    """Does every job have a tenth of the paper's epochs left after its warm-up?"""
    try:
        tasks = make(jobs, settings)
    except UsageError:  # nothing left after the warm-up
        return False
    return all(phases(task)[1] >= LEAST * task.job.epochs or task.config.method == "ce" for task in tasks)


def _too_small(known: list[Job], unknown: list[Job], settings: Settings, make: Make, speeds: Sequence[Speed]) -> str:
    if not known:
        return (
            f"no measured speed fits {', '.join(job.name for job in unknown)}, so no budget can be planned; measure it with "
            f"`labelsieve bench --network NAME --json FILE` and give --speed FILE"
        )
    lengths = [settings] if settings.epochs else [_at(settings, percent / 100) for percent in range(1, 101)]
    least = next(length for length in lengths if settings.epochs or _useful(known[:1], length, make))
    seconds = MARGIN * total(make(known[:1], least), speeds)[1]
    return (
        f"nothing fits this budget: {known[0].name} takes about {seconds / 60:.1f} min at {least.epochs_of(known[0])} epochs; "
        f"give a larger --budget, a smaller --limit, or other --cells"
    )
