"""Is it better to train again half-way through a review? Data with known noise go in, figures for each plan come out.

A scripted reviewer takes the most suspicious labels first and answers by the true ones. A plan is a number of decisions for
each round, such as (200, 200) or (400,). All plans of a seed start from the same first run, and each ends with a training on
all its decisions, whose test accuracy and leftovers are measured: (200, 200) trains three times, (400,) twice.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from labelsieve.decisions.decision import ACCEPT, KEEP, RELABEL, Decision
from labelsieve.decisions.log import DecisionLog
from labelsieve.errors import UsageError
from labelsieve.issues.policy import verdicts
from labelsieve.runs.automatic import sure_corrections
from labelsieve.runs.config import Config
from labelsieve.runs.findings import read_findings
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rounds import based_on
from labelsieve.runs.train import Run, begin, drive

WHO = "script"


@dataclass(frozen=True)
class Outcome:
    """Of one plan and seed. `found` counts decisions that corrected a wrong label; what is left is counted over all samples.

    `left_suggested` and `dropped`: what `apply --auto` would leave, were it not for cautions, by the last run's suggestions.
    """

    plan: str
    seed: int
    wrong: int
    decisions: int
    found: int
    left: int
    left_suggested: int
    dropped: int
    accuracy: float | None
    trainings: int
    seconds: float


def compare(config: Config, plans: Sequence[Sequence[int]], where: Path, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """The outcome of each plan, as facts, as soon as it is known."""
    began = time.monotonic()
    say(f"seed {config.seed}: first run")
    first = trained(where / "first", config)
    if first.rows.truth is None:
        raise UsageError(f"{config.data.source}: true labels are not known, so nothing can be measured; add --noise SPEC")
    spent = time.monotonic() - began
    for plan in plans:
        began = time.monotonic()
        name = " + ".join(map(str, plan))
        last = followed(first, plan, where / name.replace(" ", ""))
        found = outcome(first, last, name, len(plan) + 1, spent + time.monotonic() - began)
        say(f"  {name}: {found.found} found, {found.left} wrong labels left, accuracy {found.accuracy}")
        yield asdict(found)


def followed(first: Run, plan: Sequence[int], where: Path) -> Run:
    """The run that was trained on all decisions of the plan."""
    where.mkdir(parents=True)
    shutil.copytree(first.folder.path, where / "1", ignore=shutil.ignore_patterns("checkpoint"))
    run = replace(first, folder=RunFolder(where / "1"))
    for number, count in enumerate(plan, 2):
        review(run, count)
        run = trained(where / str(number), based_on(run.config, run.folder.path))
    return run


def trained(path: Path, config: Config) -> Run:
    run = begin(path, config)
    for _ in drive(run):
        pass
    return run


def review(run: Run, count: int) -> None:
    """Decide on the `count` most suspicious labels that are not decided yet, by what is true."""
    data, truth = run.rows.data, run.rows.truth
    assert truth is not None
    true = dict(zip(data.ids, (data.classes[k] for k in truth.labels.tolist())))
    open_rows = [row for row in run.folder.read_issues() if not row["decided"]][:count]
    log = []
    for number, row in enumerate(open_rows):
        label = true[row["id"]]
        action = KEEP if label == row["given_label"] else ACCEPT if label == row["suggested_label"] else RELABEL
        log.append(Decision(f"{number}", row["id"], action, label, WHO, "", float(row["label_score"])))
    DecisionLog(run.folder.path).append(log)


def outcome(first: Run, last: Run, plan: str, trainings: int, seconds: float) -> Outcome:
    wrong, left = wrong_of(first), wrong_of(last)
    found = read_findings(last.folder)
    true = dict(zip(last.rows.data.ids, _true_names(last)))
    said = verdicts(found.columns, found.classes, sure_corrections(found))
    accuracies = [record["accuracy"]["both"] for record in last.metrics if "accuracy" in record]
    return Outcome(
        plan=plan,
        seed=first.config.seed,
        wrong=wrong,
        decisions=sum(action != "" for action in last.rows.decided or ()),
        found=wrong - left,
        left=left,
        left_suggested=sum(one.new is not None and one.new != true[one.id] for one in said),
        dropped=sum(one.new is None for one in said),
        accuracy=accuracies[-1] if accuracies else None,
        trainings=trainings,
        seconds=round(seconds, 1),
    )


def wrong_of(run: Run) -> int:
    assert run.rows.truth is not None
    return int((run.rows.truth.labels != run.rows.data.labels).sum())


def _true_names(run: Run) -> list[str]:
    assert run.rows.truth is not None
    return [run.rows.data.classes[k] for k in run.rows.truth.labels.tolist()]
