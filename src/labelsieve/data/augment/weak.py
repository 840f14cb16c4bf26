"""Weak views: a batch of uint8 pictures (M, C, H, W) in, the same pictures shifted and perhaps mirrored out.

A shift is a crop of the picture padded with zeros, as in every CIFAR recipe.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad as pad_zeros

from labelsieve.data.augment.staging import spans, upload
from labelsieve.errors import UsageError

Shape = tuple[int, int, int]
Rows = slice | Tensor


@dataclass(frozen=True)
class WeakPlan:
    """What happens to each of M pictures: whether it is mirrored, and the crop's corner once it is padded.

    `top`, `left`: int64 (M,) in 0..2*pad; `mirrored`: bool (M,); all on the host. `shape` is (C, H, W).
    """

    top: Tensor
    left: Tensor
    mirrored: Tensor
    pad: int
    shape: Shape

    def __len__(self) -> int:
        return len(self.top)

    def rows(self, which: Rows) -> "WeakPlan":
        """The plan for some of the pictures."""
        return WeakPlan(self.top[which], self.left[which], self.mirrored[which], self.pad, self.shape)


@dataclass(frozen=True)
class Weak:
    """Mirrors half the pictures if `mirror`; pads by `pad` zeros on each side and crops at a random place."""

    pad: int
    mirror: bool

    def __post_init__(self) -> None:
        if self.pad < 0:
            raise UsageError(f"Weak(pad={self.pad}): the padding must be 0 or more pixels")

    def draw(self, count: int, shape: Shape, generator: torch.Generator) -> WeakPlan:
        """A plan for `count` pictures of `shape` (C, H, W); `generator` is a host one."""
        corners = torch.randint(2 * self.pad + 1, (2, count), generator=generator)
        mirrored = torch.rand(count, generator=generator) < (0.5 if self.mirror else 0.0)
        return WeakPlan(corners[0], corners[1], mirrored, self.pad, shape)

    def apply(self, images: Tensor, plan: WeakPlan) -> Tensor:
        """The planned views, uint8 (M, C, H, W), contiguous, on the images' device."""
        check_fit(images, len(plan), plan.shape)
        views = torch.empty(images.shape, dtype=torch.uint8, device=images.device)
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
    """Crops picture which[m] of a batch (C, H, W each) at (top[m], left[m]) of its padded self, into out[m].

    Every crop is a window on the padded batch's memory, and windows differ only in where they begin. So the
    batch is seen as the list of all its windows, and one index_select takes those that are wanted.
    """
    channels, height, width = images.shape[1:]
    padded = pad_zeros(images, (pad, pad, pad, pad)).contiguous()
    strides = padded.stride()
    reach = 1 + sum((size - 1) * stride for size, stride in zip((channels, height, width), strides[1:], strict=True))
    windows = padded.as_strided((padded.numel() - reach + 1, channels, height, width), (1, *strides[1:]))
    begins = which * strides[0] + top * strides[2] + left
    torch.index_select(windows, 0, begins, out=out)
