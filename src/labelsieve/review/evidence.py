"""What a run kept of each sample beside its issues: likeliest classes, the score during training, nearest clean samples, the map.

From scores.npz, neighbours.npz and map.npz. Older runs lack parts of it: then these are empty.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labelsieve.data.npz import read_npz
from labelsieve.errors import ToolError, UsageError
from labelsieve.review.table import ReviewTable
from labelsieve.run_files import is_there

NONE = np.zeros((0, 0), np.int32)


@dataclass(frozen=True, eq=False)
class KeptEvidence:
    """`sample` (N,) is the sample of each row of the table, `place` (N,) the row of each sample."""

    sample: np.ndarray
    place: np.ndarray
    top: np.ndarray  # (N, T) classes by sample, likeliest first
    top_share: np.ndarray  # (N, T)
    epochs: np.ndarray  # (S,)
    history: np.ndarray  # (S, N) how well the label held its own, mean of both networks
    near_of: np.ndarray  # (M,) samples that have neighbours, rising
    near_given: np.ndarray  # (M, k) clean samples of the given class, nearest first, -1: none
    near_suggested: np.ndarray  # (M, k)
    near_alike: np.ndarray  # (M, k) samples of any label, nearest first; (0, 0) in older runs

    def likeliest(self, row: int) -> list[tuple[int, float]]:
        """(class, share) of the likeliest classes of a row."""
        if not self.top.size:
            return []
        sample = int(self.sample[row])
        return list(zip(self.top[sample].tolist(), self.top_share[sample].tolist()))

    def moved(self, row: int) -> list[tuple[int, float]]:
        """(epoch, how well the label held its own) over training."""
        if not self.history.size:
            return []
        return list(zip(self.epochs.tolist(), self.history[:, int(self.sample[row])].astype(float).tolist()))

    def neighbours(self, row: int) -> tuple[list[int], list[int], list[int]]:
        """Rows of the nearest clean samples of the given class, of the suggested one, and of any label."""
        sample = self.sample[row] if len(self.sample) else -1
        at = int(np.searchsorted(self.near_of, sample))
        if at >= len(self.near_of) or self.near_of[at] != sample:
            return [], [], []
        kept = (self.near_given, self.near_suggested, self.near_alike)
        given, suggested, alike = (self.place[near[at][near[at] >= 0]].tolist() if near.size else [] for near in kept)
        return given, suggested, alike


def arrays_of(file: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file; none where it does not exist."""
    return read_npz(file, of_run=True) if is_there(file) else {}


def read_evidence(folder: Path, table: ReviewTable, scores: dict[str, np.ndarray]) -> KeptEvidence:
    """`scores` are the arrays of scores.npz; a `ToolError` where they do not belong to the table."""
    count, near = len(table), arrays_of(folder / "neighbours.npz")
    sample = _samples(folder, scores.get("ids"), table)
    place = np.argsort(sample, kind="stable")
    top, share = scores.get("top_classes", NONE), scores.get("top_probs", NONE)
    if top.shape != share.shape or top.ndim != 2 or len(top) != count or not _within(top, len(table.classes)):
        top, share = NONE, NONE
    past = next((scores[name] for name in reversed(scores) if name.startswith("history_by_")), NONE)  # the opinion that counts
    epochs = scores.get("history_epochs", np.zeros(0, np.int64))
    if past.ndim != 3 or epochs.ndim != 1 or past.shape[0] != len(epochs) or past.shape[2] != count:
        past, epochs = np.zeros((0, 0, 0), np.float16), np.zeros(0, np.int64)
    history = np.clip(np.nan_to_num(past.mean(1, dtype=np.float32)), 0, 1) if past.size else NONE
    fits = all(name in near for name in ("of", "given", "suggested")) and _neighbours_fit(near, count)
    of, given, suggested = (near[name] for name in ("of", "given", "suggested")) if fits else (np.zeros(0, int), NONE, NONE)
    alike = near.get("alike", NONE) if fits else NONE
    if not (alike.ndim == 2 and len(alike) == len(of) and _within(alike, count, -1)):
        alike = NONE
    return KeptEvidence(sample, place, top, np.clip(np.nan_to_num(share), 0, 1), epochs, history, of, given, suggested, alike)


