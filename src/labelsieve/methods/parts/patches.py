"""What a picture's small patches say of it: vectors (N, d) without a trained network, in a few milliseconds each.

For a few thousand pictures and no pretrained weights. Patches drawn from the pictures themselves, whitened, serve as filters; how
strongly a picture answers to each, for and against, is averaged over nine parts of it (after Coates, Ng, Lee: An Analysis of
Single-Layer Networks in Unsupervised Feature Learning, AISTATS 2011). Labels play no part, so heads on these vectors can leave a
label out in closed form, where networks would be trained anew without it. LOG.md says against what the numbers were chosen.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from labelsieve.methods.parts.streams import PLAN, seeded

SIDE = 32  # pixels of the shorter side; larger pictures are shrunk to it
SIZE = 6  # pixels a patch is wide and high
FILTERS = 1_000  # with mirrored ones
PARTS = 3  # a side
DRAWN = 50_000  # patches that are whitened by
FLAT = (10 / 255**2, 0.01)  # added to a patch's variance, and to the variance along each axis, so that flat ones stay flat
LEAST = 0.25  # an answer below it is none
FITTED = 3_000  # pictures whose main axes are those of all
AXES = 1_024
BLOCK = 512


def patch_vectors(pictures: Tensor, mirror: bool, seed: int = 0) -> Tensor:
    """(N, d) float32, d <= 1024, of bytes (N, C, H, W) on the host. With `mirror`, a picture is the same as its mirror image."""
    order = torch.randperm(len(pictures), generator=seeded(seed, PLAN))
    fitted = shrunk(pictures[order[:FITTED]])
    filters = Filters(fitted, mirror, seed)
    answers = torch.cat([filters.answers(some) for some in fitted.split(BLOCK)])
    mean, spread = answers.mean(0), answers.std(0, correction=0)
    turn = 1 / (spread + 1e-6 * spread.mean()).clamp_min(1e-12)
    axes = _main_axes((answers - mean) * turn)
    parts = [((filters.answers(shrunk(some)) - mean) * turn) @ axes for some in pictures.split(BLOCK)]
    return torch.cat(parts)


def shrunk(pictures: Tensor) -> Tensor:
    """Floats (N, C, H, W) from 0 to 1, their shorter side no longer than `SIDE`."""
    height, width = pictures.shape[2:]
    share = SIDE / min(height, width)
    if share < 1:
        size = (max(SIDE, round(height * share)), max(SIDE, round(width * share)))
        parts = [F.interpolate(some.float(), size=size, mode="area") for some in pictures.split(BLOCK)]
        return torch.cat(parts) / 255
    return pictures.float() / 255


class Filters:
    """Whitened patches of some pictures (N, C, H, W), and how pictures answer to them."""

    def __init__(self, pictures: Tensor, mirror: bool, seed: int) -> None:
        generator = seeded(seed, PLAN, 1)
        count, channels, height, width = pictures.shape
        self.mirror, self.size = mirror, min(SIZE, height, width)
        rows = torch.randint(0, count, (DRAWN,), generator=generator)
        tops, lefts = (torch.randint(0, side - self.size + 1, (DRAWN,), generator=generator) for side in (height, width))
        span = torch.arange(self.size)
        down, right = (tops[:, None] + span)[:, None, :, None], (lefts[:, None] + span)[:, None, None, :]
        drawn = pictures[rows[:, None, None, None], torch.arange(channels)[:, None, None], down, right]
        if mirror:
            drawn = torch.cat((drawn, drawn.flip(3)))
        patches = _even(drawn.flatten(1))
        mean = patches.mean(0)
        strength, axes = torch.linalg.eigh(((patches - mean).T @ (patches - mean)).double() / len(patches))
        whiten = (axes * (strength.clamp_min(0) + FLAT[1]).rsqrt() @ axes.T).float()
        self.kinds = FILTERS // 2 if mirror else FILTERS
        chosen = torch.randperm(DRAWN, generator=generator)[: self.kinds]
        if mirror:
            chosen = torch.cat((chosen, chosen + DRAWN))
        weights = F.normalize((patches[chosen] - mean) @ whiten, dim=1) @ whiten
        self.weights = torch.cat((weights.T, -(weights @ mean)[None]))  # the last row is for a column of ones

    def answers(self, pictures: Tensor) -> Tensor:
        """(N, d): for each part, the root of the mean answer for and against each filter. The root evens out contrasts."""
        found = torch.empty(len(pictures), PARTS, PARTS, 2, self.weights.shape[1])
        for row, picture in enumerate(pictures):
            self._answer(picture, found[row])
        if self.mirror:  # a mirror image answers as the picture does, with mirrored filters, left and right exchanged
            found = found.unflatten(4, (2, self.kinds))
            found = (0.5 * (found + found.flip(2, 4)))[:, :, :, :, 0]
        return found.clamp_min(0).sqrt().flatten(1)

    def _answer(self, picture: Tensor, into: Tensor) -> None:
        """Of one picture, into (3, 3, 2, F): rows and columns of parts, for and against. So it stays in a CPU's cache."""
        places = [side - self.size + 1 for side in picture.shape[1:]]
        patches = _even(F.unfold(picture[None], self.size)[0].T)
        answers = torch.cat((patches, patches.new_ones(len(patches), 1)), 1) @ self.weights
        down, right = ([_span(side, number) for number in range(PARTS)] for side in places)
        for side, strong in enumerate((answers.clamp(min=LEAST), answers.neg_().clamp_(min=LEAST))):
            strong = strong.view(*places, -1)
            for i, rows in enumerate(down):
                for j, columns in enumerate(right):
                    into[i, j, side] = strong[rows, columns].mean((0, 1)) - LEAST


def _span(side: int, number: int) -> slice:
    """Of a side's places, those of one part; parts share places where the side cannot be divided."""
    return slice(side * number // PARTS, -(-side * (number + 1) // PARTS))


def _even(patches: Tensor) -> Tensor:
    """Patches (M, d) without their brightness and contrast."""
    away = patches - patches.mean(1, keepdim=True)
    return away / (away.var(1, keepdim=True) + FLAT[0]).sqrt()


def _main_axes(rows: Tensor) -> Tensor:
    """(D, d): the axes along which rows (N, D) differ most, scaled alike so that the mean variance along them is 1.

    By way of (N, N) or (D, D), whichever is smaller.
    """
    wide = rows.shape[1] > len(rows)
    values, axes = torch.linalg.eigh((rows @ rows.T if wide else rows.T @ rows).double())
    kept = slice(max(len(values) - AXES, 0), None)
    values, axes = values[kept], axes[:, kept]
    axes, values = axes[:, values > 1e-6 * values[-1]], values[values > 1e-6 * values[-1]]
    if wide:
        axes = rows.T.double() @ (axes * values.clamp_min(1e-12).rsqrt())
    return (axes * (len(values) * len(rows) / values.sum().clamp_min(1e-12)).sqrt()).float()
