"""A reviewer for tests: answers for samples go into a run's log."""

from pathlib import Path

from labelsieve.decisions.decision import LABELLING, Decision
from labelsieve.decisions.log import DecisionLog
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rounds import based_on
from labelsieve.train.loop import each_epoch
from labelsieve.train.run import Run
from labelsieve.train.start import start

Answers = dict[str, tuple[str, str | None]]


def decide(run: Path, answers: Answers, who: str = "ada", seen: int | None = None) -> list[Decision]:
    """{id: (action, label)}."""
    log = DecisionLog(run)
    start = len(log.all())
    told = [
        Decision(
            f"{who}-{start + n}", name, action, label if action in LABELLING else None, who, "2026-11-15T00:00:00Z", 0.5, seen
        )
        for n, (name, (action, label)) in enumerate(answers.items())
    ]
    return log.append(told)


def next_run(parent: Path, path: Path) -> Run:
    """The next round with the same settings, trained to its end."""
    run = start(path, based_on(RunFolder.open(parent).read_config(), parent))
    for _ in each_epoch(run):
        pass
    return run
