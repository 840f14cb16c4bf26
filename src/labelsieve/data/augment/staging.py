"""How a plan made on the host meets pictures on a device: spans of rows to bound the memory, one-way copies.

Nothing here waits for the device, and nothing ever comes back from it.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

# Pixel values that an operation works on at a time. A host is fastest when they stay in its cache, a GPU
# when there are many.
HOST_VALUES = 1 << 20
DEVICE_VALUES = 1 << 25


def spans(start: int, stop: int, images: Tensor, batches: int = 1) -> Iterator[slice]:
    """Cuts rows start..stop of pictures like `images` into slices of so many `batches` of pixel values."""
    budget = HOST_VALUES if images.device.type == "cpu" else DEVICE_VALUES
    step = max(1, batches * budget // max(1, images.shape[1:].numel()))
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))


def upload(values: Tensor, device: torch.device) -> Tensor:
    """The host tensor on `device`. Pinned first, because only from pinned memory does a copy not wait."""
    if device.type == "cpu":
        return values
    if device.type == "cuda":
        values = values.pin_memory()
    return values.to(device, non_blocking=True)
