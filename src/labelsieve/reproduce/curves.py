"""How cleaners did over training: metrics of runs go in; curves by cleaner come out, means over networks and seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelsieve.runs.findings import Record

LABELS = {
    "gmm-agn": r"GMM$_{agn}$",
    "gmm-awr": r"GMM$_{awr}$",
    "cpc-agn": r"CPC$_{agn}$",
    "cpc-awr": r"CPC$_{awr}$",
    "contrastive": "CPC without GMM",
}
MIXTURES = ("gmm-agn", "gmm-awr")  # these divide by the mixture; one of somebody's own may be called gmm-more


@dataclass(frozen=True, eq=False)
class Line:
    """A measure over epochs: mean (E,) over seeds, and the lowest and highest seed."""

    cleaner: str
    label: str
    epochs: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    seeds: int
    teacher: bool = False  # the mixture inside a run that prototypes divide


def auc_lines(records: Sequence[Record]) -> list[Line]:
    """The AUC of each cleaner in its own runs. Without a run of its own, a mixture is shown where it teaches prototypes."""
    lines = []
    for cleaner in _cleaners(records):
        key = "auc_loss" if cleaner in MIXTURES else "auc_prototype"
        lines += _line(records, cleaner, key, _label(cleaner))
    if not any(line.cleaner in MIXTURES for line in lines):
        for cleaner in _cleaners(records):
            lines += _line(records, cleaner, "auc_loss", f"its mixture ({_label(cleaner)})", teacher=True)
    return lines


def agreement_lines(records: Sequence[Record], key: str) -> list[Line]:
    """`divergence` or `consistency` between mixture and prototypes (appendix A.4), for each cleaner with prototypes."""
    return [line for cleaner in _cleaners(records) for line in _line(records, cleaner, key, _label(cleaner))]


def _cleaners(records: Sequence[Record]) -> list[str]:
    present = {record.config.cleaner for record in records if record.config.method != "ce"}
    return [*(cleaner for cleaner in LABELS if cleaner in present), *sorted(present - LABELS.keys())]


def _label(cleaner: str) -> str:
    """As the paper writes it; a cleaner of somebody's own by its name, in which a dollar begins no formula."""
    return LABELS.get(cleaner, cleaner.replace("$", r"\$"))


def _line(records: Sequence[Record], cleaner: str, key: str, label: str, teacher: bool = False) -> list[Line]:
    """One line or none; seeds of different length are shown as far as all of them go."""
    own = [record for record in records if record.config.cleaner == cleaner and record.config.method != "ce"]
    tables = [table for table in (_by_epoch(record, key) for record in own) if table]
    if not tables:
        return []
    epochs = sorted(set.intersection(*(set(table) for table in tables)))
    values = np.array([[table[epoch] for epoch in epochs] for table in tables])
    mean, low, high = values.mean(0), values.min(0), values.max(0)
    return [Line(cleaner, label, np.array(epochs), mean, low, high, len(tables), teacher)] if epochs else []


def _by_epoch(record: Record, key: str) -> dict[int, float]:
    lines: list[dict[str, Any]] = [line for line in record.metrics if line.get(key) and line["phase"] != "final"]
    known = {line["epoch"]: [value for value in line[key] if value is not None] for line in lines}
    return {epoch: sum(values) / len(values) for epoch, values in known.items() if values}
