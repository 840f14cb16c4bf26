"""Run folders made by hand, without training: what a run would have said of each sample goes in, a folder comes out."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labelsieve.config.schema import Config, DataConfig
from labelsieve.data.pictures.options import PictureSettings
from labelsieve.issues.policy import Correction
from labelsieve.issues.rules import DROP, RELABEL
from labelsieve.issues.table import LabelIssues, rank, read_issues
from labelsieve.results.outcome import write_issues
from labelsieve.runs.folder import RunFolder

SURE = 0.94  # of every suggestion


def made_run(
    path: Path,
    source: str,
    ids: Sequence[str],
    given: Sequence[str],
    wrong: dict[str, str],
    strange: Sequence[str] = (),
    pictures: PictureSettings | None = None,
) -> LabelIssues:
    """`wrong` samples are suggested another class, surely; `strange` ones look like none; all others are fine."""
    classes = sorted({*given, *wrong.values()})
    number = {name: k for k, name in enumerate(classes)}
    labels = np.array([number[label] for label in given])
    suggested = np.array([number[wrong.get(name, label)] for name, label in zip(ids, given)])
    probs = np.full((len(ids), len(classes)), (1 - SURE) / (len(classes) - 1))
    probs[np.arange(len(ids)), suggested] = SURE
    best = np.full(len(ids), 5.0)
    odd = np.array([name in strange for name in ids], bool)
    probs[odd] = 1 / len(classes)
    best[odd] = -5.0
    score = np.where((labels != suggested) | odd, 0.02, 0.97)
    chances = np.stack([score, score])
    evidence = {"similarity_best": best, "loss": 1 - score}
    issues = rank(ids, classes, labels, probs, chances, 0.5, evidence=evidence)
    folder = RunFolder.create(path, Config(data=DataConfig(source=source), pictures=pictures or PictureSettings()))
    arrays = {
        "ids": np.array(ids),
        "given": labels,
        "classes": np.array(classes),
        "loss": np.stack([1 - score] * 2),
        "by_loss": chances,
        "by_prototype": chances,
        "suggested": np.stack([probs.argmax(1)] * 2),
    }
    folder.write_arrays(folder.scores, arrays)
    write_issues(folder, issues)
    return issues


def as_advised(run: Path) -> dict[str, Correction]:
    """Decisions that say of every label what the column `action` says."""
    columns = read_issues(run / "issues.csv")
    rows = zip(*(columns[name] for name in ("id", "action", "reason")))
    return {name: Correction(action, None, why) for name, action, why in rows if action in (RELABEL, DROP)}


def files_in(root: Path) -> dict[str, bytes]:
    """Every file below `root` by its path from there."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
