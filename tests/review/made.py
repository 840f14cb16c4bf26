"""A run folder made by hand: what `review` reads of it, and nothing that needs training."""

from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.config.schema import Config, DataConfig, to_yaml
from labelsieve.issues.table import COLUMNS, read_issues, write_parquet
from labelsieve.texts import as_csv

CLASSES = ("cat", "dog", "<b>cow</b>", "hen & egg", "ox")


def made_run(
    path: Path, count: int = 40, classes: tuple[str, ...] = CLASSES, source: str = "embeddings:/nowhere.npz", parquet: bool = True
) -> Path:
    """Half of the rows are issues; scores rise from 0 to 1, ids are s000, s001, ... Evidence and neighbours lie beside."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.yaml").write_text(to_yaml(Config(data=DataConfig(source=source))), encoding="utf-8")
    (path / "issues.csv").write_text(as_csv(list(COLUMNS), rows(count, classes)), encoding="utf-8", newline="")
    if parquet:
        write_parquet(read_issues(path / "issues.csv"), path / "issues.parquet")
    write_arrays(path, count, classes)
    return path


def given_of(row: int, classes: int) -> int:
    return row % classes


def suggested_of(row: int, classes: int, count: int) -> int:
    return (row + 1) % classes if row < count // 2 else row % classes


def rows(count: int, classes: tuple[str, ...]) -> list[list[str]]:
    found = []
    for row in range(count):
        given, suggested = classes[given_of(row, len(classes))], classes[suggested_of(row, len(classes), count)]
        issue = row < count // 2
        score = row / count if count > 1 else 0.0
        facts: dict[str, Any] = dict.fromkeys(COLUMNS, "") | {
            "id": f"s{row:03d}",
            "path": f"{given}/{row}.png",
            "given_label": given,
            "suggested_label": suggested,
            "suggested_confidence": "0.9",
            "label_score": f"{score:.6f}",
            "is_label_issue": str(issue),
            "action": "relabel" if issue else "keep",
            "reason": f'Looks like "{suggested}".',
            "kind": "mislabelled" if issue else "fine",
            "networks_agree": "True",
            "predicted_label": suggested,
        }
        found.append([str(facts[name]) for name in COLUMNS])
    return found


def write_arrays(path: Path, count: int, classes: tuple[str, ...]) -> None:
    """scores.npz by sample, which is the table upside down, and neighbours.npz of the issues."""
    ids = [f"s{row:03d}" for row in range(count)][::-1]
    suggested = np.array([suggested_of(row, len(classes), count) for row in range(count)])[::-1]
    top = (suggested[:, None] + np.arange(min(3, len(classes)))) % len(classes)
    history = np.linspace(0.9, 0.1, 4)[:, None, None] * np.ones((4, 2, count))
    np.savez(
        path / "scores.npz",
        ids=np.array(ids),
        classes=np.array(classes),
        given=np.array([given_of(row, len(classes)) for row in range(count)])[::-1],
        top_classes=top.astype(np.int32),
        top_probs=np.tile(np.array([0.9, 0.06, 0.04], np.float32)[: top.shape[1]], (count, 1)),
        history_epochs=np.array([2, 3, 4, 5]),
        history_by_prototype=history.astype(np.float16),
    )
    of = np.arange(count - count // 2, count)
    near = np.full((len(of), 2), -1, np.int32)
    near[:, 0] = 0  # the last row of the table
    np.savez(path / "neighbours.npz", of=of, given=near, suggested=near)
