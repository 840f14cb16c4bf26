"""Finds copies of a picture that were saved again, resized or converted, by comparing tiny thumbnails (`looks`)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

NEAR = 1.5  # root mean square over a thumb's values, of 255
FLAT = 5.0  # a picture that varies less than this is nothing to recognise: one blank page is like another
AXES, NEIGHBOURS = 12, 8  # so many neighbours of each are looked at, however many copies there are
STRETCH = 100_000


def near_copies(thumbs: NDArray[np.uint8]) -> list[list[int]]:
    """Groups of rows of thumbs (N, D) that are near each other, or near a third one; rows in order, flat ones left out."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows = np.flatnonzero(thumbs.std(1) >= FLAT)
    if len(rows) < 2:
        return []
    kinds, kind_of = np.unique(thumbs[rows], axis=0, return_inverse=True)  # equal thumbs would crowd each other's neighbours
    pairs = np.concatenate(list(_pairs(kinds)))
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(kinds), len(kinds)))
    group_of = connected_components(graph, directed=False)[1][kind_of.reshape(-1)]
    order = np.argsort(group_of, kind="stable")
    groups = np.split(rows[order], np.flatnonzero(np.diff(group_of[order])) + 1)
    return [group.tolist() for group in groups if len(group) > 1]


def _pairs(thumbs: NDArray[np.uint8]) -> Iterator[NDArray[np.int64]]:
    """(P, 2), a stretch at a time. Along a few axes two rows are never farther apart than they are: nothing is missed there."""
    from scipy.spatial import cKDTree

    values = thumbs.astype(np.float32)
    values -= values.mean(0)
    turn = np.linalg.eigh(values.T @ values)[1][:, -AXES:]
    tree = cKDTree(values @ turn)
    reach = NEAR * thumbs.shape[1] ** 0.5
    for first in range(0, len(values), STRETCH):
        some = values[first : first + STRETCH]
        _, near = tree.query(some @ turn, k=NEIGHBOURS + 1, distance_upper_bound=reach * 1.001)
        one, place = np.nonzero(near < len(values))
        found = np.stack((one + first, near[one, place]), axis=1).astype(np.int64)
        found = found[found[:, 0] != found[:, 1]]
        apart = np.sqrt(((values[found[:, 0]] - values[found[:, 1]]) ** 2).sum(1))
        yield found[apart <= reach]
