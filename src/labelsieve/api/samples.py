"""Arrays as scikit-learn's users hold them go in: pictures or vectors; the rows of a run come out, and batches to predict on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve.api.labels import BadInput
from labelsieve.data.embeddings import vectors
from labelsieve.data.noisy_data import Collection, NoisyData, channel_statistics
from labelsieve.data.pixels import as_bytes, brightest, channels_first
from labelsieve.errors import ToolError
from labelsieve.runs.assemble import Rows


@dataclass(frozen=True)
class Form:
    """What the samples of `fit` looked like, so that those of `predict` are taken alike: axes, and pixels' range."""

    shape: tuple[int, ...]  # of one sample, as it was given
    top: float  # 1 or 255: what is white; 0 for vectors

    def tensor(self, samples: NDArray[Any]) -> Tensor:
        """uint8 (N, C, H, W) of pictures, float32 (N, D) of vectors; `BadInput` where they differ from what was fitted."""
        if samples.shape[1:] != self.shape:
            raise BadInput(f"X has samples of shape {samples.shape[1:]}, but this classifier was fitted on {self.shape}")
        try:
            if len(self.shape) == 1:
                return vectors(samples, "X")
            found = brightest(samples, "X")
            if samples.dtype.kind == "f" and found > self.top:
                raise BadInput(f"X has the value {found:g}, but pictures were fitted with values from 0 to {self.top:g}")
            return as_bytes(np.array(channels_first(samples, "X")), self.top, "X")
        except ToolError as error:
            raise BadInput(str(error)) from None


def form_of(samples: NDArray[Any]) -> Form:
    """Two axes are vectors (N, D), three or four are pictures. Floats up to 1 are pictures from 0 to 1."""
    if samples.ndim == 2:
        return Form(samples.shape[1:], 0.0)
    if samples.ndim not in (3, 4):
        raise BadInput(f"X has the shape {samples.shape}; give vectors (N, D), or pictures (N, H, W), (N, H, W, C), (N, C, H, W)")
    white = samples.dtype.kind == "f" and samples.size > 0 and float(np.nanmax(samples)) <= 1
    return Form(samples.shape[1:], 1.0 if white else 255.0)


def rows_of(images: Tensor, codes: NDArray[np.int64], names: Sequence[str], ids: Sequence[str], mirror: bool) -> Rows:
    """The rows of a run that is told its data instead of where they are; nothing is known to be true."""
    data = NoisyData(images, torch.from_numpy(codes), tuple(ids), tuple(names))
    if images.ndim == 2:
        wide = images.double()
        spread = wide.std(0, correction=0)
        mean = tuple(wide.mean(0).tolist())
        std = tuple(torch.where(spread > 0, spread, torch.ones_like(spread)).tolist())
    else:
        mean, std = channel_statistics(images)
    return Rows(data, None, None, Collection("memory", data, None, None, mean, std, mirror and images.ndim == 4), None)