def _samples(folder: Path, ids: np.ndarray | None, table: ReviewTable) -> np.ndarray:
    """(N,) the sample of each row."""
    if ids is None:
        return np.arange(len(table))
    place = np.fromiter((table.row_of.get(name, -1) for name in ids.tolist()), np.int64, len(ids))
    if len(place) != len(table) or not np.array_equal(np.sort(place), np.arange(len(table))):
        raise ToolError(
            f"{folder}: issues and scores.npz are not of the same samples; put back the file that was changed, or repeat the run"
        )
    return np.argsort(place, kind="stable")


def _within(values: np.ndarray, count: int, least: int = 0) -> bool:
    return bool(values.dtype.kind in "iu" and (not values.size or (values.min() >= least and values.max() < count)))


def _neighbours_fit(near: dict[str, np.ndarray], count: int) -> bool:
    of, given, suggested = near["of"], near["given"], near["suggested"]
    shaped = of.ndim == 1 and given.ndim == suggested.ndim == 2 and len(of) == len(given) == len(suggested)
    return shaped and _within(of, count) and _within(given, count, -1) and _within(suggested, count, -1)


CORNER = r"(?:0(?:\.\d{1,4})?|1),(?:0(?:\.\d{1,4})?|1)"
AREA = re.compile(rf"{CORNER}(?:;{CORNER}){{2,99}}")
MOST = 100_000  # samples that are drawn: all issues, and a spread of the others
FULL = 65_535
EDGE = 1e-4  # a line along the edge has what lies there inside


def read_map(folder: Path, evidence: KeptEvidence) -> np.ndarray | None:
    """(N, 2) places in the unit square, by row of the table; None where the run has no map that fits."""
    at = arrays_of(folder / "map.npz").get("at")
    if at is None or at.shape != (len(evidence.sample), 2) or at.dtype.kind != "f" or not np.isfinite(at).all():
        return None
    return np.clip(at[evidence.sample], EDGE, 1 - EDGE).astype(np.float32)


def corners(area: str) -> np.ndarray:
    """(C, 2) of `x,y;x,y;...`, each from 0 to 1 with four decimals at most."""
    if AREA.fullmatch(area) is None:
        raise UsageError("an area is 3 to 100 corners x,y;x,y;... from 0 to 1, with four decimals at most")
    return np.array([corner.split(",") for corner in area.split(";")], np.float32)


def inside(at: np.ndarray, area: str) -> np.ndarray:
    """(N,) bool: which places (N, 2) lie in the area, by how often a ray from each crosses its edge."""
    found, edge = np.zeros(len(at), bool), corners(area)
    x, y = at.T
    for (x1, y1), (x2, y2) in zip(edge, np.roll(edge, -1, axis=0)):
        if y1 != y2:
            found ^= ((y1 > y) != (y2 > y)) & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return found


def drawn(table: ReviewTable) -> np.ndarray:
    """(M,) rows that the page draws, issues last so that they lie on top."""
    marked = table.is_issue | (table.own > 0)
    first, rest = np.flatnonzero(marked)[:MOST], np.flatnonzero(~marked)
    room = MOST - len(first)
    return np.concatenate((rest if len(rest) <= room else rest[np.linspace(0, len(rest) - 1, room).astype(int)], first))


def as_bytes(table: ReviewTable, at: np.ndarray) -> bytes:
    """How many, M; rows (M,) uint32; x and y (M, 2) uint16; given classes (M,) uint16; and uint8 (M,): 1 for an issue of the
    label, 2 for one of the sample. All little-endian."""
    rows = drawn(table)
    flags = table.is_issue[rows] + 2 * (table.own[rows] > 0)
    parts = (
        np.array([len(rows)], "<u4"),
        rows.astype("<u4"),
        np.rint(at[rows] * FULL).astype("<u2"),
        table.given[rows].astype("<u2"),
        flags.astype("u1"),
    )
    return b"".join(part.tobytes() for part in parts)
