"""What a run found, by sample: issues.csv of a run folder goes in, columns in the order of the data come out."""

from dataclasses import dataclass

import numpy as np

from labelsieve.data.npz import read_npz
from labelsieve.errors import ToolError
from labelsieve.runs.folder import RunFolder


@dataclass(frozen=True)
class Findings:
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


def read_findings(folder: RunFolder) -> Findings:
    """The findings of a run, or a `ToolError` where its files do not fit each other."""
    rows = folder.read_issues()
    arrays = read_npz(folder.scores)
    ids, classes = tuple(arrays["ids"].tolist()), tuple(arrays["classes"].tolist())
    number = {name: k for k, name in enumerate(classes)}
    position = {name: i for i, name in enumerate(ids)}
    try:
        order = np.array([position[row["id"]] for row in rows])
        suggested = [number[row.get("suggested_label") or row["predicted_label"]] for row in rows]
        score, is_issue = [float(row["label_score"]) for row in rows], [row["is_label_issue"] == "True" for row in rows]
        confidence = [float(row["suggested_confidence"]) if row.get("suggested_confidence") else np.nan for row in rows]
    except (KeyError, ValueError) as error:
        raise ToolError(f"{folder.issues}: it does not fit scores.npz ({error}); it was changed by hand or damaged") from None
    if len(order) != len(ids) or len(set(order.tolist())) != len(ids):
        raise ToolError(f"{folder.issues}: {len(order)} rows for {len(ids)} samples; it was changed by hand or damaged")
    back = np.argsort(order)
    rough = np.where(arrays["suggested"] == np.array(suggested)[back], arrays["confidence"], 0).mean(0)
    known = np.array(confidence)[back]
    return Findings(
        ids,
        classes,
        arrays["given"].astype(np.int64),
        np.array(suggested)[back],
        np.where(np.isnan(known), rough, known),
        np.array(score)[back],
        np.array(is_issue)[back],
        tuple(rows[i].get("path") or "" for i in back),
        order,
    )
