"""Stacks samples that come one by one (Pillow images, arrays, tensors) into one array (N, ...)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from labelsieve.api.labels import BadInput, plain

AS_THEY_ARE = ("1", "L", "RGB", "RGBA", "I;16", "I", "F")  # modes of Pillow's whose numbers are brightness; a palette's are not


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
