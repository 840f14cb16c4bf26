"""The cautions of a run without a folder, from what it found in memory."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from labelsieve.config.schema import Config
from labelsieve.issues.estimate import by_heads, chances, doubted, limited
from labelsieve.issues.table import LabelIssues
from labelsieve.methods.contract import Verdict
from labelsieve.methods.parts.estimate import NoiseEstimate, least_wrong
from labelsieve.methods.parts.heads import HeldOut
from labelsieve.results.cautions import cautions
from labelsieve.runs.findings import Findings, Record
from labelsieve.train.decide import Decision


def cautions_of(
    config: Config,
    metrics: list[dict[str, Any]],
    decision: Decision | None,
    verdict: Verdict,
    issues: LabelIssues,
    limit: NoiseEstimate | None,
    held: HeldOut | None = None,
) -> tuple[str, ...]:
    """What the report of such a run would warn of, without its folder."""
    estimate = None if decision is None else asdict(decision.estimate)
    return tuple(cautions(_found(verdict, issues, limit, held), Record(config, {}, metrics, 0.0, estimate, ())))


def _found(verdict: Verdict, issues: LabelIssues, limit: NoiseEstimate | None, held: HeldOut | None) -> Findings:
    """As `read_findings` would read it back, with those columns alone that a caution needs."""

    def both(tensors: Sequence[torch.Tensor]) -> np.ndarray:
        return torch.stack(list(tensors)).cpu().numpy()

    judges = np.stack([both(chance) for chance in reversed(list(verdict.opinions.values()))])
    judges = np.clip(np.nan_to_num(judges.astype(np.float64)), 0, 1)
    own = both([seen.predicted for seen in verdict.seen])
    wrong = chances(issues.score, judges, issues.given, own, issues.predicted, issues.confidence[:, 0])
    if limit is not None and held is not None:
        wrong = by_heads(issues.score, issues.predicted != issues.given, issues.order, limit.share, limit.low, limit.high)
    elif limit is not None:
        wrong = limited(wrong, issues.is_issue, limit.low, limit.high)
    elif (least := least_wrong(verdict.seen)) is not None:
        wrong = doubted(wrong, least)
    return Findings(
        columns={"action": issues.action[issues.order].tolist(), "is_label_issue": issues.is_issue[issues.order].tolist()},
        classes=list(issues.classes),
        order=issues.order,
        given=issues.given,
        suggested=issues.predicted,
        score=issues.score,
        is_issue=issues.is_issue,
        loss=both([seen.losses for seen in verdict.seen]).mean(0),
        chances=wrong,
        made_wrong=None,
        decided=np.zeros(len(issues.given), bool),
        limited=limit is not None and held is None,
        by_heads=held is not None,
    )
