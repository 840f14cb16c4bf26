"""Opens a run folder for review and checks all that is needed of it. Nothing in the folder is ever run."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from labelsieve.config.moved import moved_to
from labelsieve.decisions.log import DecisionLog
from labelsieve.review.desk import Desk
from labelsieve.review.evidence import KeptEvidence, arrays_of, read_evidence, read_map
from labelsieve.review.pictures import Pictures
from labelsieve.review.table import ReviewTable, read_table
from labelsieve.runs.folder import RunFolder, known_files

LIKELY = 9


@dataclass(frozen=True, eq=False)
class Review:
    """A run that is open for review."""

    folder: Path
    name: str
    table: ReviewTable
    evidence: KeptEvidence
    desk: Desk
    pictures: Pictures

    def usual(self, given: int) -> list[int]:
        """Which classes are suggested instead of this one, the most frequent first."""
        if given not in self._usual:
            self._usual[given] = self.pairs[self.pairs[:, 0] == given, 1][:LIKELY].tolist()
        return self._usual[given]

    @cached_property
    def _usual(self) -> dict[int, list[int]]:
        return {}

    @cached_property
    def pairs(self) -> np.ndarray:
        """(P, 3): given, suggested, how many issues; every pair that occurs, the most frequent first."""
        table, classes = self.table, len(self.table.classes)
        both = table.given[table.is_issue].astype(np.int64) * classes + table.suggested[table.is_issue]
        found, counts = np.unique(both, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return np.stack([found[order] // classes, found[order] % classes, counts[order]], 1)


def open_review(path: Path, source: str | None = None) -> Review:
    """`source` says where the data are on this machine, if not where the run began."""
    folder = RunFolder.open(path)
    config = folder.config_as_written()
    if source is not None:
        config = moved_to(config, source)
    scores = arrays_of(folder.scores)
    classes = tuple(str(name) for name in scores["classes"].tolist()) if "classes" in scores else None
    table = read_table(path, classes)
    evidence = read_evidence(path, table, scores)
    table = replace(table, at=read_map(path, evidence))
    desk = Desk(table, DecisionLog(path))
    desk.catch_up()
    pictures = Pictures(config, table, partial(known_files, folder) if source is None else dict)
    return Review(path, Path(config.data.source).name or config.data.source, table, evidence, desk, pictures)
