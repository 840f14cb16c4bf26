"""A run without a folder: a configuration and rows go in, the trained parts and the last division come out."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from labelsieve.config.schema import Config
from labelsieve.errors import ToolError
from labelsieve.issues.estimate import chances, doubted, limited
from labelsieve.issues.table import LabelIssues
from labelsieve.methods.algorithm import Diverged, Epoch, learn
from labelsieve.methods.parts.estimate import NoiseEstimate, least_wrong
from labelsieve.results.cautions import cautions
from labelsieve.results.history import ScoreHistory
from labelsieve.results.label_score import remember_division
from labelsieve.runs.findings import Findings, Record
from labelsieve.runs.rows import Rows
from labelsieve.train.build import Parts, parts_for
from labelsieve.train.decide import Decision, decide, decided, left_open, seen_after_warm_up, with_decision
from labelsieve.train.measure import Measure

Show = Callable[[dict[str, Any], int], None]


@dataclass(frozen=True)
class Trained:
    parts: Parts
    epoch: Epoch  # the final one: it only divides
    decision: Decision | None  # what was left open, and followed from the noise
    history: ScoreHistory
    metrics: list[dict[str, Any]]  # a line an epoch, from the last of the warm-up on


def unseen(record: dict[str, Any], epochs: int) -> None:
    """What an epoch measured, and of how many it is: shown to nobody."""


def train_in_memory(config: Config, rows: Rows, show: Show = unseen) -> Trained:
    """The same training as a run's, from its start to its end, with the same draws. `show` is called after each epoch."""
    parts, decision = parts_for(config, rows), None
    history = ScoreHistory(len(rows.data), config.output.history_mib)
    measure = Measure(rows.data, None, None, parts.recipe, parts.engine, parts.learners)
    start, metrics = 0, list[dict[str, Any]]()
    try:
        if left_open(config) and config.method != "ce":
            start = parts.recipe.warmup
            for early in learn(parts.learners, parts.recipe, parts.engine, parts.prior, 0, parts.pinned, stop=start):
                show(measure.record(early), parts.recipe.epochs)
            decision = decide(config, seen_after_warm_up(parts.learners, parts.recipe, parts.engine))
            parts = replace(parts, recipe=decided(config, decision))
            for learner in parts.learners:
                learner.teacher.memory = decision.mixture_memory
        for last in learn(parts.learners, parts.recipe, parts.engine, parts.prior, start, parts.pinned):
            remember_division(history, last, parts.learners)
            line = replace(measure, recipe=parts.recipe).record(last)
            metrics.append(with_decision(line, decision) if decision and last.index == start else line)
            show(line, parts.recipe.epochs)
    except Diverged as error:
        raise ToolError(f"{error}; try a lower learning rate, such as lr={config.training.lr / 4:g}") from None
    return Trained(parts, last, decision, history, metrics)


def cautions_of(
    config: Config,
    metrics: list[dict[str, Any]],
    decision: Decision | None,
    epoch: Epoch,
    issues: LabelIssues,
    limit: NoiseEstimate | None,
) -> tuple[str, ...]:
    """What the report of such a run would warn of, without its folder."""
    estimate = None if decision is None else asdict(decision.estimate)
    return tuple(cautions(_found(epoch, issues, limit), Record(config, {}, metrics, 0.0, estimate, ())))


def _found(epoch: Epoch, issues: LabelIssues, limit: NoiseEstimate | None) -> Findings:
    """As `read_findings` would read it back, with those columns alone that a caution needs."""

    def both(tensors: Sequence[torch.Tensor]) -> np.ndarray:
        return torch.stack(list(tensors)).cpu().numpy()

    judges = np.stack([both(chance) for chance in (epoch.by_prototype, epoch.by_loss) if chance])
    judges = np.clip(np.nan_to_num(judges.astype(np.float64)), 0, 1)
    own = both([seen.predicted for seen in epoch.seen])
    wrong = chances(issues.score, judges, issues.given, own, issues.predicted, issues.confidence[:, 0])
    if limit is not None:
        wrong = limited(wrong, issues.is_issue, limit.low, limit.high)
    elif (least := least_wrong(epoch.seen)) is not None:
        wrong = doubted(wrong, least)
    return Findings(
        columns={"action": issues.action[issues.order].tolist(), "is_label_issue": issues.is_issue[issues.order].tolist()},
        classes=list(issues.classes),
        order=issues.order,
        given=issues.given,
        suggested=issues.predicted,
        score=issues.score,
        is_issue=issues.is_issue,
        loss=both([seen.losses for seen in epoch.seen]).mean(0),
        chances=wrong,
        made_wrong=None,
        decided=np.zeros(len(issues.given), bool),
        limited=limit is not None,
    )
