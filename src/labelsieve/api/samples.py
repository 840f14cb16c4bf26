"""Turns samples as scikit-learn users hold them (arrays, lists of pictures, vectors) into rows, batches, or features."""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from labelsieve.api.labels import BadInput, plain
from labelsieve.backbones.backbone import backbone_for, plain_name
from labelsieve.backbones.embedding import Embedder, placed
from labelsieve.backbones.hub import own_weights
from labelsieve.backbones.pictures import ArrayPictures, FilePictures, LoosePictures, Pictures
from labelsieve.data.arrays import WHITE, as_bytes, brightest, channels_first, is_wide, white_of
from labelsieve.data.embeddings import vectors
from labelsieve.data.noisy_data import MEMORY, Collection, NoisyData, channel_statistics, vector_statistics
from labelsieve.data.pictures.cache import default_cache_dir
from labelsieve.data.pictures.decode import SUFFIXES, white_for
from labelsieve.data.pictures.origins import Files
from labelsieve.engine.device import choose_device
from labelsieve.errors import ToolError
from labelsieve.runs.features import at_hand
from labelsieve.runs.rows import Rows
from labelsieve.terminal.console import console

AS_THEY_ARE = ("1", "L", "RGB", "RGBA", "I;16", "I", "F")  # modes of Pillow's whose numbers are brightness; a palette's are not


@dataclass(frozen=True)
class Form:
    """What the samples of `fit` looked like, so that those of `predict` are taken alike: axes, and pixels' range."""

    shape: tuple[int, ...]  # of one sample, as it was given
    top: float  # what is white: 1, 255, or in 16 bits as much as was used; 0 for vectors

    def tensor(self, samples: NDArray[Any]) -> Tensor:
        """uint8 (N, C, H, W) of pictures, float32 (N, D) of vectors; `BadInput` where they differ from what was fitted."""
        self.check(samples.shape)
        if samples.dtype.kind == "b":
            samples = samples.astype(np.uint8) * np.uint8(min(self.top, 255) or 1)
        try:
            return vectors(samples, "X") if len(self.shape) == 1 else self._bytes(samples)
        except ToolError as error:
            raise BadInput(str(error)) from None

    def check(self, shape: tuple[int, ...]) -> None:
        """`BadInput` where samples (N, ...) of this shape are others than those of `fit`."""
        if shape[1:] != self.shape:
            raise BadInput(f"X has samples of shape {shape[1:]}, but this classifier was fitted on {self.shape}")

    def _bytes(self, samples: NDArray[Any]) -> Tensor:
        found = brightest(samples, "X")
        floats = samples.dtype.kind == "f"
        if (floats and found > max(self.top, WHITE)) or (is_wide(samples) and found > max(self.top, 255)):
            raise BadInput(f"X has the value {found:g}, but pictures were fitted with values from 0 to {self.top:g}")
        if floats and self.top > 1 and 0 < found <= WHITE and bool((samples % 1 > 0).any()):
            warnings.warn(
                f"X has no value above {found:g}, but pictures were fitted with values from 0 to 255, by which these are black; "
                "multiply them by 255",
                stacklevel=4,
            )
        return as_bytes(np.array(channels_first(samples, "X")), self.top if floats else found, "X", max(int(self.top), 255))


def form_of(samples: NDArray[Any]) -> Form:
    """Two axes are vectors (N, D), three or four are pictures. Floats up to 1 are pictures from 0 to 1; truth values 0 or 255."""
    if samples.ndim == 2:
        _warn_of_lost(samples)
        return Form(samples.shape[1:], 0.0)
    if samples.ndim not in (3, 4):
        raise BadInput(f"X has the shape {samples.shape}; give vectors (N, D), or pictures (N, H, W), (N, H, W, C), (N, C, H, W)")
    if is_wide(samples) and samples.size:
        return Form(samples.shape[1:], float(white_for(float(samples.max()))))
    if samples.dtype.kind != "f" or samples.size == 0:
        return Form(samples.shape[1:], 255.0)
    try:
        return Form(samples.shape[1:], white_of(float(np.nanmax(samples)), "X"))
    except ToolError as error:
        raise BadInput(str(error)) from None


