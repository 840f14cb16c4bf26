"""The map of a run's samples, from map.npz: which rows lie in an area that a reviewer drew, and what the page draws."""

import re
from pathlib import Path

import numpy as np

from labelsieve.errors import UsageError
from labelsieve.review.evidence import Evidence, arrays_of
from labelsieve.review.table import IssueTable

CORNER = r"(?:0(?:\.\d{1,4})?|1),(?:0(?:\.\d{1,4})?|1)"
AREA = re.compile(rf"{CORNER}(?:;{CORNER}){{2,99}}")
MOST = 100_000  # samples that are drawn: all issues, and a spread of the others
FULL = 65_535
EDGE = 1e-4  # a line along the edge has what lies there inside


def read_map(folder: Path, evidence: Evidence) -> np.ndarray | None:
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


def drawn(table: IssueTable) -> np.ndarray:
    """(M,) rows that the page draws, issues last so that they lie on top."""
    marked = table.is_issue | (table.own > 0)
    first, rest = np.flatnonzero(marked)[:MOST], np.flatnonzero(~marked)
    room = MOST - len(first)
    return np.concatenate((rest if len(rest) <= room else rest[np.linspace(0, len(rest) - 1, room).astype(int)], first))


def as_bytes(table: IssueTable, at: np.ndarray) -> bytes:
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
