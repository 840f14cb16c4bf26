"""Reads a noise matrix from a K x K file and checks it; row k says how class k is labelled."""

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.draws import Draws, IntArray
from labelsieve.data.noise_record import read_json
from labelsieve.data.npz import read_npy
from labelsieve.doors import Damage, read_text, reading
from labelsieve.errors import ToolError

Matrix = NDArray[np.float64]
LARGEST = 2**30  # bytes


def read_matrix(path: Path, classes: int) -> Matrix:
    """The row-stochastic matrix (K, K) in an .npy, .csv or .json file."""
    readers = {".npy": read_npy, ".csv": _read_csv, ".json": read_json}
    if path.suffix not in readers:
        raise ToolError(f'{path}: a noise matrix is an .npy, .csv or .json file, not "{path.suffix}"')
    with reading(path, f"write {classes} rows of {classes} numbers"):
        matrix = np.array(readers[path.suffix](path), np.float64)
    if matrix.shape != (classes, classes):
        raise ToolError(f"{path}: the shape is {matrix.shape}; {classes} classes need ({classes}, {classes})")
    for k, row in enumerate(matrix):
        if not (np.isfinite(row).all() and (row >= 0).all()):
            raise ToolError(f"{path}: row {k} has a negative or infinite entry or NaN; chances are 0 to 1")
        if abs(row.sum() - 1) > 1e-6:
            raise ToolError(f"{path}: row {k} sums to {row.sum():.7g}; each row must sum to 1")
    return matrix


def sample_rows(chances: Matrix, labels: IntArray, draws: Draws) -> IntArray:
    """For each label (N,) a new one, drawn from its row of `chances` (K, K)."""
    drawn = draws.uniform(len(labels))
    edges = np.cumsum(chances, axis=1)
    edges /= edges[:, -1:]  # ends at exactly 1, so that no draw falls past the last class
    noisy = np.empty_like(labels)
    for k in range(len(chances)):
        rows = labels == k
        noisy[rows] = np.searchsorted(edges[k], drawn[rows], side="right")
    return noisy


def _read_csv(path: Path) -> Matrix:
    text = read_text(path, LARGEST, follow=True)
    if not text.strip():
        raise Damage("it is empty")
    return np.loadtxt(io.StringIO(text), delimiter=",", ndmin=2)
