"""Weak views: uint8 pictures (M, C, H, W), shifted and perhaps mirrored.

A shift is a crop of the picture padded with zeros, as in every CIFAR recipe; or, with a `side`, a smaller crop of the
picture itself, as for photographs: (M, C, side, side).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad as pad_zeros

from labelsieve.errors import UsageError

# Pixel values that an operation works on at a time. A host is fastest when they stay in its cache, a GPU
# when there are many.
HOST_VALUES = 1 << 20
DEVICE_VALUES = 1 << 25
Shape = tuple[int, int, int]
Which = slice | Tensor


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


@dataclass(frozen=True)
class WeakPlan:
    """What happens to each of M pictures: whether it is mirrored, and the crop's corner once it is padded.

    `top`, `left`: int64 (M,); `mirrored`: bool (M,); all on the host. `shape` is (C, H, W) of the pictures, `side` that of
    the crop where it is smaller than they are.
    """

    top: Tensor
    left: Tensor
    mirrored: Tensor
    pad: int
    shape: Shape
    side: int | None = None

    def __len__(self) -> int:
        return len(self.top)

    @property
    def view_shape(self) -> Shape:
        """(C, H, W) of what comes out."""
        return self.shape if self.side is None else (self.shape[0], self.side, self.side)

    def rows(self, which: Which) -> "WeakPlan":
        """The plan for some of the pictures."""
        return WeakPlan(self.top[which], self.left[which], self.mirrored[which], self.pad, self.shape, self.side)


@dataclass(frozen=True)
class Weak:
    """Mirrors half the pictures if `mirror`; pads by `pad` zeros on each side and crops at a random place.

    The crop is as large as the picture, or a square of `side` pixels.
    """

    pad: int
    mirror: bool
    side: int | None = None

    def __post_init__(self) -> None:
        if self.pad < 0:
            raise UsageError(f"Weak(pad={self.pad}): the padding must be 0 or more pixels")

    def plain(self, images: Tensor) -> Tensor:
        """The pictures without any draw, (M, C, H, W) or their middle, (M, C, side, side)."""
        return images if self.side is None else middle(images, self.side)

    def draw(self, count: int, shape: Shape, generator: torch.Generator) -> WeakPlan:
        """A plan for `count` pictures of `shape` (C, H, W); `generator` is a host one."""
        top, left = self._corners(count, shape, generator)
        mirrored = torch.rand(count, generator=generator) < (0.5 if self.mirror else 0.0)
        return WeakPlan(top, left, mirrored, self.pad, shape, self.side)

    def _corners(self, count: int, shape: Shape, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        if self.side is None:
            top, left = torch.randint(2 * self.pad + 1, (2, count), generator=generator)
            return top, left
        room = [length + 2 * self.pad - self.side for length in shape[1:]]
        if min(room) < 0:
            raise UsageError(f"a crop of {self.side} pixels does not fit pictures of {shape[1]}x{shape[2]}; choose a smaller one")
        top, left = (torch.randint(most + 1, (count,), generator=generator) for most in room)
        return top, left

    def apply(self, images: Tensor, plan: WeakPlan) -> Tensor:
        """The planned views, uint8 (M, C, H, W), contiguous, on the images' device."""
        check_fit(images, len(plan), plan.shape)
        views = torch.empty((len(images), *plan.view_shape), dtype=torch.uint8, device=images.device)
        top, left = upload(plan.top, images.device), upload(plan.left, images.device)
        mirrored = upload(plan.mirrored, images.device) if plan.mirrored.numpy().any() else None
        for span in spans(0, len(images), images):
            source, which = images[span], torch.arange(span.stop - span.start, device=images.device)
            if mirrored is not None:
                which = which + mirrored[span] * len(source)
                source = torch.cat([source, source.flip(-1)])
            _crop(source, plan.pad, which, top[span], left[span], out=views[span])
        return views

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        return self.apply(images, self.draw(len(images), shape_of(images), generator))


def middle(images: Tensor, side: int) -> Tensor:
    """The middle square (..., side, side) of pictures (..., H, W)."""
    top, left = ((length - side) // 2 for length in images.shape[-2:])
    return images[..., top : top + side, left : left + side]


def shape_of(images: Tensor) -> Shape:
    """(C, H, W) of a batch (M, C, H, W)."""
    if images.dim() != 4:
        raise UsageError(f"pictures come as a batch (M, C, H, W), but these have shape {tuple(images.shape)}")
    return images.shape[1], images.shape[2], images.shape[3]


def check_fit(images: Tensor, count: int, shape: Shape) -> None:
    """Refuses pictures that the plan was not drawn for."""
    if images.dtype != torch.uint8:
        raise UsageError(f"views are made of uint8 pictures, but these are {images.dtype}; augment before normalising")
    if shape_of(images) != shape or len(images) != count:
        raise UsageError(
            f"the plan is for {count} pictures of {shape}, but {len(images)} of {shape_of(images)} came; "
            f"draw a plan for these pictures"
        )


def _crop(images: Tensor, pad: int, which: Tensor, top: Tensor, left: Tensor, out: Tensor) -> None:
    """Crops picture which[m] of a batch at (top[m], left[m]) of its padded self, into out[m] (C, H, W).

    Every crop is a window on the padded batch's memory, and windows differ only in where they begin. So the
    batch is seen as the list of all its windows, and one index_select takes those that are wanted.
    """
    channels, height, width = out.shape[1:]
    padded = pad_zeros(images, (pad, pad, pad, pad)).contiguous()
    strides = padded.stride()
    reach = 1 + sum((size - 1) * stride for size, stride in zip((channels, height, width), strides[1:], strict=True))
    windows = padded.as_strided((padded.numel() - reach + 1, channels, height, width), (1, *strides[1:]))
    begins = which * strides[0] + top * strides[2] + left
    torch.index_select(windows, 0, begins, out=out)
