"""What a picture looks like at a glance: a thumbnail, by which copies are found, and a few numbers that tell a poor picture.

A look is LOOK bytes: the thumb, 8 x 8 x 3, then five numbers of 16 bits. Whether a picture is dark or blurred is told by the
other pictures of its set: X-rays are dark, and photos of small objects are soft. Copies that were saved again, resized or
converted are found by comparing thumbs.
"""

import base64
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from labelsieve.data.pictures.decode import TURNS, eight_bit, orientation

if TYPE_CHECKING:
    from torch import Tensor
SIDE = 8
THUMB = SIDE * SIDE * 3
GLANCE = 64  # pixels a side from which the numbers are made, at most
DRAFT = (GLANCE, GLANCE)  # what a JPEG must at least be decoded to, for its look to be that of the whole picture
NUMBERS = 5  # low and high end of the grey values, the widest range of a channel, sharpness, fineness (`numbers`)
LOOK = THUMB + 2 * NUMBERS
GREY = np.array([0.299, 0.587, 0.114], np.float32)
CHUNK = 1024

BLANK, DARK, BRIGHT, BLURRED = "blank", "dark", "bright", "blurred"
KINDS = (BLANK, DARK, BRIGHT, BLURRED)
LEAST = 30  # pictures, or nothing can be said of one by the others
# Measured on blurred, blank and dark copies among photos of clothes, of pets and CIFAR-10 (RESULTS.md).
RANGE = 10.0  # grey levels that a blank picture spans, at most; and
PART = 0.25  # at most this part of what pictures of the set usually span
DARKEST, BRIGHTEST = 60.0, 200.0  # grey levels
FAR = 3.5  # robust deviations from the set's median
EDGE = 2.0  # what has few fine edges must have weak ones, too: so many robust deviations below the median
SOFT = 8.5  # weak edges alone are enough from here on; above, there may be just little to see
SMALLEST = 16  # pixels a side of which edges say something


def look(picture: Image.Image) -> bytes:
    """Of a loaded picture, turned as it is seen."""
    turned, plain = orientation(picture), eight_bit(picture, "RGB")
    if turned in TURNS:
        plain = plain.transpose(TURNS[turned])
    thumb = plain.resize((SIDE, SIDE), Image.Resampling.BILINEAR).tobytes()
    width, height = (min(side, GLANCE) for side in plain.size)
    small = np.asarray(plain.resize((width, height), Image.Resampling.BILINEAR))
    return thumb + numbers(small[None].astype(np.float32)).tobytes()


def as_text(found: bytes) -> str:
    """For an answer in JSON."""
    return base64.b64encode(found).decode("ascii")


def of_texts(texts: Iterable[str]) -> NDArray[np.uint8]:
    """(N, LOOK)."""
    return np.frombuffer(b"".join(map(base64.b64decode, texts)), np.uint8).reshape(-1, LOOK)


def of_arrays(images: "NDArray[np.uint8] | Tensor") -> NDArray[np.uint8]:
    """The same of uint8 (N, C, H, W); channels other than one or three are averaged."""
    import torch  # where files are decoded there is none

    parts = [_of_some(torch.as_tensor(images[first : first + CHUNK])) for first in range(0, len(images), CHUNK)]
    return np.concatenate(parts) if parts else np.zeros((0, LOOK), np.uint8)


def _of_some(images: "Tensor") -> NDArray[np.uint8]:
    from torch.nn.functional import interpolate

    pixels = images.float()
    pixels = pixels if pixels.shape[1] == 3 else pixels.mean(1, keepdim=True).expand(-1, 3, -1, -1)

    def scaled(height: int, width: int) -> NDArray[np.float32]:
        found = interpolate(pixels, (height, width), mode="bilinear", antialias=True).clamp(0, 255)
        return np.asarray(found.permute(0, 2, 3, 1).cpu().numpy(), np.float32)

    thumbs = scaled(SIDE, SIDE).round().astype(np.uint8).reshape(len(pixels), -1)
    small = scaled(*(min(side, GLANCE) for side in pixels.shape[2:]))
    return np.concatenate((thumbs, numbers(small).view(np.uint8).reshape(len(pixels), -1)), 1)


