"""What a run found per sample, as columns in the order of the data, for the label formats to write."""

from dataclasses import dataclass

import numpy as np

from labelsieve.runs.findings import read_findings
from labelsieve.runs.folder import RunFolder


@dataclass(frozen=True, eq=False)
class Sheet:
    """Row i is sample i of the run's data. `order` lists the samples, most suspicious first."""

    ids: tuple[str, ...]
    classes: tuple[str, ...]
    given: np.ndarray  # (N,) int64
    suggested: np.ndarray  # (N,) int64
    confidence: np.ndarray  # (N,) of the suggestion
    score: np.ndarray  # (N,) in [0, 1], low = suspicious
    is_issue: np.ndarray  # (N,) bool
    paths: tuple[str, ...]  # as the user wrote them; empty where samples are no files
    order: np.ndarray  # (N,) int64


def read_sheet(folder: RunFolder) -> Sheet:
    """The findings of a run, or a `ToolError` where its files do not fit each other."""
    found = read_findings(folder)
    back = np.argsort(found.order, kind="stable").tolist()
    listed = found.columns
    return Sheet(
        tuple(listed["id"][i] for i in back),
        tuple(found.classes),
        found.given.astype(np.int64),
        found.suggested,
        np.array(listed["suggested_confidence"])[back],
        found.score,
        found.is_issue,
        tuple(listed["path"][i] for i in back),
        found.order,
    )