def _warn_of_lost(samples: NDArray[Any]) -> None:
    """Networks see float32: say so where that leaves next to nothing of a column."""
    if samples.dtype.kind not in "fiu" or samples.dtype.itemsize <= 4:
        return
    low, high = samples.min(0).astype(np.float64), samples.max(0).astype(np.float64)
    with np.errstate(over="ignore"):
        span = high - low
    lost = np.flatnonzero((span > 0) & (span < np.maximum(np.abs(low), np.abs(high)) * 2.0**-20))
    if len(lost):
        warnings.warn(
            f"X: column {lost[0]} runs from {low[lost[0]]:.12g} to {high[lost[0]]:.12g}, which float32 can hardly tell apart "
            f"({len(lost)} such columns); subtract the mean first, as StandardScaler does",
            stacklevel=4,
        )


def rows_of(images: Tensor, codes: NDArray[np.int64], names: Sequence[str], ids: Sequence[str], mirror: bool) -> Rows:
    """The rows of a run that is told its data instead of where they are; nothing is known to be true."""
    data = NoisyData(images, torch.from_numpy(codes), tuple(ids), tuple(names))
    mean, std = vector_statistics(images) if images.ndim == 2 else channel_statistics(images)
    return Rows(data, None, None, Collection(MEMORY, data, None, None, mean, std, mirror and images.ndim == 4), None)


def stacked(samples: Any, name: str) -> Any:
    """One array of a list, tuple or series of pictures, arrays or tensors, all of one shape; anything else stays as it is."""
    if isinstance(samples, (Dataset, DataLoader)):
        raise BadInput(
            f"{name} is a {type(samples).__name__}; give samples and labels apart, of a data set of pairs: "
            "X = np.stack([np.asarray(x) for x, _ in data]), y = [int(label) for _, label in data]"
        )
    samples = plain(samples)
    if not _is_row(samples) or len(samples) == 0:
        return samples
    rows = list(samples)
    if not (_is_picture(rows[0]) or len(getattr(rows[0], "shape", ()))):
        return samples
    arrays = [_pixels(row) for row in rows]
    odd = next((number for number, array in enumerate(arrays) if array.shape != arrays[0].shape), None)
    if odd is not None:
        raise BadInput(
            f"{name}: sample {odd} has the shape {arrays[odd].shape}, sample 0 {arrays[0].shape}; make all alike, pictures by "
            'picture.convert("RGB").resize((64, 64))'
        )
    return np.stack(arrays)


def _is_row(samples: Any) -> bool:
    """Something with one axis of objects, and no axes of its own."""
    if hasattr(samples, "shape"):
        return len(samples.shape) == 1 and getattr(samples.dtype, "kind", "") == "O"
    return isinstance(samples, Sequence) and not isinstance(samples, str)


def _is_picture(sample: Any) -> bool:
    return hasattr(sample, "convert") and hasattr(sample, "getbands")


def _pixels(sample: Any) -> NDArray[Any]:
    if _is_picture(sample) and sample.mode not in AS_THEY_ARE:
        sample = sample.convert("RGB")
    return np.asarray(plain(sample))


LOAD_PICTURES = (
    "names of files are read by the command `labelsieve train`, from a folder with one for each class or a table of paths and "
    "labels; here, give the pictures themselves, all of one size: "
    'np.stack([np.asarray(Image.open(path).convert("RGB").resize((64, 64))) for path in paths])'
)
MAKE_VECTORS = (
    "names of files are not read here; give the vectors (N, D) that a network makes of the pictures, or let "
    "`labelsieve train` read the files and learn from them"
)
NAMED = 3  # pictures that cannot be read, of which each is named


def check_no_names(samples: Any, name: str, remedy: str) -> None:
    """`BadInput` where samples are paths: one, a row of them, or a table's only column."""
    found, depth = samples, 0
    while not isinstance(found, (str, PathLike)):
        try:
            found, depth = getattr(found, "iloc", found)[0], depth + 1
        except (TypeError, LookupError, ValueError, NotImplementedError):  # nothing in it, or no such thing as a first one
            return
        if depth > 2:
            return
    # Text in a column of a table may as well be a feature that was not encoded, of which scikit-learn tells.
    if depth < 2 or isinstance(found, PathLike) or Path(found).suffix.lower() in SUFFIXES:
        raise BadInput(f"{name} holds text ({str(found)[:80]!r}); {remedy}")