def unknown(count: int) -> NDArray[np.uint8]:
    """Looks (N, LOOK) of pictures that nobody has looked at: flat thumbs, and numbers that are none."""
    numbers = np.full((count, NUMBERS), np.nan, np.float16)
    return np.concatenate((np.zeros((count, THUMB), np.uint8), numbers.view(np.uint8).reshape(count, -1)), 1)


def thumbs(looks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(N, THUMB)."""
    return looks[:, :THUMB]


def numbers(pixels: NDArray[np.float32]) -> NDArray[np.float16]:
    """(M, NUMBERS) of pixels (M, H, W, 3), 0..255.

    Sharpness is the log of the strongest edges (99th percentile of the Laplacian); fineness compares these with the edges at
    half the size. Blur takes away fine edges first, whatever a picture shows.
    """
    count, grey = len(pixels), pixels @ GREY
    some = pixels[:, ::2, ::2] if min(pixels.shape[1:3]) >= GLANCE // 2 else pixels
    lows, highs = (_level(some.reshape(count, -1, 3), share) for share in (0.02, 0.98))
    plain = (some @ GREY).reshape(count, -1, 1)
    fine, coarse = _edges(grey), _edges(_halved(grey))  # both known or, below SMALLEST, not both
    return np.stack(
        (
            _level(plain, 0.02)[:, 0],
            _level(plain, 0.98)[:, 0],
            (highs - lows).max(1),
            np.log(fine + 1),
            np.log((fine + 1) / (coarse + 2)),
        ),
        axis=1,
    ).astype(np.float16)


def _level(values: NDArray[np.float32], share: float) -> NDArray[np.float32]:
    """(M, C): the value below which that share of the pixels (M, P, C) lies."""
    place = round(share * (values.shape[1] - 1))
    found: NDArray[np.float32] = np.partition(values, place, axis=1)[:, place]
    return found


def _halved(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    height, width = (side // 2 for side in grey.shape[1:])
    return grey[:, : 2 * height, : 2 * width].reshape(-1, height, 2, width, 2).mean((2, 4))


def _edges(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    """(M,) the 99th percentile of the Laplacian's size; NaN of pictures that are too small for it."""
    if min(grey.shape[1:]) < SMALLEST // 2:
        return np.full(len(grey), np.nan, np.float32)
    inside = 4 * grey[:, 1:-1, 1:-1] - grey[:, :-2, 1:-1] - grey[:, 2:, 1:-1] - grey[:, 1:-1, :-2] - grey[:, 1:-1, 2:]
    return _level(np.abs(inside).reshape(len(grey), -1, 1), 0.99)[:, 0]


def poor(looks: NDArray[np.uint8]) -> NDArray[np.str_]:
    """(N,) of KINDS, or "" where nothing is wrong with a picture, or nothing is known of it."""
    values = np.ascontiguousarray(looks[:, THUMB:]).view(np.float16).astype(np.float32)
    kinds = np.full(len(values), "", f"<U{max(map(len, KINDS))}")
    known = np.asarray(np.isfinite(values[:, :3]).all(axis=1))
    if known.sum() < LEAST:
        return kinds
    low, high, span, sharp, fine = values.T
    blank = (span <= RANGE) & (span <= PART * np.median(span[known]))
    dark = (high < DARKEST) & (_off(high, known, 10.0) < -FAR)
    bright = (low > BRIGHTEST) & (_off(low, known, 10.0) > FAR)
    seen: NDArray[np.bool_] = known & np.isfinite(sharp) & np.isfinite(fine) & ~blank
    weak = _off(sharp, seen, 0.1)
    blurred = seen & (((_off(fine, seen, 0.05) < -FAR) & (weak < -EDGE)) | (weak < -SOFT))
    for kind, where in ((BLURRED, blurred), (BRIGHT, bright), (DARK, dark), (BLANK, blank)):  # the last one counts
        kinds[known & where] = kind
    return kinds


def _off(values: NDArray[np.float32], known: NDArray[np.bool_], least: float) -> NDArray[np.float32]:
    """How far values (N,) are from the median of those that are known, in robust deviations of `least` or more."""
    if not known.any():
        return np.zeros(len(values), np.float32)
    middle = np.median(values[known])
    spread = 1.4826 * np.median(np.abs(values[known] - middle))
    return np.asarray(np.nan_to_num((values - middle) / max(float(spread), least)), np.float32)


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