@dataclass(frozen=True)
class Seen:
    """Features (N, D), zeros in rows that cannot be read; these, {row: reason}; and the paths, where pictures came by them."""

    features: NDArray[np.float32]
    unread: dict[int, str]
    paths: list[str] | None

    def words(self) -> str:
        """What is said of those that cannot be read."""
        first = [f"{row if self.paths is None else self.paths[row]} ({why})" for row, why in list(self.unread.items())[:NAMED]]
        more = f" and {len(self.unread) - NAMED:,} more" if len(self.unread) > NAMED else ""
        return f"{len(self.unread):,} of {len(self.features):,} pictures cannot be read: {', '.join(first)}{more}"


def seen_through(
    backbone: str | None,
    weights: str | PathLike[str] | None,
    pictures: Any,
    name: str,
    device: str | torch.device = "cpu",
    offline: bool = False,
) -> Seen:
    """The pictures through timm's network `backbone`; None: one whose weights are on this machine. What is downloaded is printed.

    Features are kept in the user's cache folder, as the command line keeps them.
    """
    try:
        embedder = _embedder(backbone, weights, device, offline)
        held, problems, paths = _held(pictures, name)
        if isinstance(held, FilePictures):
            whole = np.zeros((len(held.origin) + len(problems), embedder.width), np.float32)
            rows = [row for row in range(len(whole)) if row not in problems]
            taken = embedder.of(held)
            whole[rows] = taken.values
            unread = problems | {rows[row]: why for row, why in taken.reasons.items()}
            return Seen(whole, dict(sorted(unread.items())), paths)
        return Seen(embedder.of(held).values, {}, None)
    except BadInput:
        raise
    except ToolError as error:
        raise BadInput(str(error)) from None


def _embedder(backbone: str | None, weights: str | PathLike[str] | None, device: str | torch.device, offline: bool) -> Embedder:
    found = at_hand({"features.backbone": backbone, "features.weights": weights})
    if found is None:
        raise BadInput(
            "no weights of a pretrained network are on this machine; name one, which is downloaded once: "
            'backbone="tf_efficientnet_lite0"'
        )
    name = plain_name(found.name)
    place = own_weights(name).fetched(console.print, offline) if found.weights is None else Path(found.weights).expanduser()
    chosen = choose_device(str(device))
    return Embedder(placed(backbone_for(name, place), chosen), chosen, default_cache_dir())


def _held(pictures: Any, name: str) -> tuple[Pictures, dict[int, str], list[str] | None]:
    """Something to look at; of paths, those that lead to no file {row: reason}, and all of them."""
    if isinstance(pictures, (str, PathLike)):
        raise BadInput(f"{name}={str(pictures)!r} is one path; give a list of the pictures' paths, one for each label")
    rows = list(pictures) if _is_list(pictures) else None
    if rows and all(isinstance(row, (str, PathLike)) for row in rows):
        paths = [str(Path(row).expanduser().absolute()) for row in rows]
        files, problems = Files(Path("/"), paths, outside=True).examined()
        keep = np.array([row for row in range(len(paths)) if row not in problems], np.int64)
        return FilePictures(files.take(keep)), problems, [str(row) for row in rows]
    if rows and all(hasattr(row, "getbands") for row in rows):
        return LoosePictures(rows), {}, None
    samples = np.asarray(stacked(plain(pictures), name))
    if samples.ndim not in (3, 4):
        raise BadInput(
            f"{name} has the shape {samples.shape}; give paths, Pillow's pictures, or arrays (N, H, W), (N, H, W, C) or "
            "(N, C, H, W)"
        )
    return ArrayPictures(form_of(samples).tensor(samples), name), {}, None


def _is_list(pictures: Any) -> bool:
    """A list, or a series or array of objects or text, one for each picture."""
    with suppress(AttributeError):
        return len(pictures.shape) == 1
    return isinstance(pictures, Sequence)
